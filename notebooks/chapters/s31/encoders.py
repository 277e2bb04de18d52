"""Encoder-decoders, encoders, image models and recurrent networks as tables of operators."""

from collections.abc import Sequence
from functools import partial

from relparallel.workload._blocks import attention, embedding, feed_forward, linear, norm, pointwise
from relparallel.workload.encoders import block_norms, encoder_layers, head_width
from relparallel.workload.layer_operators import Operator, OperatorTable

_CLASSES = 1000  # of ImageNet


def encoder_decoder(
    encoder: int,
    decoder: int,
    hidden: int,
    heads: int,
    ffn: int,
    vocabulary: int,
    *,
    source: int = 512,
    target: int = 512,
    batch: int = 1,
    head_size: int | None = None,
    biases: bool = True,
) -> OperatorTable:
    """Transformer that reads a sequence and writes another: Vaswani et al., 2017, sections 3.1-3.4.

    One table of the vocabulary serves both inputs and the output; positions cost no parameters, and
    a norm follows every block. ``source`` and ``target`` are the tokens read and written, ``batch``
    pairs of sequences in one pass; a head is hidden / heads wide where ``head_size`` is omitted;
    ``biases``: whether the feed-forward blocks have biases and norms a shift; attention has none.

    >>> encoder_decoder(6, 6, 512, 8, 2048, 37000).parameters
    63045632
    """
    width = head_width(hidden, heads, head_size)
    layers = (("encoder: ", encoder, source), ("decoder: ", decoder, target))
    rows = [embedding("embedding", batch * (source + target), hidden, vocabulary)]
    for label, times, length in layers:
        attend = partial(
            attention, batch, length, hidden, heads, width=width, times=times, bias=False
        )
        blocks = 2 + (label == "decoder: ")
        rows += attend(label=label)
        rows += attend(label="cross: ", source=source) if blocks == 3 else ()
        rows += feed_forward(
            batch * length, hidden, ffn, times=times, activation="relu", bias=biases, label=label
        )
        rows += block_norms(batch * length, hidden, times * blocks, biases, label)
    rows += [linear("logits", batch * target, vocabulary, hidden, copies=0)]
    return OperatorTable(name="encoder-decoder", operators=tuple(rows))


def t5(
    layers: int,
    hidden: int,
    heads: int,
    ffn: int,
    *,
    head_size: int = 64,
    vocabulary: int = 32128,
    batch: int = 1,
) -> OperatorTable:
    """T5: an encoder and a decoder without biases, with a learned offset for each token distance.

    `encoder_decoder` with ``layers`` layers in each stack and 512 tokens, 32 offsets per head in
    either and one more norm at the end of each. Raffel et al., "Exploring the Limits of Transfer
    Learning", JMLR 2020, sections 2.1 and 3.7.

    >>> t5(12, 768, 12, 3072).parameters
    222903552
    """
    sizes = layers, layers, hidden, heads, ffn, vocabulary
    base, length = encoder_decoder(*sizes, batch=batch, head_size=head_size, biases=False), 512
    extra = [
        operator
        for label in ("encoder: ", "decoder: ")
        for operator in (
            pointwise(
                f"{label}offsets", "lookup", batch * heads * length, length, parameters=32 * heads
            ),
            norm(f"{label}last norm", batch * length, hidden, shift=False),
        )
    ]
    return OperatorTable(name="T5", operators=(*base.operators, *extra))


