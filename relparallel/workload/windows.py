"""Swin Transformer: attention inside windows, at four resolutions."""

from __future__ import annotations

from collections.abc import Sequence

from relparallel._checks import require_instance, require_int
from relparallel.workload._blocks import attention, feed_forward, linear, norm, pointwise
from relparallel.workload.operators import Operator, OperatorTable


def swin(
    channels: int, depths: Sequence[int] = (2, 2, 6, 2), *, window: int = 7, patch: int = 4, image: int = 224,
    head_size: int = 32, classes: int = 1000, batch: int = 1,
) -> OperatorTable:  # fmt: skip
    """Swin Transformer: attention inside windows, at resolutions that halve while channels double.

    Liu et al., "Swin Transformer", ICCV 2021, section 3 and table 1.

    Parameters
    ----------
    channels : int
        C of the first stage, a multiple of ``head_size``.
    depths : sequence of int
        Blocks of each stage.
    window, patch, image : int
        Sides of a window [tokens], of a patch and of the image [pixels]; windows fill every stage.
    head_size : int
        Width of a head.
    classes : int
        Outputs.
    batch : int
        Images in one pass.

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
    return (
        *(merge if stage else ()),
        *attention(tokens // size, size, width, heads, times=depth, label=label),
        pointwise(
            f"{label}offsets", "lookup", tokens * heads, size, times=depth, parameters=depth * offsets * heads
        ),
        *feed_forward(tokens, width, 4 * width, times=depth, label=label),
        norm(f"{label}norm", tokens, width, times=2 * depth),
        pointwise(f"{label}residual", "residual", tokens, width, times=2 * depth),
    )
