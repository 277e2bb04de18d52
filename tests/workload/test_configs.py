"""Models from Hugging Face: sizes, what is assumed, and what is refused by name."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from public_configs import PUBLIC, experts, kinds, latent, plain
from public_data import DATA, needs_data
from relparallel.workload import operators, read_config, transformer

MIXED = {"num_local_experts": 8, "num_experts_per_tok": 2}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}


def written(folder: Path, config: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def published() -> list[tuple[str, float]]:
    if not DATA.is_dir():
        return []
    rows = csv.DictReader((DATA.parent / "facts/hf-configs.csv").read_text().splitlines())
    whole = [r for r in rows if "ACTIVE" not in r["id"] and r["quantity"] != "support"]
    return [(r["inputs"].removeprefix("config="), float(r["value"])) for r in whole]


@needs_data
@pytest.mark.parametrize(("file", "parameters"), published())
def test_parameters_are_those_of_the_checkpoint(file, parameters):
    assert read_config(DATA / file).model.parameters == pytest.approx(parameters, rel=5e-3)


# Parameters of `public-cases/hf`, and those that a token passes: model cards round most of them.
CASES = {
    "Qwen--Qwen3-32B-FP8-Static-PerTensor": (32_762_123_264, None),
    "openai--gpt-oss-20b": (20.9e9, 3.6e9),
    "moonshotai--Kimi-K2.5": (1_026.4e9, 32.9e9),
    "Qwen--Qwen3-VL-8B-Instruct": (8.191e9, None),
    "XiaomiMiMo--MiMo-7B-Base": (7.62e9, None),
    "MiniMaxAI--MiniMax-M2.5": (229e9, 10e9),
    "zai-org--GLM-4.7": (352.8e9, 32e9),
    "deepseek-ai--DeepSeek-V3.2": (671.0e9 + 0.85e9, None),  # and its index
    "Qwen--Qwen3-Coder-480B-A35B-Instruct": (480_154_875_392, 35e9),
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct": (400.7e9, 17e9),
    "Qwen--Qwen3-Next-80B-A3B": (79.7e9, 3.25e9),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6e9, 3.5e9),
}


@needs_data
@pytest.mark.parametrize("name", CASES)
def test_current_files_are_read_as_they_are(name):
    read = read_config(DATA / f"public-cases/hf/{name}.json")
    parameters, active = CASES[name]
    assert read.model.parameters == pytest.approx(parameters, rel=5e-3)
    assert active is None or read.active_parameters == pytest.approx(active, rel=0.025)


@needs_data
@pytest.mark.parametrize(
    ("name", "parameters"), [("llama-4-scout", 107.77e9), ("nemotron-h-56b", 56.3e9)]
)
def test_layers_that_differ_are_counted(name, parameters):
    read = read_config(DATA / f"hf-configs/{name}.json")
    assert read.model.parameters == pytest.approx(parameters, rel=5e-3)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_families_have_the_parameters_of_their_checkpoints(tmp_path, name):
    public = PUBLIC[name]
    read = read_config(written(tmp_path, public.config))
    assert read.model.parameters == pytest.approx(public.parameters, rel=5e-3)
    assert public.active is None or read.active_parameters == pytest.approx(public.active, rel=0.03)


@pytest.mark.parametrize("name", PUBLIC)
def test_operators_of_public_families_add_up_to_the_model(tmp_path, name):
    model = read_config(written(tmp_path, PUBLIC[name].config), sequence=2048).model
    table, alone = operators(model, micro_batch=2), replace(model, mtp_layers=0)
    assert table.parameters == model.parameters
    assert table.flops(kind="contraction") == pytest.approx(alone.flops_per_iteration(2), rel=1e-12)


def test_a_file_and_the_preset_of_the_same_model_are_equal(tmp_path):
    assert read_config(written(tmp_path, LLAMA)).model == transformer("llama3-8b")


def test_the_length_of_a_sequence_is_said_or_given(tmp_path):
    stretched = LLAMA | {"rope_scaling": {"original_max_position_embeddings": 4096}}
    read = read_config(written(tmp_path, stretched))
    assert read.model.sequence == 4096
    assert read.notes == ("sequences of 4096 tokens, original_max_position_embeddings in the file",)
    assert read_config(written(tmp_path, stretched), sequence=2048).model.sequence == 2048


def test_the_mean_layer_of_t5_has_the_weights_of_both_stacks(tmp_path):
    sizes = {
        "model_type": "t5",
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 2048,
        "num_layers": 6,
        "num_heads": 8,
        "vocab_size": 32128,
    }
    model = read_config(written(tmp_path, sizes)).model
    attention, block = 4 * 512 * 512, 2 * 512 * 2048
    assert model.layer_weights == 6 * (attention + block) + 6 * (2 * attention + block)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mamba_state": 16}, "got mamba_state in"),
        ({"use_second_attention": True}, "got use_second_attention in"),
        ({"moe_layer_freq": 2}, "got moe_layer_freq in"),
        ({"mamba_num_heads": 64, "n_routed_experts": 1}, "got mamba_num_heads in"),
        ({"global_size_ratio": 1.5}, "got global_size_ratio in"),
        ({"hidden_size": "many"}, "hidden must be an integer"),
        ({"num_nextn_predict_layers": True}, "mtp_layers must be an integer"),
        ({"sliding_window": 2.5}, "window must be an integer"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings must be True or False"),
        (MIXED | {"decoder_sparse_step": 2.5}, "moe_layer_step must be an integer"),
        ({"num_hidden_layers": 10**30}, "layers must be an integer in"),
        ({"hidden_size": None}, "hidden_size or n_embd or d_model is missing"),
        ({"num_hidden_layers": 0}, "num_hidden_layers or .* is missing"),
        ({"num_attention_heads": 7}, "heads must divide hidden"),
        ({"hidden_size": [1]}, r"hidden must be one number or 32, got \[1\]"),
        ({"max_position_embeddings": None}, "none of .* is there: give sequence"),
        ({"n_layer": 3}, "layers must be stated once, got .*32.*3"),
        ({"model_type": ["llama"]}, "path must hold a model of"),
        ({"layer_types": ["full_attention"]}, "kinds of the 32 layers .* got 1 of them"),
        (
            {"layer_types": ["convolution"] * 32},
            "kinds of the 32 layers must be of .*, got convolution",
        ),
        ({"layer_types": ["linear_attention"] * 32}, "linear attention of llama is not known"),
        ({"layer_types": ["sliding_attention"] * 32}, "layers with a window need sliding_window"),
        (MIXED | {"moe_layer_freq": [1]}, "feed-forward blocks must be 32, got 1"),
        (
            MIXED | {"shared_expert_intermediate_size": 100, "first_k_dense_replace": 1},
            "shared experts must be a multiple",
        ),
        ({"num_experts": 8}, "active_experts"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
        ({"attention_bias": "yes"}, "attention_bias must be True or False"),
        (
            {"sliding_window": 128, "sliding_window_pattern": 2.5},
            "sliding_window_pattern must be an integer",
        ),
        (
            MIXED | {"moe_layer_start_index": [1, 1]},
            r"moe_layer_start_index must be .* got \[1, 1\]",
        ),
        (
            MIXED | {"moe_layer_end_index": [29, 28]},
            r"moe_layer_end_index must be .* got \[29, 28\]",
        ),
        (
            {"kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32},
            "v_head_dim must be .* got None",
        ),
    ],
)
def test_what_would_change_the_model_is_refused_by_name(tmp_path, change, said):
    with pytest.raises((ValueError, TypeError), match=said):
        read_config(written(tmp_path, LLAMA | change))


def test_a_mark_of_order_is_passed_over_and_a_field_that_stands_twice_is_refused(tmp_path):
    text = json.dumps(LLAMA | {"time_step_limit": [0.0, float("inf")]})  # as Mamba's files have it
    (path := tmp_path / "config.json").write_text("\ufeff" + text)
    assert read_config(path).model == transformer("llama3-8b")
    path.write_text(text[:-1] + ', "hidden_size": 8192}')
    with pytest.raises(ValueError, match="'hidden_size' stands twice"):
        read_config(path)


def test_an_unknown_family_is_refused_with_the_nearest_one(tmp_path):
    with pytest.raises(
        ValueError, match=r"path must hold a model of .*, got llamma in .*; did you mean llama\?"
    ):
        read_config(written(tmp_path, LLAMA | {"model_type": "llamma"}))


def test_an_unknown_family_whose_fields_are_all_understood_is_read_as_a_llama_and_says_so(tmp_path):
    own = LLAMA | {
        "model_type": "fresh",
        "architectures": ["FreshForCausalLM"],
        "hidden_act": "silu",
    }
    read = read_config(written(tmp_path, own))
    assert read.model == transformer("llama3-8b")
    assert read.notes[0].startswith("fresh is no known family: read as a Llama")
    with pytest.raises(ValueError, match="got fresh_heads in"):
        read_config(written(tmp_path, own | {"fresh_heads": 4}))


@pytest.mark.parametrize("nothing", [None, 0, False, [], {}, ""])
def test_fields_that_say_nothing_are_taken(tmp_path, nothing):
    read = read_config(
        written(tmp_path, LLAMA | {"mamba_num_heads": nothing, "num_experts": nothing or None})
    )
    assert read.model == transformer("llama3-8b")


@pytest.mark.parametrize("wrapper", ["text_config", "llm_config", "language_config"])
def test_a_wrapper_is_opened_and_says_what_it_leaves_out(tmp_path, wrapper):
    outer = {
        "model_type": "seeing",
        wrapper: LLAMA,
        "vision_config": {"hidden_size": 1024},
        "image_token_id": 7,
    }
    read = read_config(written(tmp_path, outer))
    assert read.model == transformer("llama3-8b")
    assert read.notes[0] == "the language model only: vision_config of seeing is left out"


def test_what_the_wrapper_says_of_embeddings_counts_where_the_text_is_silent(tmp_path):
    text = {name: value for name, value in LLAMA.items() if name != "tie_word_embeddings"}
    for said in (True, False):
        outer = {"model_type": "seeing", "text_config": text, "tie_word_embeddings": said}
        assert read_config(written(tmp_path, outer)).model.tied is said


WINDOW = LLAMA | {"sliding_window": 1024}


@pytest.mark.parametrize(
    ("change", "windowed"),
    [
        ({}, 32),
        ({"sliding_window": None}, 0),
        ({"use_sliding_window": False}, 0),
        ({"sliding_window_pattern": 4}, 24),
        ({"sliding_window_pattern": "LG"}, 16),
        ({"layer_types": kinds(32, 8)}, 28),
        ({"use_sliding_window": True, "max_window_layers": 20}, 12),
        ({"no_rope_layers": [1, 1, 1, 0] * 8}, 24),
    ],
)
def test_windows_and_their_patterns(tmp_path, change, windowed):
    model = read_config(written(tmp_path, WINDOW | change)).model
    assert model.windowed == windowed
    assert model.parameters == transformer("llama3-8b").parameters
    full, seen = transformer("llama3-8b").core_flops(8192) / 32, 1024 / 8192
    assert model.core_flops(8192) == full * (32 - windowed) + full * windowed * seen


@pytest.mark.parametrize(
    ("change", "mixtures"),
    [
        ({}, 32),
        ({"interleave_moe_layer_step": 2}, 16),
        ({"decoder_sparse_step": 4}, 8),
        ({"first_k_dense_replace": 3}, 29),
        ({"first_k_dense_replace": 4, "moe_layer_freq": 2}, 14),
        ({"moe_layer_freq": [0, 1] * 16}, 16),
        ({"mlp_only_layers": [0, 5]}, 30),
        ({"mlp_layer_types": ["dense"] * 2 + ["sparse"] * 30}, 30),
        ({"moe_layers": [1, 2, 3]}, 3),
        ({"moe_layers_enum": "4,5,6,7"}, 4),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": 30}, 30),
    ],
)
def test_experts_in_some_layers(tmp_path, change, mixtures):
    model = read_config(written(tmp_path, LLAMA | MIXED | change)).model
    more = 7 * 3 * 4096 * 14336 + 8 * 4096  # seven more blocks, and the router
    assert model.parameters == transformer("llama3-8b").parameters + mixtures * more


def test_shared_experts_by_number_and_by_width(tmp_path):
    by = {"n_shared_experts": 2}, {"shared_expert_intermediate_size": 2 * 14336}
    one, two = (read_config(written(tmp_path, LLAMA | MIXED | shared)).model for shared in by)
    assert one == two
    assert one.shared_experts == 2


def test_an_index_limits_what_queries_look_at(tmp_path):
    config = plain(
        "deepseek_v32", 4, 512, 8, 8, 1024, 1000, **latent(128, 16, 16), **experts(4, 2, 64, 1)
    )
    sizes = {"index_n_heads": 4, "index_head_dim": 32, "index_topk": 100}
    config = config | {"qk_rope_head_dim": 32, "first_k_dense_replace": 1}
    with_index = read_config(written(tmp_path, config | sizes)).model
    without = read_config(written(tmp_path, config | {"model_type": "deepseek_v3"})).model
    assert with_index.parameters - without.parameters == 4 * (128 * 4 * 32 + 512 * (32 + 4))
    scores = 2 * 4 * 4 * 32
    assert with_index.core_flops(1000) == without.core_flops(100) + 1000 * scores


def test_multi_token_prediction_costs_operations_and_is_no_parameter(tmp_path):
    read = read_config(written(tmp_path, LLAMA | {"num_nextn_predict_layers": 2}))
    base = transformer("llama3-8b")
    assert read.model.parameters == base.parameters
    layer = base.layer_weights // 32 + 2 * 4096**2 + 4096 * 128256
    core = 4 * 8192 * 4096
    more = read.model.flops_per_iteration(1) - base.flops_per_iteration(1)
    assert more == 2 * 3 * 8192 * (2 * layer + core)
    assert any(note.startswith("multi-token prediction, 2 layer(s)") for note in read.notes)


def test_modules_of_several_layers_and_a_flag(tmp_path):
    said = LLAMA | {"num_mtp_modules": 3, "mtp_transformer_layers": 2}
    assert read_config(written(tmp_path, said)).model.mtp_layers == 6
    assert read_config(written(tmp_path, said | {"use_mtp": False})).model.mtp_layers == 0


def test_the_card_of_gpt_oss_leaves_out_the_input_embedding(tmp_path):
    config = plain("gpt_oss", 4, 256, 4, 2, 256, 5000, **MIXED, sliding_window=128)
    read = read_config(written(tmp_path, config))
    assert read.active_parameters == read.model.active_parameters - 5000 * 256
    assert read.notes[-1].endswith("without the input embedding")


def test_a_name_that_is_a_file_points_to_its_reader():
    with pytest.raises(ValueError, match="`read_config` reads files"):
        transformer("config.json")


def test_a_field_may_be_ignored_by_name(tmp_path):
    path = written(tmp_path, LLAMA | {"my_remark": "x"})
    assert read_config(path, ignore=["my_remark"]).model.layers == 32


@pytest.mark.parametrize("text", ["", "[1]", "{", "\x00", '{"a": ' * 100000])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="path must"):
        read_config(path)
