"""Fields of public ``config.json`` files, and the parameters of their language models.

The numbers are those of the checkpoints where they are whole, and of the model cards where they are rounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Public(NamedTuple):
    """Fields of a file, parameters, and those that a token passes where a model card states them."""

    config: dict[str, Any]
    parameters: float
    active: float | None = None


def kinds(layers: int, period: int, others: str = "sliding_attention") -> list[str]:
    """Every period-th layer has full attention."""
    return [others if (i + 1) % period else "full_attention" for i in range(layers)]


def plain(
    family: str, layers: int, hidden: int, heads: int, kv: int, ffn: int, words: int, **more: Any
) -> dict[str, Any]:
    """Fields that most files have."""
    return {
        "model_type": family, "num_hidden_layers": layers, "hidden_size": hidden,
        "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": ffn,
        "vocab_size": words, "hidden_act": "silu",
        "max_position_embeddings": 8192, "rope_theta": 10000.0, "rms_norm_eps": 1e-6,
        "attention_dropout": 0.0, "use_cache": True, "initializer_range": 0.02,
    } | more  # fmt: skip


def latent(q_rank: int | None, nope: int, value: int) -> dict[str, Any]:
    return {"kv_lora_rank": 512, "q_lora_rank": q_rank, "qk_nope_head_dim": nope, "qk_rope_head_dim": 64,
            "v_head_dim": value}  # fmt: skip


def experts(many: int, active: int, width: int, shared: int, **more: Any) -> dict[str, Any]:
    return {"n_routed_experts": many, "num_experts_per_tok": active, "moe_intermediate_size": width,
            "n_shared_experts": shared} | more  # fmt: skip


FALCON = {
    "model_type": "falcon", "alibi": False, "bias": False, "multi_query": True, "parallel_attn": True,
    "vocab_size": 65024, "max_position_embeddings": 2048, "layer_norm_epsilon": 1e-5, "activation": "gelu",
}  # fmt: skip
GEMMA4 = {
    "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": True,
    "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "use_double_wide_mlp": False,
    "sliding_window": 1024, "vocab_size": 262144, "vocab_size_per_layer_input": 262144,
    "max_position_embeddings": 262144, "tie_word_embeddings": True, "final_logit_softcapping": 30.0,
}  # fmt: skip
DELTA = {
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
    "linear_value_head_dim": 128, "full_attention_interval": 4,
    "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
MAMBA = {"mamba_head_dim": 64, "ssm_state_size": 128, "conv_kernel": 4, "n_groups": 8, "chunk_size": 128,
         "expand": 2, "head_dim": 128, "use_conv_bias": True, "mlp_hidden_act": "relu2"}  # fmt: skip

PUBLIC = {
    "gemma-2b": Public(plain("gemma", 18, 2048, 8, 1, 16384, 256000, head_dim=256), 2_506_172_416),
    "gemma-2-9b": Public(plain("gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256,
        attn_logit_softcapping=50.0, query_pre_attn_scalar=256, sliding_window=4096,
        cache_implementation="hybrid"), 9_241_705_984),
    "gemma-3-4b": Public({"model_type": "gemma3", "mm_tokens_per_image": 256,
        "vision_config": {"hidden_size": 1152}, "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024}}, 3_880_099_328),
    "gemma-4-31b": Public({"model_type": "gemma4", "text_config": GEMMA4 | {"hidden_size": 5376,
        "intermediate_size": 21504, "num_hidden_layers": 60, "num_attention_heads": 32,
        "num_key_value_heads": 16, "num_global_key_value_heads": 4, "layer_types": kinds(60, 6)}},
        30.7e9),
    "gemma-4-26b-a4b": Public({"model_type": "gemma4", "text_config": GEMMA4 | {"hidden_size": 2816,
        "intermediate_size": 2112, "num_hidden_layers": 30, "num_attention_heads": 16,
        "num_key_value_heads": 8, "num_global_key_value_heads": 2, "layer_types": kinds(30, 6),
        "enable_moe_block": True, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704}},
        25.2e9, 3.8e9),
    "phi-2": Public(plain("phi", 32, 2560, 32, 32, 10240, 51200, hidden_act="gelu_new",
        partial_rotary_factor=0.4, resid_pdrop=0.1), 2_779_683_840),
    "phi-4": Public(plain("phi3", 40, 5120, 40, 10, 17920, 100352, sliding_window=None),
        14_659_507_200),
    "phi-3.5-moe": Public(plain("phimoe", 32, 4096, 32, 8, 6400, 32064, num_local_experts=16,
        num_experts_per_tok=2, attention_bias=True, lm_head_bias=True, input_jitter_noise=0.01,
        router_jitter_noise=0.01, sliding_window=131072), 41_873_153_344, 6.6e9),
    "falcon-7b": Public(FALCON | {"hidden_size": 4544, "num_attention_heads": 71,
        "num_hidden_layers": 32, "num_kv_heads": 71, "new_decoder_architecture": False}, 6_921_720_704),
    "falcon-40b": Public(FALCON | {"hidden_size": 8192, "num_attention_heads": 128,
        "num_hidden_layers": 60, "num_kv_heads": 8, "new_decoder_architecture": True}, 41_303_293_952),
    "opt-6.7b": Public({"model_type": "opt", "ffn_dim": 16384, "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 50272,
        "word_embed_proj_dim": 4096, "do_layer_norm_before": True, "max_position_embeddings": 2048,
        "activation_function": "relu", "prefix": "</s>"}, 6_658_473_984),
    "olmo-3-7b": Public(plain("olmo3", 32, 4096, 32, 32, 11008, 100278, sliding_window=4096,
        layer_types=kinds(32, 4)), 7_298_011_136),
    "olmoe": Public(plain("olmoe", 16, 2048, 16, 16, 1024, 50304, num_experts=64,
        num_experts_per_tok=8, clip_qkv=None), 6_919_161_856, 1.3e9),
    "starcoder2-3b": Public(plain("starcoder2", 30, 3072, 24, 2, 12288, 49152, use_bias=True,
        sliding_window=4096, mlp_type="default"), 3_030_371_328),
    "command-r": Public(plain("cohere", 40, 8192, 64, 64, 22528, 256000, logit_scale=0.0625),
        34_980_831_232),
    "command-r7b": Public(plain("cohere2", 32, 4096, 32, 8, 14336, 256000, head_dim=128,
        sliding_window=4096, sliding_window_pattern=4, use_parallel_block=True,
        order_of_interleaved_layers="local_attn_first"), 8_028_033_024),
    "glm-4-9b": Public({"model_type": "chatglm", "ffn_hidden_size": 13696, "hidden_size": 4096,
        "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2,
        "num_attention_heads": 32, "num_layers": 40, "padded_vocab_size": 151552, "seq_length": 131072,
        "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "rope_ratio": 500,
        "original_rope": True}, 9_399_951_360),
    "nemotron-4-340b": Public(plain("nemotron", 96, 18432, 96, 8, 73728, 256000, hidden_act="relu2",
        partial_rotary_factor=0.5), 341e9),
    "qwen1.5-moe": Public(plain("qwen2_moe", 24, 2048, 16, 16, 5632, 151936, num_experts=60,
        num_experts_per_tok=4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
        decoder_sparse_step=1, sliding_window=32768, use_sliding_window=False, max_window_layers=21),
        14_315_784_192, 2.7e9),
    "qwen3.5-397b": Public({"model_type": "qwen3_5_moe", "tie_word_embeddings": False,
        "vision_config": {"depth": 27}, "text_config": DELTA | {"model_type": "qwen3_5_moe_text",
        "hidden_size": 4096, "head_dim": 256, "num_attention_heads": 32, "num_key_value_heads": 2,
        "num_hidden_layers": 60, "linear_num_value_heads": 64, "vocab_size": 248320,
        "layer_types": kinds(60, 4, "linear_attention"), "attn_output_gate": True, "num_experts": 512,
        "num_experts_per_tok": 10, "moe_intermediate_size": 1024, "shared_expert_intermediate_size": 1024,
        "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False,
        "max_position_embeddings": 262144}}, 397e9, 17e9),
    "deepseek-moe-16b": Public(plain("deepseek", 28, 2048, 16, 16, 10944, 102400,
        first_k_dense_replace=1, moe_layer_freq=1, **experts(64, 6, 1408, 2)), 16_375_728_128, 2.8e9),
    "kimi-linear-48b": Public(plain("kimi_linear", 27, 2304, 32, 32, 9216, 163840, head_dim=72,
        first_k_dense_replace=1, mla_use_nope=True, num_experts=256, num_experts_per_token=8,
        num_shared_experts=1, moe_intermediate_size=1024, moe_renormalize=True, num_expert_group=1,
        **latent(None, 128, 128), linear_attn_config={"full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128, "num_heads": 32, "kda_layers": [i for i in range(1, 27) if i % 4],
        "short_conv_kernel_size": 4}), 49_122_681_728),
    "minimax-m1": Public(plain("minimax_m1", 80, 6144, 64, 8, 9216, 200064, head_dim=128,
        num_local_experts=32, num_experts_per_tok=2, attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10,
        layernorm_mlp_alpha=3.5, postnorm=True, shared_intermediate_size=0, shared_moe_mode="sigmoid",
        rotary_dim=64, sliding_window=None), 456e9),
    "mimo-v2-flash": Public(plain("mimo_v2_flash", 48, 4096, 64, 4, 16384, 152576, head_dim=192,
        v_head_dim=128, swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192,
        swa_v_head_dim=128, sliding_window=128, sliding_window_size=128, attention_chunk_size=128,
        moe_layer_freq=[0] + [1] * 47, add_swa_attention_sink_bias=True, hybrid_layer_pattern=[int(i > 0
        and (i + 1) % 6 > 0) for i in range(48)], **experts(256, 8, 2048, 0)), 309e9, 15e9),
    "step-3": Public({"model_type": "step3_vl", "vision_config": {"hidden_size": 1792},
        "text_config": {"model_type": "step3_text", "hidden_size": 7168, "intermediate_size": 18432,
        "num_attention_heads": 64, "num_attention_groups": 1, "num_hidden_layers": 61,
        "max_seq_len": 65536, "vocab_size": 128815, "moe_intermediate_size": 5120, "moe_num_experts": 48,
        "moe_top_k": 3, "share_expert_dim": 5120, "share_q_dim": 2048, "head_dim": 256,
        "moe_layers_enum": ",".join(map(str, range(4, 60)))}}, 316e9, 38e9),
    "step-3.5-flash": Public(plain("step3p5", 45, 4096, 64, 8, 11264, 128896, num_attention_groups=8,
        head_dim=128, sliding_window=512, layer_types=["sliding_attention" if i % 4 else "full_attention"
        for i in range(48)], attention_other_setting={"num_attention_heads": 96,
        "num_attention_groups": 8, "head_dim": 128}, use_head_wise_attn_gate=True,
        moe_layers_enum=list(range(3, 45)), moe_num_experts=288, moe_top_k=8, moe_intermediate_size=1280,
        share_expert_dim=1280, num_nextn_predict_layers=3, zero_centered=True), 196.96e9),
    "glm-5": Public({"model_type": "glm_moe_dsa", "num_hidden_layers": 78, "hidden_size": 6144,
        "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 64, "intermediate_size": 12288,
        "vocab_size": 154880, "max_position_embeddings": 202752, "moe_layer_freq": 1,
        "first_k_dense_replace": 3, "tie_word_embeddings": False, **latent(2048, 192, 256), **experts(256,
        8, 2048, 1)}, 744e9, 40e9),
    "deepseek-v4-flash": Public(plain("deepseek_v4", 43, 4096, 64, 1, 0, 129280, head_dim=512,
        q_lora_rank=1024, o_lora_rank=1024, o_groups=8, qk_rope_head_dim=64, num_hash_layers=3, hc_mult=4,
        hc_sinkhorn_iters=20, index_n_heads=64, index_head_dim=128, index_topk=512, sliding_window=128,
        num_nextn_predict_layers=1, compress_ratios=[0, 0, *[4, 128] * 20, 4, 0],
        compress_rope_theta=160000, **experts(256, 6, 2048, 1)), 284e9, 13e9),
    "deepseek-v4-pro": Public(plain("deepseek_v4", 61, 7168, 128, 1, 0, 129280, head_dim=512,
        q_lora_rank=1536, o_lora_rank=1024, o_groups=16, qk_rope_head_dim=64, num_hash_layers=3,
        hc_mult=4, index_n_heads=64, index_head_dim=128, index_topk=1024, sliding_window=128,
        compress_ratios=[128, 128, *[4, 128] * 29, 4, 0], **experts(384, 6, 3072, 1)), 1.573e12, 49e9),
    "nemotron-h-8b": Public(MAMBA | {"model_type": "nemotron_h", "hidden_size": 4096,
        "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 21504, "vocab_size": 131072, "mamba_num_heads": 128,
        "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
        "max_position_embeddings": 8192}, 8.1e9),
    "nemotron-3-super": Public(MAMBA | {"model_type": "nemotron_h", "hidden_size": 4096,
        "num_hidden_layers": None, "num_attention_heads": 32, "num_key_value_heads": 2,
        "vocab_size": 131072, "mamba_num_heads": 128, "moe_latent_size": 1024,
        "layers_block_type": [*["mamba", "moe"] * 40, *["attention"] * 8], "num_nextn_predict_layers": 1,
        "moe_shared_expert_intermediate_size": 5376, "max_position_embeddings": 262144, **experts(512, 22,
        2688, 1)}, 120.6e9),
    "granite-4-h-tiny": Public(plain("granitemoehybrid", 40, 1536, 12, 4, 512, 100352,
        mamba_n_groups=1, mamba_d_state=128, mamba_n_heads=48, mamba_d_head=64, mamba_d_conv=4,
        mamba_expand=2, num_local_experts=64, num_experts_per_tok=6, shared_intermediate_size=1024,
        tie_word_embeddings=True, embedding_multiplier=12, layer_types=["mamba" if i % 10 != 5 else
        "attention" for i in range(40)]), 6.94e9),
    "ernie-4.5-21b": Public(plain("ernie4_5_moe", 28, 2560, 20, 4, 12288, 103424, moe_num_experts=64,
        moe_k=6, moe_intermediate_size=1536, moe_layer_start_index=1, moe_layer_end_index=27,
        moe_layer_interval=1, moe_num_shared_experts=2, moe_capacity=[64, 64, 64],
        tie_word_embeddings=True), 21.83e9),
    "dots.llm1": Public(plain("dots1", 62, 4096, 32, 32, 10944, 152064, first_k_dense_replace=1,
        **experts(128, 6, 1408, 2)), 142.8e9, 14e9),
    "hunyuan-a13b": Public(plain("hunyuan_v1_moe", 32, 4096, 32, 8, 3072, 128167, num_experts=64,
        moe_topk=[8] * 32, num_shared_expert=[1] * 32, moe_intermediate_size=[3072] * 32, head_dim=128,
        tie_word_embeddings=True), 80.4e9, 13e9),
    "exaone-4-32b": Public(plain("exaone4", 64, 5120, 40, 8, 27392, 102400, head_dim=128,
        sliding_window=4096, sliding_window_pattern="LLLG"), 32.0e9),
    "smollm3-3b": Public(plain("smollm3", 36, 2048, 16, 4, 11008, 128256, no_rope_layers=[1, 1, 1, 0]
        * 9, sliding_window=None), 3_075_098_624),
    "phi-4-mini": Public(plain("phi3", 32, 3072, 24, 8, 8192, 200064, tie_word_embeddings=True,
        full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, sliding_window=262144), 3_836_021_760),
    "command-a": Public(plain("cohere2", 64, 12288, 96, 8, 36864, 256000, head_dim=128, layer_switch=4,
        sliding_window=4096), 111.06e9),
    "falcon-11b": Public(FALCON | {"hidden_size": 4096, "num_attention_heads": 32, "num_kv_heads": 8,
        "num_hidden_layers": 60, "new_decoder_architecture": True, "ff_factor": 4,
        "ffn_hidden_size": 16384, "num_ln_in_parallel_attn": 1, "tie_word_embeddings": False}, 11.1e9),
    "hunyuan-7b": Public(plain("hunyuan_v1_dense", 32, 4096, 32, 8, 14336, 128167, head_dim=128,
        attention_head_dim=128, dense_list=[4096, 0], im_end_id=5, mask_init_id=12, num_experts=1,
        num_shared_expert=1, moe_topk=1, org_vocab_size=128167, pool_type="last", text_start_id=6,
        position_embedding_xdrope=False, use_rotary_pos_emb=True, use_cla=False, kv_lora_rank=None,
        tie_word_embeddings=True), 7.505e9),
    "ring-1t": Public(plain("bailing_moe_v2", 80, 8192, 64, 8, 18432, 157184, num_experts=256,
        num_shared_experts=1, num_experts_per_tok=8, moe_intermediate_size=2048, head_dim=128,
        moe_shared_expert_intermediate_size=2048, first_k_dense_replace=4, use_qkv_bias=False,
        use_rmsnorm=True, score_function="sigmoid", router_dtype="fp32"), 1e12, 50e9),
    "exaone-3.5-7.8b": Public({"model_type": "exaone", "activation_function": "silu", "hidden_size": 4096,
        "intermediate_size": 14336, "num_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 32768}, 7_818_448_896),
    "exaone-4-1.2b": Public(plain("exaone4", 30, 2048, 32, 8, 4096, 102400, head_dim=64,
        layer_types=["full_attention"] * 30, reorder_and_qk_norm=True, tie_word_embeddings=True), 1.279e9),
    "k-exaone": Public(plain("exaone_moe", 48, 6144, 64, 8, 18432, 153600, head_dim=128,
        is_moe_layer=[False] + [True] * 47, layer_types=kinds(48, 4), moe_intermediate_size=2048,
        num_experts=128, num_experts_per_tok=8, num_shared_experts=1, sliding_window=128), 236e9, 23e9),
    "apertus-70b": Public(plain("apertus", 80, 8192, 64, 8, 43008, 131072, hidden_act="xielu",
        post_norm=False, qk_norm=True), 70.6e9),
    "granite-4-micro": Public(plain("granitemoehybrid", 40, 2560, 40, 8, 8192, 100352, mamba_d_conv=4,
        mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_n_heads=128, num_local_experts=0,
        layer_types=["attention"] * 40, num_experts_per_tok=0, shared_intermediate_size=8192,
        tie_word_embeddings=True), 3.4e9),
    "trinity-mini": Public(plain("afmoe", 32, 2048, 32, 4, 6144, 200192, head_dim=128, num_experts=128,
        global_attn_every_n_layers=4, layer_types=kinds(32, 4), moe_intermediate_size=1024,
        num_dense_layers=2, num_expert_groups=1, num_experts_per_tok=8, num_limited_groups=1,
        num_shared_experts=1, load_balance_coeff=0.001, mup_enabled=True, route_norm=True,
        route_scale=2.826, score_func="sigmoid", sliding_window=2048), 26.1e9),
    "minicpm-2b": Public(plain("minicpm", 40, 2304, 36, 36, 5760, 122753, scale_emb=12, scale_depth=1.4,
        dim_model_base=256, tie_word_embeddings=True), 2_724_880_896),
    "minimax-text-01": Public(plain("minimax_text_01", 80, 6144, 64, 8, 9216, 200064, head_dim=128,
        num_local_experts=32, num_experts_per_tok=2, attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10,
        shared_intermediate_size=0), 456e9, 45.9e9),
    "deepseek-v2-lite": Public(plain("deepseek_v2", 27, 2048, 16, 16, 10944, 102400, moe_layer_freq=1,
        first_k_dense_replace=1, **latent(None, 128, 128), **experts(64, 6, 1408, 2)), 15_706_484_224, 2.4e9),
    "glm-4.7-flash": Public(plain("glm4_moe_lite", 47, 2048, 20, 20, 10240, 154880, moe_layer_freq=1,
        first_k_dense_replace=1, **latent(768, 192, 256), **experts(64, 4, 1536, 1)), 30e9),
    "stablelm-2-1.6b": Public(plain("stablelm", 24, 2048, 32, 32, 5632, 100352, use_qkv_bias=True,
        qk_layernorm=False, partial_rotary_factor=0.25), 1_644_515_328),
    "starcoder": Public({"model_type": "gpt_bigcode", "multi_query": True, "n_embd": 6144, "n_head": 48,
        "n_inner": 24576, "n_layer": 40, "n_positions": 8192, "vocab_size": 49152, "inference_runner": 0,
        "pre_allocate_kv_cache": False, "summary_type": "cls_index", "validate_runner_input": True,
        "summary_use_proj": True}, 15_517_456_384),
    "persimmon-8b": Public(plain("persimmon", 36, 4096, 64, 64, 16384, 262144, hidden_act="relu2",
        qk_layernorm=True, partial_rotary_factor=0.5), 9.4e9),
    "codegen-16b": Public({"model_type": "codegen", "n_embd": 6144, "n_head": 24, "n_layer": 34,
        "n_positions": 2048, "n_ctx": 2048, "rotary_dim": 64, "vocab_size": 51200}, 16.03e9),
    "smollm2-1.7b": Public(plain("llama", 24, 2048, 32, 32, 8192, 49152, is_llama_config=True,
        tie_word_embeddings=True) | {"transformers.js_config": {"dtype": "q4"}}, 1_711_376_384),
    "pythia-6.9b": Public(plain("gpt_neox", 32, 4096, 32, 32, 16384, 50432, hidden_act="gelu",
        rotary_pct=0.25, use_parallel_residual=True), 6_857_302_016),
    "qwen2-vl-7b": Public(plain("qwen2_vl", 28, 3584, 28, 4, 18944, 152064,
        vision_config={"depth": 32}, vision_token_id=151654, sliding_window=32768,
        use_sliding_window=False, max_window_layers=28), 7_615_616_512),
}  # fmt: skip
