"""Pictures of how a model is split: what each GPU holds, who sends to whom, who stops together."""

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from numpy.typing import NDArray

from relparallel.parallel import Placement
from relparallel.parallel.group_bandwidth import groups_of
from relparallel.plotting import PALETTE

_SIDE = 8  # rows of layers and columns of a layer's width, in the picture of a model
_FAILED = 0  # GPU
_INNER = ("tensor", "context", "pipeline", "expert")


def draw_split(placement: Placement, ax: Axes, *, gpus_per_node: int = 4) -> Axes:
    """The GPUs of a job, drawn node by node, with the part of the model that each one holds.

    A square for each GPU: layers from top to bottom, the width of a layer from left to right, what
    it holds in blue, the share of the batch that it works on below. Arrows join groups that send
    activations or tokens (blue) and replicas, which sum gradients (grey). The first GPU fails and
    is crossed out; a red frame: stops with it.

    >>> from relparallel.parallel import Strategy
    >>> from relparallel.plotting import figure
    >>> fig, ax = figure(height=2.0)
    >>> len(draw_split(Placement(strategy=Strategy(tensor=4, data=2)), ax).texts)
    1
    """
    gpus = placement.strategy.gpus
    place = np.array(
        [(1.4 * (g % gpus_per_node), -2.0 * (g // gpus_per_node)) for g in range(gpus)]
    )
    stops, held, share = _stopped(placement), _held(placement), _shares(placement)
    for gpu, (x, y) in enumerate(place):
        extent = (x, x + 1, y, y + 1)
        ax.imshow(
            held[gpu],
            extent=extent,
            cmap="Blues",
            vmin=0,
            vmax=1.4,
            interpolation="nearest",
            zorder=2,
        )
        edge = PALETTE["vermilion"] if gpu in stops else PALETTE["grey"]
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=edge, linewidth=1.6, zorder=3))
        ax.add_patch(
            Rectangle((x, y - 0.2), 1, 0.12, color=PALETTE["grey"], alpha=0.25, linewidth=0)
        )
        begin, width = share[gpu]
        ax.add_patch(
            Rectangle((x + begin, y - 0.2), width, 0.12, color=PALETTE["orange"], linewidth=0)
        )
    for degree, color in [("data", "grey"), *((name, "blue") for name in _INNER)]:
        for group in (
            groups_of(placement, degree) if getattr(placement.strategy, degree) > 1 else ()
        ):
            for one, other in pairwise(group):
                ax.add_patch(_arrow(place[one], place[other], PALETTE[color]))
    x, y = place[_FAILED] + 0.5
    ax.text(x, y, "×", color=PALETTE["vermilion"], fontsize=22, ha="center", va="center", zorder=5)
    low, high = place.min(axis=0), place.max(axis=0)
    ax.set(xlim=(low[0] - 0.1, high[0] + 1.1), ylim=(low[1] - 0.25, high[1] + 1.1), aspect="equal")
    ax.axis("off")
    return ax


def _held(placement: Placement) -> NDArray[np.float64]:
    """Part of the model on each GPU, [gpus, layers, width]: 1 where it is held."""
    s = placement.strategy
    held = np.zeros((s.gpus, _SIDE, _SIDE))
    stage, slice_ = _number(placement.stages.T, s.gpus), _number(placement.tensor_groups, s.gpus)
    piece, expert = (
        _number(placement.shard_groups, s.gpus),
        _number(groups_of(placement, "expert"), s.gpus),
    )
    row, column = np.mgrid[:_SIDE, :_SIDE]
    for gpu in range(s.gpus):
        own = (row * s.pipeline // _SIDE == stage[gpu]) & (
            column * s.tensor // _SIDE == slice_[gpu]
        )
        if s.expert > 1:  # every other layer is one of experts
            own &= (row % 2 == 0) | (column * s.expert // _SIDE == expert[gpu])
        if s.zero_stage == 3:
            own &= (row * _SIDE + column) * s.shard_group // _SIDE**2 == piece[gpu]
        held[gpu] = own
    return held


def _shares(placement: Placement) -> NDArray[np.float64]:
    """Begin and width of the tokens that each GPU works on, of all of the batch, [gpus, 2]."""
    s = placement.strategy
    sequence = _number(placement.data_groups, s.gpus), _number(placement.context_groups, s.gpus)
    begin = (sequence[0] * s.context + sequence[1]) / (s.data * s.context)
    return np.column_stack([begin, np.full(s.gpus, 1 / (s.data * s.context))])


def _stopped(placement: Placement) -> set[int]:
    """GPUs that cannot go on: the replica, the group of experts, all who share states with them."""
    s, stops = placement.strategy, {_FAILED}
    kinds = [placement.replicas, *([groups_of(placement, "expert")] if s.expert > 1 else [])]
    kinds += [placement.shard_groups] if s.zero_stage == 3 else []
    for groups in kinds:
        stops |= set(groups[np.isin(groups, sorted(stops)).any(axis=1)].ravel().tolist())
    return stops


def _number(groups: NDArray[np.int64], gpus: int) -> NDArray[np.int64]:
    """Place of every GPU in its group."""
    found = np.zeros(gpus, dtype=np.int64)
    found[groups] = np.arange(groups.shape[1])
    return found


def _arrow(one: NDArray[np.float64], other: NDArray[np.float64], color: str) -> FancyArrowPatch:
    """Arrow from a square to a later one: to its neighbour, down a row, or over the others."""
    right, down = other[0] - one[0], one[1] - other[1]
    shifts = ((0.5, -0.24), (0.5, 1.0)) if down else ((1.0, 0.5), (0.0, 0.5))
    if not down and right > 2:
        shifts = ((0.5, 1.0), (0.5, 1.0))
    begin, end = ((x + dx, y + dy) for (x, y), (dx, dy) in zip((one, other), shifts, strict=True))
    bend = -0.3 if shifts[0] == shifts[1] else 0.0
    return FancyArrowPatch(
        begin,
        end,
        arrowstyle="<|-|>",
        mutation_scale=6,
        connectionstyle=f"arc3,rad={bend}",
        color=color,
        linewidth=0.9,
        shrinkA=0.5,
        shrinkB=0.5,
        zorder=4,
    )
