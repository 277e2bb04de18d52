"""Encoder-decoders, encoders, image models and recurrent networks as tables of operators."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from relparallel._checks import require_choice, require_flag, require_instance, require_int
from relparallel.workload._blocks import attention, embedding, feed_forward, linear, norm, pointwise
from relparallel.workload.encoders import block_norms, encoder_layers, head_width
from relparallel.workload.operators import Operator, OperatorTable


def encoder_decoder(
    encoder: int, decoder: int, hidden: int, heads: int, ffn: int, vocabulary: int, *,
    source: int = 512, target: int = 512, batch: int = 1, head_size: int | None = None, biases: bool = True,
) -> OperatorTable:  # fmt: skip
    """Transformer that reads one sequence and writes another.

    Vaswani et al., "Attention Is All You Need", 2017, sections 3.1 to 3.4.

    Parameters
    ----------
    encoder, decoder, hidden, heads, ffn, vocabulary : int
        Layers of the two stacks, and sizes; one table of the vocabulary serves both inputs and the output.
    source, target, batch : int
        Tokens read and written, and pairs of sequences in one pass.
    head_size : int, optional
        Width of a head; hidden / heads where omitted.
    biases : bool
        Whether the feed-forward blocks have biases and norms a shift; attention has none.

    Returns
    -------
    OperatorTable
        Positions cost no parameters, and a norm follows every block.

    Examples
    --------
    >>> encoder_decoder(6, 6, 512, 8, 2048, 37000).parameters
    63045632
    """
    require_int(encoder=encoder, decoder=decoder, vocabulary=vocabulary, at_least=1)
    require_int(source=source, target=target, batch=batch, ffn=ffn, at_least=1)
    require_flag(biases=biases)
    width = head_width(hidden, heads, head_size)
    layers = (("encoder: ", encoder, source), ("decoder: ", decoder, target))
    rows = [embedding("embedding", batch * (source + target), hidden, vocabulary)]
    for label, times, length in layers:
        attend = partial(attention, batch, length, hidden, heads, width=width, times=times, bias=False)
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
    layers: int, hidden: int, heads: int, ffn: int, *, head_size: int = 64, vocabulary: int = 32128,
    source: int = 512, target: int = 512, batch: int = 1,
) -> OperatorTable:  # fmt: skip
    """T5: an encoder and a decoder without biases, with a learned offset for each distance of two tokens.

    Raffel et al., "Exploring the Limits of Transfer Learning", JMLR 2020, sections 2.1 and 3.7.

    Parameters
    ----------
    layers, hidden, heads, ffn, head_size, vocabulary : int
        Layers of the encoder, and as many of the decoder, and sizes.
    source, target, batch : int
        Tokens read and written, and pairs of sequences in one pass.

    Returns
    -------
    OperatorTable
        `encoder_decoder` with 32 offsets per head in either stack and one more norm at the end of each.

    Examples
    --------
    >>> t5(12, 768, 12, 3072).parameters
    222903552
    """
    require_int(layers=layers, head_size=head_size, at_least=1)
    base = encoder_decoder(
        layers, layers, hidden, heads, ffn, vocabulary, source=source, target=target, batch=batch,
        head_size=head_size, biases=False,
    )  # fmt: skip
    extra = [
        operator
        for label, length in (("encoder: ", source), ("decoder: ", target))
        for operator in (
            pointwise(f"{label}offsets", "lookup", batch * heads * length, length, parameters=32 * heads),
            norm(f"{label}last norm", batch * length, hidden, shift=False),
        )
    ]
    return OperatorTable(name="T5", operators=(*base.operators, *extra))


def vision_transformer(
    layers: int, hidden: int, heads: int, *, ffn: int | None = None, patch: int = 16, image: int = 224,
    classes: int = 1000, batch: int = 1,
) -> OperatorTable:  # fmt: skip
    """Vision Transformer: patches of an image as tokens, with one more token that is classified.

    Dosovitskiy et al., "An Image Is Worth 16x16 Words", 2021, section 3.1 and table 1.

    Parameters
    ----------
    layers, hidden, heads : int
        Sizes.
    ffn : int, optional
        Width of a feed-forward block; 4 hidden where omitted.
    patch, image, classes, batch : int
        Sides of a patch and of the square image [pixels], the first a divisor; outputs; images in one pass.

    Returns
    -------
    OperatorTable
        With the linear classifier.

    Examples
    --------
    >>> vision_transformer(24, 1024, 16).parameters
    304326632
    """
    require_int(patch=patch, image=image, classes=classes, batch=batch, at_least=1)
    head_width(hidden, heads, None)
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
        linear("classifier", batch, classes, hidden, bias=True),
    ]
    return OperatorTable(name="ViT", operators=tuple(rows))


def swin(
    channels: int, depths: Sequence[int] = (2, 2, 6, 2), *, window: int = 7, patch: int = 4, image: int = 224,
    head_size: int = 32, classes: int = 1000, batch: int = 1,
) -> OperatorTable:  # fmt: skip
    """Swin Transformer: attention inside windows, at resolutions that halve while channels double.

    Liu et al., "Swin Transformer", ICCV 2021, section 3 and table 1.

    Parameters
    ----------
    channels, head_size : int
        C of the first stage, and the width of a head, a divisor.
    depths : sequence of int
        Blocks of each stage.
    window, patch, image : int
        Sides of a window [tokens], of a patch and of the image [pixels]; windows fill every stage.
    classes, batch : int
        Outputs, and images in one pass.

    Returns
    -------
    OperatorTable
        With the linear classifier.

    Examples
    --------
    >>> table = swin(96)
    >>> table.parameters, round(table.multiply_adds / 1e9, 2)
    (28288354, 4.49)
    """
    require_int(window=window, patch=patch, image=image, classes=classes, batch=batch, at_least=1)
    require_int(channels=channels, head_size=head_size, at_least=1)
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
    rows += [linear("classifier", batch, classes, last, bias=True)]
    return OperatorTable(name="Swin", operators=tuple(rows))


def _sides(depths: Sequence[int], window: int, patch: int, image: int) -> list[int]:
    """Side of every stage [tokens]."""
    require_instance(Sequence, depths=depths)
    for depth in depths:
        require_int(depths=depth, at_least=1)
    if not 1 <= len(depths) <= 16:
        raise ValueError(f"depths must hold 1 to 16 stages, got {depths!r}")
    reach = patch * window * 2 ** (len(depths) - 1)
    if image % reach:
        raise ValueError(
            f"image must be a multiple of patch x window x 2^(stages - 1) = {reach}, got {image} "
            f"with patch {patch} and window {window}"
        )
    return [image // patch // 2**stage for stage in range(len(depths))]


def _stage(
    stage: int, depth: int, batch: int, side: int, width: int, window: int, head_size: int
) -> tuple[Operator, ...]:
    """The blocks of one resolution, behind the merging of four patches into one."""
    tokens, heads, label = batch * side**2, width // head_size, f"stage {stage + 1}: "
    size, offsets = window**2, (2 * window - 1) ** 2
    merge = (norm(f"{label}merge norm", tokens, 2 * width), linear(f"{label}merge", tokens, width, 2 * width))
    lookup = pointwise(
        f"{label}offsets", "lookup", tokens * heads, size, times=depth, parameters=depth * offsets * heads
    )
    blocks = encoder_layers(tokens // size, size, depth, width, heads, 4 * width, label)
    return (*(merge if stage else ()), *blocks, lookup)


_GATES: Final = {"rnn": 1, "lstm": 4}


def recurrent(
    cell: str, inputs: int, hidden: int, *, layers: int = 1, steps: int = 1, batch: int = 1,
    vocabulary: int | None = None,
) -> OperatorTable:  # fmt: skip
    """Recurrent network with one tanh per state, or three gates and a candidate (long short-term memory).

    Parameters
    ----------
    cell : {"rnn", "lstm"}
        What makes a state.
    inputs, hidden, layers, steps, batch : int
        Widths of an input and of the state; layers; steps and sequences of one pass.
    vocabulary : int, optional
        Words of a language model around it: a table in front, logits behind.

    Returns
    -------
    OperatorTable
        h (i + h + 1) parameters for a layer with inputs of width i, four times as many with gates. The
        weights of the state are read again at every step. Elman, "Finding Structure in Time", 1990.
        Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997. Zaremba et al., 2014 (language models).

    Examples
    --------
    >>> recurrent("lstm", 1500, 1500, layers=2, vocabulary=10000).parameters
    66022000
    """
    gates = _GATES[require_choice(tuple(_GATES), cell=cell)]
    require_int(inputs=inputs, hidden=hidden, layers=layers, steps=steps, batch=batch, at_least=1)
    tokens, columns = steps * batch, gates * hidden
    rows: list[Operator] = [linear("first inputs", tokens, columns, inputs, bias=True)]
    if layers > 1:
        rows += [linear("other inputs", tokens, columns, hidden, times=layers - 1, bias=True)]
    rows += [linear("state", batch, columns, hidden, times=steps * layers, copies=layers)]
    made = "lstm cell" if cell == "lstm" else "tanh cell"
    rows += [pointwise("cell", made, batch, hidden, times=steps * layers)]
    if vocabulary is not None:
        require_int(vocabulary=vocabulary, at_least=1)
        rows += [embedding("embedding", tokens, inputs, vocabulary)]
        rows += [linear("logits", tokens, vocabulary, hidden, bias=True)]
        rows += [pointwise("loss", "softmax", tokens, vocabulary)]
    return OperatorTable(name=cell.upper(), operators=tuple(rows))
