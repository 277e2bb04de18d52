"""Transformers with an encoder (2017, T5, BERT, Vision Transformer, Swin); recurrent networks."""

from relparallel._checks import require_int
from relparallel.workload._blocks import attention, embedding, feed_forward, linear, norm, pointwise
from relparallel.workload.layer_operators import Operator, OperatorTable


def bert(
    layers: int,
    hidden: int,
    heads: int,
    *,
    ffn: int | None = None,
    vocabulary: int = 30522,
    sequence: int = 512,
    batch: int = 1,
) -> OperatorTable:
    """BERT: an encoder with learned positions, two segments and a pooled first token.

    Feed-forward blocks are 4 hidden wide where ``ffn`` is omitted; the heads of pre-training are
    left out. Devlin et al., "BERT", 2018, section 3.

    >>> bert(12, 768, 12).parameters
    109482240
    """
    tokens = batch * sequence
    head_width(hidden, heads, None)  # refuses heads that do not divide
    rows = [
        embedding("embedding", tokens, hidden, vocabulary),
        embedding("positions", tokens, hidden, sequence),
        embedding("segments", tokens, hidden, 2),
        norm("embedding norm", tokens, hidden),
        *encoder_layers(batch, sequence, layers, hidden, heads, ffn),
        linear("pooler", batch, hidden, hidden, bias=True),
    ]
    return OperatorTable(name="BERT", operators=tuple(rows))


def encoder_layers(
    sequences: int,
    length: int,
    layers: int,
    hidden: int,
    heads: int,
    ffn: int | None,
    label: str = "",
) -> tuple[Operator, ...]:
    """Equal layers of full attention and feed-forward blocks, all with biases."""
    require_int(layers=layers, at_least=1)
    width = 4 * hidden if ffn is None else require_int(ffn=ffn, at_least=1)
    return (
        *attention(sequences, length, hidden, heads, times=layers, label=label),
        *feed_forward(sequences * length, hidden, width, times=layers, label=label),
        *block_norms(sequences * length, hidden, 2 * layers, label=label),
    )


def block_norms(
    tokens: int, hidden: int, times: int, shift: bool = True, label: str = ""
) -> tuple[Operator, ...]:
    """A norm and a sum around every block."""
    return (
        norm(f"{label}norm", tokens, hidden, times=times, shift=shift),
        pointwise(f"{label}residual", "residual", tokens, hidden, times=times),
    )


def head_width(hidden: int, heads: int, head_size: int | None) -> int:
    """Width of a head."""
    require_int(hidden=hidden, heads=heads, at_least=1)
    if head_size is not None:
        return int(require_int(head_size=head_size, at_least=1))
    if hidden % heads:
        raise ValueError(f"heads must divide hidden = {hidden}, got {heads}")
    return hidden // heads
