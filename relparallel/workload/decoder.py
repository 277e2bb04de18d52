"""The operators of a decoder-only transformer, on one rank of a tensor-parallel group."""

from dataclasses import replace

from relparallel._checks import require_instance, require_int
from relparallel.workload._blocks import (
    attention_core,
    embedding,
    feed_forward,
    linear,
    matmul,
    norm,
    pointwise,
)
from relparallel.workload.language_models import LatentAttention, Transformer
from relparallel.workload.layer_operators import Operator, OperatorTable
from relparallel.workload.mixers import Mixer


def operators(model: Transformer, micro_batch: int = 1, tensor: int = 1) -> OperatorTable:
    """Operators of a decoder-only transformer.

    Parameters
    ----------
    model : Transformer
        Any of its variants; layers of multi-token prediction are left out.
    micro_batch : int
        Sequences b in one pass.
    tensor : int
        Ranks t that split heads, feed-forward widths and vocabulary; a divisor of the first two.

    Returns
    -------
    OperatorTable
        What one rank does and stores: about 20 rows. Norms and router stand on every rank; tokens
        are spread evenly over experts; positions that are no parameters count as rotations. With t
        = 1 the products cost ``model.flops_per_iteration(b)`` exactly, and the parameters are
        ``model.parameters``. States of fixed size count as products that move a token in and out.
        Shoeybi et al., "Megatron-LM", 2019, section 3 (what is split).

    Examples
    --------
    >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=1024)
    >>> table = operators(gpt2, micro_batch=8)
    >>> table.flops(kind="contraction") == gpt2.flops_per_iteration(8), table.parameters == gpt2.parameters
    (True, True)
    """
    require_instance(Transformer, model=model)
    require_int(micro_batch=micro_batch, tensor=tensor, at_least=1, at_most=10**9)
    _require_split(model, tensor)
    tokens, h, shift = micro_batch * model.sequence, model.hidden, model.biases
    shard = -(-model.vocabulary // tensor)
    rows = [embedding("embedding", tokens, h, shard)]
    rows += [embedding("positions", tokens, h, model.sequence)] if model.learned_positions else []
    blocks = model.attentions + model.mixed + model.ffn_blocks
    rows += [norm("norm", tokens, h, times=blocks, shift=shift)]
    rows += _attention(model, micro_batch, tensor) if model.attentions else []
    for number, mixer in enumerate(model.mixers, 1):
        rows += _mixer(mixer, f"mixer {number}: ", micro_batch, model.sequence, tensor)
    rows += [pointwise("residual", "residual", tokens, h, times=blocks)]
    rows += _feed_forward(model, tokens, tensor)
    rows += [norm("last norm", tokens, h, shift=shift)]
    rows += [linear("logits", tokens, shard, h, copies=int(not model.tied))]
    rows += [pointwise("loss", "softmax", tokens, shard, parameters=model.vectors)]
    return OperatorTable(name="transformer", operators=tuple(rows))


def _require_split(model: Transformer, tensor: int) -> None:
    """Refuse a degree that does not divide what it splits."""
    heads = model.heads if model.latent else model.key_value_heads
    widths = {"heads of keys and values": heads}
    widths |= {"ffn": model.ffn_hidden} if model.mixture_layers < model.ffn_blocks else {}
    widths |= {f"heads of mixer {i}": mixer.heads for i, mixer in enumerate(model.mixers, 1)}
    widths |= {"expert_ffn": model.expert_hidden} if model.mixture_layers else {}
    for name, width in widths.items():
        if width % tensor:
            raise ValueError(f"tensor must divide the {width} {name} of the model, got {tensor}")


def _attention(model: Transformer, sequences: int, tensor: int) -> list[Operator]:
    tokens, h, L, d = sequences * model.sequence, model.hidden, model.attentions, model.head_width
    heads, groups = model.heads // tensor, model.key_value_heads // tensor
    key, value = (model.latent.key, model.latent.value) if model.latent else (d, d)
    rows = _latent_inputs(model, model.latent, tokens, heads) if model.latent else []
    if not model.latent:
        columns = (heads + 2 * groups) * d
        rows += [linear("query, key, value", tokens, columns, h, times=L, bias=model.biases)]
    if model.qk_norm:
        size = tokens * (heads + groups)
        rows += [pointwise("norm of queries, keys", "norm", size, d, times=L, parameters=2 * d * L)]
    if not model.learned_positions:
        vectors, turned = (heads + 1, model.latent.rope) if model.latent else (heads + groups, d)
        rows += [pointwise("rotation", "rotate", tokens * vectors, turned, times=L)]
    for looked, times in (
        (model.sequence, L - model.windowed),
        (model.window or 0, model.windowed),
    ):
        context = min(looked, model.sequence)
        if times:
            sets = sequences * groups
            rows += attention_core(tokens * heads, context, key, value, groups=sets, times=times)
    if model.latent and model.latent.index:
        rows += [matmul("index", tokens, model.sequence, model.latent.index // tensor, times=L)]
    return [*rows, linear("attention output", tokens, h, heads * value, times=L, bias=model.biases)]


def _mixer(mixer: Mixer, label: str, sequences: int, sequence: int, tensor: int) -> list[Operator]:
    """Products split by columns, the last one by rows; attention; and what a state costs."""
    tokens, times = sequences * sequence, mixer.layers
    *inner, (depth, hidden) = mixer.products
    rows = [linear(f"{label}in", tokens, -(-n // tensor), k, times=times) for k, n in inner]
    if heads := mixer.heads // tensor:
        d, seen = mixer.head_size, int(mixer.looks_at(sequence))
        rows += attention_core(
            tokens * heads, seen, d, d, groups=sequences, times=times, label=label
        )
    if mixer.index:
        keys = sequence // mixer.stride
        rows += [matmul(f"{label}index", tokens, keys, mixer.index // tensor, times=times)]
    if operations := mixer.operations // tensor:
        state = matmul(f"{label}state", tokens, operations // 2, 1, times=times)
        rows += [
            replace(
                state, forward_elements=2 * tokens * depth, backward_elements=4 * tokens * depth
            )
        ]
    rows += [linear(f"{label}out", tokens, hidden, -(-depth // tensor), times=times)]
    return [replace(rows[0], parameters=rows[0].parameters + times * mixer.vectors), *rows[1:]]


def _latent_inputs(
    model: Transformer, latent: LatentAttention, tokens: int, heads: int
) -> list[Operator]:
    """Down to the short vectors, their norms, and up to the heads of one rank."""
    h, L = model.hidden, model.attentions
    if latent.q_rank is None:
        rows = [linear("query", tokens, heads * latent.key, h, times=L)]
    else:
        rows = [
            linear("query down", tokens, latent.q_rank, h, times=L),
            norm("query norm", tokens, latent.q_rank, times=L, shift=False),
            linear("query up", tokens, heads * latent.key, latent.q_rank, times=L),
        ]
    if latent.q_rank is not None and latent.index:
        columns = latent.index_size + latent.index_heads
        rows += [linear("index query", tokens, latent.index, latent.q_rank, times=L)]
        rows += [linear("index key, weights", tokens, columns, h, times=L)]
    return [
        *rows,
        linear("key, value down", tokens, latent.kv_rank + latent.rope, h, times=L),
        norm("key, value norm", tokens, latent.kv_rank, times=L, shift=False),
        linear(
            "key, value up", tokens, heads * (latent.nope + latent.value), latent.kv_rank, times=L
        ),
    ]


def _feed_forward(model: Transformer, tokens: int, tensor: int) -> list[Operator]:
    mixed, h = model.mixture_layers, model.hidden
    activation, bias = "swiglu" if model.gated else "gelu", model.biases
    rows: list[Operator] = []
    if dense := model.ffn_blocks - mixed:
        width = model.ffn_hidden // tensor
        rows += feed_forward(tokens, h, width, times=dense, activation=activation, bias=bias)
    if mixed:
        width, routed = model.expert_hidden // tensor, tokens * model.active_experts
        rows += [linear("router", tokens, model.experts, h, times=mixed)]
        rows += feed_forward(
            routed,
            h,
            width,
            times=mixed,
            activation=activation,
            bias=bias,
            experts=model.experts,
            label="experts: ",
        )
    if mixed and model.shared_experts:
        rows += feed_forward(
            tokens,
            h,
            width,
            times=mixed * model.shared_experts,
            activation=activation,
            bias=bias,
            label="shared: ",
        )
    return rows
