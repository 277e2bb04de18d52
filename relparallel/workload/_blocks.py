"""Models' shared operators: products, norms, softmax, activations, attention, feed-forward blocks.

A function here makes one operator or the few operators of a block. Sizes are whole numbers;
``times`` is how often a forward pass repeats it, each time with parameters of its own unless
``copies`` says otherwise.
"""

from dataclasses import replace
from typing import Final

from relparallel.workload.layer_operators import Operator

# FLOPs forward and backward, numbers moved forward and backward: per element of the result. One
# FLOP for each arithmetic operation or elementary function; norms and softmax as Ivanov et al. 2021
# count them.
_PER_ELEMENT: Final = {
    "norm": (7, 13, 2, 5),  # backward: one kernel for the input, one for scale and shift
    "softmax": (5, 5, 2, 3),
    "residual": (1, 1, 3, 3),
    "relu": (1, 1, 2, 3),
    "gelu": (9, 18, 2, 3),
    "swiglu": (5, 10, 3, 5),
    "rotate": (3, 3, 2, 2),
    "lookup": (0, 1, 2, 3),
    "tanh cell": (1, 3, 2, 3),
    "lstm cell": (24, 48, 7, 12),
}


def matmul(name: str, m: int, n: int, k: int, *, batch: int = 1, times: int = 1) -> Operator:
    """Products of two activations: m rows in all, each batch with a k x n operand of its own.

    The backward pass has two products of the same size, for either operand.
    """
    flops, elements = 2 * m * n * k, m * k + batch * k * n + m * n
    return Operator(
        name=name,
        kind="contraction",
        m=m,
        n=n,
        k=k,
        batch=batch,
        times=times,
        forward_flops=flops,
        backward_flops=2 * flops,
        forward_elements=elements,
        backward_elements=2 * elements,
    )


def linear(
    name: str,
    m: int,
    n: int,
    k: int,
    *,
    times: int = 1,
    copies: int | None = None,
    experts: int = 1,
    bias: bool = False,
) -> Operator:
    """Product of activations with a k x n matrix of weights, or rows spread evenly over experts."""
    core = matmul(name, m, n, k, batch=experts, times=times)
    stored = (times if copies is None else copies) * experts
    return replace(core, weights=stored * n * k, parameters=stored * n * (k + bias))


def pointwise(
    name: str, what: str, m: int, n: int, *, times: int = 1, parameters: int = 0
) -> Operator:
    """Anything that is no product, by its cost per element; parameters of all copies together."""
    flops, back_flops, moved, back_moved = (m * n * cost for cost in _PER_ELEMENT[what])
    return Operator(
        name=name,
        kind="normalisation" if what in ("norm", "softmax") else "element-wise",
        m=m,
        n=n,
        times=times,
        parameters=parameters,
        forward_flops=flops,
        backward_flops=back_flops,
        forward_elements=moved,
        backward_elements=back_moved,
    )


def norm(name: str, m: int, n: int, *, times: int = 1, shift: bool = True) -> Operator:
    """LayerNorm, or RMSNorm without the shift."""
    return pointwise(name, "norm", m, n, times=times, parameters=times * (1 + shift) * n)


def embedding(name: str, m: int, n: int, rows: int) -> Operator:
    """Rows of a table looked up, or added as positions."""
    return pointwise(name, "lookup", m, n, parameters=rows * n)


def attention_core(
    rows: int, context: int, key: int, value: int, *, groups: int, times: int = 1, label: str = ""
) -> tuple[Operator, ...]:
    """Scores, softmax, weighted sum for ``rows`` queries of all heads, ``groups`` sets of keys."""
    return (
        matmul(f"{label}scores", rows, context, key, batch=groups, times=times),
        pointwise(f"{label}softmax", "softmax", rows, context, times=times),
        matmul(f"{label}weighted sum", rows, value, context, batch=groups, times=times),
    )


def attention(
    sequences: int,
    length: int,
    hidden: int,
    heads: int,
    *,
    width: int | None = None,
    times: int = 1,
    bias: bool = True,
    source: int | None = None,
    label: str = "",
) -> tuple[Operator, ...]:
    """Full attention of sequences to themselves, or to ``source`` tokens each of an encoder."""
    width = hidden // heads if width is None else width
    tokens, inner = sequences * length, heads * width
    if source is None:
        inputs: tuple[Operator, ...] = (
            linear(f"{label}query, key, value", tokens, 3 * inner, hidden, times=times, bias=bias),
        )
    else:
        inputs = (
            linear(f"{label}query", tokens, inner, hidden, times=times, bias=bias),
            linear(
                f"{label}key, value", sequences * source, 2 * inner, hidden, times=times, bias=bias
            ),
        )
    core = attention_core(
        tokens * heads,
        source or length,
        width,
        width,
        groups=sequences * heads,
        times=times,
        label=label,
    )
    return (
        *inputs,
        *core,
        linear(f"{label}attention output", tokens, hidden, inner, times=times, bias=bias),
    )


def feed_forward(
    tokens: int,
    hidden: int,
    ffn: int,
    *,
    times: int = 1,
    activation: str = "gelu",
    bias: bool = True,
    experts: int = 1,
    label: str = "",
) -> tuple[Operator, ...]:
    """Two products with an activation between; three for a gated one, two of them one operator."""
    into = 2 * ffn if activation == "swiglu" else ffn
    return (
        linear(
            f"{label}feed-forward in", tokens, into, hidden, bias=bias, times=times, experts=experts
        ),
        pointwise(f"{label}activation", activation, tokens, ffn, times=times),
        linear(
            f"{label}feed-forward out", tokens, hidden, ffn, bias=bias, times=times, experts=experts
        ),
    )
