"""Published sizes and operations of models, from `workload`."""

import re
from typing import Final

from chapters import s31
from evidence.claims._rows import model_of
from evidence.claims.registry import Rows
from relparallel import hardware, units, workload
from relparallel.published import Fact
from relparallel.workload.precision import NumberFormat


def _first(text: str) -> int:
    """Leading number of "37000 shared"."""
    return int(text.split(" ")[0])


def _list(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def encoder_contractions(B: int, L: int, H: int, I: int, U: int) -> tuple[float, float]:  # noqa: E741
    """GFLOP of the products, forward and both passes."""
    products = s31.encoder_layer(B, L, I, H, U).query("`class` == 'contraction'")
    forward = products["flops"][products["pass"] == "forward"].sum()
    return float(forward) / units.GFLOP, float(products["flops"].sum()) / units.GFLOP


def encoder_shares(B: int, L: int, H: int, I: int, U: int) -> tuple[float, ...]:  # noqa: E741
    """Percentages by class."""
    layer = s31.encoder_layer(B, L, I, H, U)
    share = 100 * layer.groupby("class")["flops"].sum() / layer["flops"].sum()
    return tuple(float(share[kind]) for kind in workload.KINDS)


_KERNELS = (
    "three forward passes of the published algorithms on an ideal memory; the paper measured its "
    "kernels, "
    "with masks, dropout and caches"
)


def flash_traffic() -> tuple[float, float, float, float]:
    """GB and ms of 64 x 16 heads of 1024 tokens; backward counts as two forward passes."""
    counts = (
        s31.standard_attention_accesses(1024, 64),
        s31.flash_attention_accesses(1024, 64, 51200),
    )
    moved = [3 * 64 * 16 * 2 * count for count in counts]
    rate = hardware.accelerator("a100-40gb").memory_bandwidth
    standard, tiled = (size / rate / units.MILLISECOND for size in moved)
    return moved[0] / units.GB, moved[1] / units.GB, standard, tiled


# columns of Simonyan & Zisserman 2015, table 1
_WEIGHT_LAYERS = {"A": 11, "B": 13, "D": 16, "E": 19}


def vgg_parameters(fact: Fact, image: int, classes: int) -> float:
    """Sum over the layers of the configuration that the row names."""
    letter = re.match(r"configuration (\w)", fact.inputs_text)
    assert letter, fact.inputs_text
    graph = workload.layer_graph(
        f"vgg-{_WEIGHT_LAYERS[letter[1]]}", image=image, classes=classes, element_bytes=1
    )
    return graph.totals["parameter_bytes"]


def resnet_parameters(fact: Fact, classes: int) -> float:
    """Sum over layers of the depth whose blocks the row counts: three layers each, and two more."""
    blocks = [int(count) for count in re.findall(r"\d+", fact.inputs_text.partition(";")[0])]
    graph = workload.layer_graph(f"resnet-{3 * sum(blocks) + 2}", classes=classes, element_bytes=1)
    return graph.totals["parameter_bytes"]


def half_limits(exponent_bits: int, mantissa_bits: int) -> tuple[float, float, float]:
    """Smallest subnormal, smallest normal and largest number."""
    half = NumberFormat(exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    return half.smallest, half.smallest_normal, half.largest


def half_underflow(
    mean: float, deviation: float, first_scale: float, second_scale: float
) -> tuple[float, float]:
    """Shares that become zero at two loss scales."""
    under, _ = s31.lost_gradients([first_scale, second_scale], mean, deviation)
    return float(under[0]), float(under[1])


def llama_parameters(
    layers: int,
    h: int,
    ffn: str,
    heads: int,
    kv_heads: int,
    vocab: int,
    experts: int = 1,
    top_k: int = 1,
) -> float:
    """Gated, with grouped queries, untied, without biases; the inputs read "14336 (SwiGLU)"."""
    return workload.Transformer(
        layers=layers,
        hidden=h,
        heads=heads,
        vocabulary=vocab,
        sequence=8192,
        ffn=_first(ffn),
        kv_heads=kv_heads,
        gated=True,
        experts=experts,
        active_experts=top_k,
        tied=False,
        learned_positions=False,
        biases=False,
    ).parameters


ROWS: Final[Rows] = {
    # Heads do not change the count, and those printed for GPT-3 1.3B and 13B do not divide h.
    "MODEL-GPT2-* MODEL-GPT3-* | parameters": (
        lambda fact: model_of(fact, heads=1).parameters,
        {
            **dict.fromkeys(
                ("MODEL-GPT2-117M", "MODEL-GPT2-345M", "MODEL-GPT2-762M", "MODEL-GPT2-1542M"),
                "a naming: the paper's count fits a vocabulary of 40,478 tokens, that of the first "
                "GPT; the released model has 50,257",
            ),
            "MODEL-GPT3-350M": "a naming: the sizes are those of GPT-2 345M and give 356M",
            "MODEL-GPT3-175B": "a naming: the sizes give 174.6B, the table repeats the name",
        },
    ),
    "MODEL-GPT3-flops MODEL-LLAMA3-flops": lambda model, tokens: (
        6 * workload.transformer(model).parameters * tokens
    ),
    "MODEL-TRF-*": (
        lambda encoder, decoder, h, heads, ffn, vocab: (
            s31.encoder_decoder(encoder, decoder, h, heads, ffn, _first(vocab)).parameters
        ),
        dict.fromkeys(
            ("MODEL-TRF-base", "MODEL-TRF-big"),
            "a part left out: the vocabulary is printed as about 37,000; 41,000 would give the "
            "base model's 65M, 36,000 the big one's 213M, and no number both",
        ),
    ),
    "MODEL-T5-*": (
        lambda encoder, h, heads, ffn, head_dim, vocab: (
            s31.t5(encoder, h, heads, ffn, head_size=head_dim, vocabulary=_first(vocab)).parameters
        ),
        {
            "MODEL-T5-small": "a rounding: 60.5M is printed as 60 million",
            "MODEL-T5-base": "a rounding: 222.9M is printed as 220 million",
            "MODEL-T5-large": "a rounding: the sizes give 738M, which the released model has as "
            "well; the paper rounds up to 770M",
            "MODEL-T5-3B": "a part left out: without the embedding the sizes give 2.82 billion",
        },
    ),
    "MODEL-BERT-*": (
        lambda layers, h, heads, vocab, s: (
            s31.bert(layers, h, heads, vocabulary=vocab, sequence=s).parameters
        ),
        {
            "MODEL-BERT-base": "a part left out: the heads of pre-training would bring 109.5M to "
            "110.1M",
            "MODEL-BERT-large": "a rounding: 335.1M, or 336.2M with the heads of pre-training, is "
            "printed as 340M",
        },
    ),
    "MODEL-VIT-*": (
        lambda layers, h, ffn, heads, patch, image: (
            s31.vision_transformer(layers, h, heads, ffn=ffn, patch=patch, image=image).parameters
        ),
        {
            "MODEL-VIT-B": "a part left out: without the head of 1,000 classes the sizes give "
            "85.8M",
            "MODEL-VIT-L": "a naming: patches of 16 give 304.3M; with patches of 32 it would be "
            "306.5M",
        },
    ),
    "MODEL-SWIN-* | parameters": lambda C, depths, window, patch, image, head_dim: (
        s31.swin(
            C, _list(depths), window=window, patch=patch, image=image, head_size=head_dim
        ).parameters
    ),
    "MODEL-SWIN-* | multiply-adds*": lambda C, depths, window, patch, image: (
        s31.swin(C, _list(depths), window=window, patch=patch, image=image).multiply_adds
    ),
    "MODEL-DEEPSEEK-* MODEL-QWEN3-* MODEL-BLOOM-* | parameters": (
        lambda model: workload.transformer(model).parameters,
        {
            "MODEL-BLOOM-176B": "a part left out: the norm behind the embedding, 28,672 "
            "parameters, which our layers do not have"
        },
    ),
    "MODEL-* | active*": (
        lambda model: workload.transformer(model).active_parameters,
        {
            "MODEL-DEEPSEEK-V3-active": "a part left out: without the input embedding the sizes "
            "give 36.6 billion",
            "MODEL-QWEN3-30B-active": "a rounding: 3.353 billion is printed as 3.3",
        },
    ),
    "MODEL-LSTM-*": lambda inputs, h, layers, vocab: (
        s31.recurrent("lstm", inputs, h, layers=layers, vocabulary=vocab).parameters
    ),
    # Numbers read or written in tiles, and without.
    "flash_count": lambda N, d, M: (
        s31.flash_attention_accesses(N, d, M),
        s31.standard_attention_accesses(N, d),
    ),
    "dmayn_flop": encoder_contractions,
    "dmayn_shares": (
        encoder_shares,
        {
            "dmayn_shares": "a part left out: how many operations a normalised or an activated "
            "number counts for; the products' share agrees"
        },
    ),
    "flash_hbm": (flash_traffic, {"flash_hbm": _KERNELS}),
    "MODEL-VGG* | parameters": vgg_parameters,
    "MODEL-RESNET* | parameters": resnet_parameters,
    "fp16_limits": half_limits,
    "fp16_underflow": half_underflow,
    "MODEL-LLAMA3-* MODEL-MIXTRAL-total | parameters": llama_parameters,
}