def vision_transformer(
    layers: int,
    hidden: int,
    heads: int,
    *,
    ffn: int | None = None,
    patch: int = 16,
    image: int = 224,
    batch: int = 1,
) -> OperatorTable:
    """Vision Transformer: patches of an image as tokens, with one more token that is classified.

    ``patch`` and ``image`` are sides [pixels], the first a divisor; a feed-forward block is 4
    hidden wide where ``ffn`` is omitted. With the linear classifier. Dosovitskiy et al., "An Image
    Is Worth 16x16 Words", 2021, section 3.1 and table 1.

    >>> vision_transformer(24, 1024, 16).parameters
    304326632
    """
    if image % patch:
        raise ValueError(f"patch must divide image = {image}, got {patch}")
    patches = (image // patch) ** 2
    length = patches + 1
    rows = [
        linear("patches", batch * patches, hidden, 3 * patch**2, bias=True),
        embedding("class token", batch, hidden, 1),
        embedding("positions", batch * length, hidden, length),
        *encoder_layers(batch, length, layers, hidden, heads, ffn),
        norm("last norm", batch * length, hidden),
        linear("classifier", batch, _CLASSES, hidden, bias=True),
    ]
    return OperatorTable(name="ViT", operators=tuple(rows))


def swin(
    channels: int,
    depths: Sequence[int] = (2, 2, 6, 2),
    *,
    window: int = 7,
    patch: int = 4,
    image: int = 224,
    head_size: int = 32,
    batch: int = 1,
) -> OperatorTable:
    """Swin Transformer: attention inside windows, at resolutions that halve while channels double.

    ``channels`` are those of the first stage, of which ``head_size`` is a divisor; ``depths`` the
    blocks of each stage; ``window`` the side of a window [tokens], which fill every stage;
    ``patch`` and ``image`` sides [pixels]. With the linear classifier. Liu et al., "Swin
    Transformer", ICCV 2021, section 3 and table 1.

    >>> table = swin(96)
    >>> table.parameters, round(table.multiply_adds / 1e9, 2)
    (28288354, 4.49)
    """
    sides = _sides(depths, window, patch, image)
    if channels % head_size:
        raise ValueError(f"head_size must divide channels = {channels}, got {head_size}")
    last = channels * 2 ** (len(sides) - 1)
    tokens = batch * sides[0] ** 2
    rows = [
        linear("patches", tokens, channels, 3 * patch**2, bias=True),
        norm("patch norm", tokens, channels),
    ]
    for stage, (depth, side) in enumerate(zip(depths, sides, strict=True)):
        rows += _stage(stage, depth, batch, side, channels * 2**stage, window, head_size)
    rows += [norm("last norm", batch * sides[-1] ** 2, last)]
    rows += [linear("classifier", batch, _CLASSES, last, bias=True)]
    return OperatorTable(name="Swin", operators=tuple(rows))


def _sides(depths: Sequence[int], window: int, patch: int, image: int) -> list[int]:
    """Side of every stage [tokens]."""
    reach = patch * window * 2 ** (len(depths) - 1)
    if image % reach:
        raise ValueError(
            f"image must be a multiple of patch x window x 2^(stages - 1) = {reach}, got {image}"
        )
    return [image // patch // 2**stage for stage in range(len(depths))]


def _stage(
    stage: int, depth: int, batch: int, side: int, width: int, window: int, head_size: int
) -> tuple[Operator, ...]:
    """The blocks of one resolution, behind the merging of four patches into one."""
    tokens, heads, label = batch * side**2, width // head_size, f"stage {stage + 1}: "
    size, offsets = window**2, (2 * window - 1) ** 2
    merge = (
        norm(f"{label}merge norm", tokens, 2 * width),
        linear(f"{label}merge", tokens, width, 2 * width),
    )
    lookup = pointwise(
        f"{label}offsets",
        "lookup",
        tokens * heads,
        size,
        times=depth,
        parameters=depth * offsets * heads,
    )
    blocks = encoder_layers(tokens // size, size, depth, width, heads, 4 * width, label)
    return (*(merge if stage else ()), *blocks, lookup)


def recurrent(
    cell: str,
    inputs: int,
    hidden: int,
    *,
    layers: int = 1,
    steps: int = 1,
    batch: int = 1,
    vocabulary: int | None = None,
) -> OperatorTable:
    """Recurrent network with one tanh per state ("rnn"), or three gates and a candidate ("lstm").

    h (i + h + 1) parameters for a layer with inputs of width i, four times as many with gates. The
    weights of the state are read again at every step. With a ``vocabulary`` it is a language model:
    a table in front, logits behind. Elman, "Finding Structure in Time", 1990. Hochreiter and
    Schmidhuber, "Long Short-Term Memory", 1997. Zaremba et al., 2014 (language models).

    >>> recurrent("lstm", 1500, 1500, layers=2, vocabulary=10000).parameters
    66022000
    """
    gates = {"rnn": 1, "lstm": 4}[cell]
    tokens, columns = steps * batch, gates * hidden
    rows: list[Operator] = [linear("first inputs", tokens, columns, inputs, bias=True)]
    if layers > 1:
        rows += [linear("other inputs", tokens, columns, hidden, times=layers - 1, bias=True)]
    rows += [linear("state", batch, columns, hidden, times=steps * layers, copies=layers)]
    made = "lstm cell" if cell == "lstm" else "tanh cell"
    rows += [pointwise("cell", made, batch, hidden, times=steps * layers)]
    if vocabulary is not None:
        rows += [embedding("embedding", tokens, inputs, vocabulary)]
        rows += [linear("logits", tokens, vocabulary, hidden, bias=True)]
        rows += [pointwise("loss", "softmax", tokens, vocabulary)]
    return OperatorTable(name=cell.upper(), operators=tuple(rows))
