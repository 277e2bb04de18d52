"""Files whose layers differ, by hand; what is not understood is refused by its field."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from public_configs import PUBLIC, plain
from relparallel.workload import operators, read_config, transformer

H, F, V = 512, 768, 1000  # 768 is a multiple of 256: widths of blocks are rounded up to one
BLOCKS = {
    "model_type": "nemotron-nas",
    "hidden_size": H,
    "intermediate_size": None,
    "num_attention_heads": 8,
    "num_key_value_heads": None,
    "num_hidden_layers": 5,
    "vocab_size": V,
    "max_position_embeddings": 128,
}
FULL = {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.25}}
NO, LINEAR = {"no_op": True}, {"replace_with_linear": True}


def read(folder: Path, config: dict, **options):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return read_config(path, **options)


def changed(name: str, **change) -> dict:
    return PUBLIC[name].config | change


def test_blocks_that_are_left_out_or_linear_or_have_other_heads(tmp_path):
    blocks = [
        FULL,
        {"attention": NO, "ffn": {"ffn_mult": 0.75}},
        {"attention": LINEAR, "ffn": NO},
        {"attention": {"n_heads_in_group": 4}, "ffn": LINEAR},
        FULL | {"attention": {"n_heads_in_group": 2, "no_op": False, "sparsify": None}},
    ]
    model = read(tmp_path, BLOCKS | {"block_configs": blocks}).model
    head, norms = H // 8, 8 * H  # two of attentions, two linear, one of theirs, three of widths
    attentions = [H * head * 2 * (8 + kv) for kv in (4, 2, 4)]
    widths = [768, 256, 768]
    by_hand = sum(attentions) + 2 * H * H + 3 * H * sum(widths) + 2 * V * H + norms + H
    assert model.parameters == pytest.approx(by_hand, rel=1e-3)
    assert (model.layers, model.attentions, model.ffn_blocks) == (5, 2, 3)
    assert operators(model, micro_batch=2).parameters == model.parameters
    assert operators(model).flops(kind="contraction") == pytest.approx(model.flops_per_iteration(1))


@pytest.mark.parametrize("name", ["nemotron-3-nano", "nemotron-3-super", "deepseek-v4-flash"])
def test_shipped_models_with_mixers_are_those_of_their_files(tmp_path, name):
    shipped = transformer(name)
    found = read(tmp_path, PUBLIC[name].config, sequence=shipped.sequence).model
    assert shipped == replace(found, mtp_layers=0)
    assert shipped.mixers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"attention": {"sparsify": ["2:4"]}}, "block_configs.attention.sparsify is not known"),
        ({"attention": {"window_length": 64}}, "block_configs.attention.window_length is not"),
        ({"ffn": {"moe": {"num_local_experts": 4}}}, "block_configs.ffn.moe is not known"),
        ({"mamba": {"state": 4}}, "block_configs.mamba.state is not known"),
        ({"parallel": True}, "block_configs.parallel. is not known"),
        ({"attention": {}}, "no 'n_heads_in_group'"),
    ],
)
def test_a_field_of_a_block_that_is_not_understood_is_refused(change, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        read(tmp_path, BLOCKS | {"block_configs": [FULL] * 4 + [FULL | change]})


def test_two_attentions_a_layer_and_experts_that_compute_nothing(tmp_path):
    longcat = read(tmp_path, changed("longcat-flash"))
    model, sizes = longcat.model, PUBLIC["longcat-flash"].config
    assert (model.layers, model.attentions, model.ffn_blocks) == (28, 56, 84)
    assert model.active_experts == 8  # 12 of 768, of which 512 compute
    assert any("256 of 768 experts compute nothing" in note for note in longcat.notes)
    once = model.attention_weights + 3 * 6144 * 12288  # a rival: one attention and block a layer
    assert model.parameters - 28 * once < 0.995 * 560e9 < model.parameters
    every = read(tmp_path, sizes | {"zero_expert_num": 0}).model
    assert every.parameters == model.parameters - 28 * 256 * 6144  # of the router
    assert every.active_experts == 12


def test_the_width_of_a_state_is_what_the_file_says_and_not_what_it_could_be(tmp_path):
    config = changed("falcon-mamba-7b")
    assert config["expand"] * config["hidden_size"] == 8 * config["intermediate_size"]
    assert read(tmp_path, config).model.parameters < 7.3e9
    free = {name: value for name, value in config.items() if name != "intermediate_size"}
    assert read(tmp_path, free | {"expand": 2}).model == read(tmp_path, config).model


def test_an_index_in_every_fourth_layer_is_no_index_in_all(tmp_path):
    some = read(tmp_path, changed("glm-5.2")).model
    one_in_all = {name: v for name, v in changed("glm-5.2").items() if name != "index_topk_freq"}
    every = read(tmp_path, one_in_all | {"indexer_types": ["full"] * 78}).model
    index = 2048 * 32 * 128 + 6144 * (128 + 32)
    shared = changed("glm-5.2")["indexer_types"].count("shared")
    assert every.parameters - some.parameters == shared * index
    assert every.core_flops(4096) - some.core_flops(4096) == pytest.approx(
        shared * 2 * 32 * 128 * 4096, rel=1e-3
    )


def test_a_block_of_keys_is_chosen_by_scores_of_all_tokens(tmp_path):
    mixer = read(tmp_path, changed("minimax-m3")).model.mixers[0]
    assert (mixer.layers, mixer.looks_at(10**6), mixer.index) == (57, 16 * 128, 4 * 128)
    assert mixer.looks_at(1000) == 1000 + 128  # all, and its own block once more


def test_attention_and_a_state_stand_in_every_layer(tmp_path):
    model = read(tmp_path, changed("falcon-h1-0.5b")).model
    assert (model.layers, model.attentions, model.mixed, model.ffn_blocks) == (36, 36, 36, 36)


def test_a_wrapper_and_its_text_that_disagree_on_embeddings_are_told(tmp_path):
    text = plain("llama", 2, H, 8, 8, F, V, tie_word_embeddings=False)
    for version, tied in (("4.56.2", False), ("5.24.0", True)):
        outer = {"model_type": "seeing", "text_config": text, "transformers_version": version}
        found = read(tmp_path, outer | {"tie_word_embeddings": True})
        assert found.model.tied is tied
        assert f"tie_word_embeddings is stated twice: {tied} is taken" in found.notes


@pytest.mark.parametrize("name", ["lfm2-1.2b", "lfm2-8b-a1b", "minicpm-2b"])
def test_a_file_is_tied_where_its_class_is_and_the_field_is_left_out(name, tmp_path):
    config = changed(name)  # Transformers writes what differs from its defaults alone
    config.pop("tie_word_embeddings", config.pop("tie_embedding", None))
    model = read(tmp_path, config).model
    assert model.tied
    assert model.parameters == pytest.approx(PUBLIC[name].parameters, rel=2e-3)


def test_an_unknown_type_with_a_known_architecture_is_read_as_that_and_says_so(tmp_path):
    config = plain("fresh", 2, H, 8, 8, F, V, architectures=["Qwen3ForCausalLM"])
    found = read(tmp_path, config)
    assert found.model.qk_norm
    assert found.notes[0] == "fresh is read as Qwen3ForCausalLM says"


def test_a_shared_expert_of_any_width_is_a_dense_block_beside_the_others(tmp_path):
    mixed = {"num_local_experts": 4, "num_experts_per_tok": 2}
    base = plain("granitemoe", 3, H, 8, 8, F, V, **mixed)
    model = read(tmp_path, base | {"shared_intermediate_size": 100}).model
    more = model.parameters - read(tmp_path, base).model.parameters
    assert more == 3 * (3 * H * 100 + H)  # and a norm
    assert model.dense_layers == 3


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("ling-3-flash", {"gated_attention_proj_granularity_type": "token"}, "must be of head_"),
        ("ling-3-flash", {"layer_group_size": None}, "layer_group_size is missing"),
        ("ling-3-flash", {"short_conv_kernel_size": 2.5}, "linear_conv_kernel_dim must be an int"),
        ("kimi-k3", {"linear_attn_config": {"decay": 3}}, "full_attn_layers is missing"),
        ("minimax-m3", {"moe_intermediate_size": 1}, "moe_intermediate_size must be stated once"),
        ("glm-5.2", {"indexer_types": ["full"]}, "indexer_types must be 78, got 1"),
        ("longcat-flash", {"zero_expert_num": -1}, "zero_expert_num must be an integer >= 1"),
        ("deci-7b", {"num_key_value_heads_per_layer": [4]}, "per_layer must be 32, got 1"),
        ("dots3-note", {"per_layer_config": {"0": {"act": 1}}}, "per_layer_config.act is not kno"),
        ("jamba-1.5-large", {"attn_layer_period": 0}, "attn_layer_period.*: .* by zero"),
        ("lfm2-1.2b", {"block_ffn_dim_multiplier": 1.5}, "block_ffn_dim_multiplier must be an int"),
        ("lfm2-1.2b", {"conv_L_cache": None}, "conv_L_cache is missing"),
        ("arctic", {"intermediate_size": [4864, 1]}, "must be one number or 35"),
        ("falcon-h1-0.5b", {"layer_types": ["full_attention"] * 36}, "got layer_types in"),
        (
            "minimax-m3",
            {"sparse_attention_config": {"sparse_attention_freq": [1]}},
            "freq.i.*range",
        ),
        ("arctic", {"router_hidden_size": 64}, "got router_hidden_size in"),
        ("glm-5.2", {"indexer_kv_heads": 2}, "got indexer_kv_heads in"),
        ("mamba2-2.7b", {"num_heads": None}, "mamba_num_heads is missing"),
    ],
)
def test_a_field_that_cannot_be_understood_is_named(name, change, said, tmp_path):
    config = changed(name)
    inner = config.get("text_config")
    with pytest.raises((ValueError, TypeError), match=said):
        read(tmp_path, config | ({"text_config": inner | change} if inner else change))


def test_a_refusal_names_the_flag_and_the_argument_and_both_take_it(tmp_path):
    config = plain("llama", 2, H, 8, 8, F, V, second_router="x", third=1)
    with pytest.raises(ValueError, match=r"--ignore second_router third \(in Python ignore=\["):
        read(tmp_path, config)
    assert read(tmp_path, config, ignore=["second_router", "third"]).model.layers == 2
