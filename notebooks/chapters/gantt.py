"""Drawing a `Timeline`: one row per resource, one box per task."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from relparallel._checks import require_instance, require_int, require_real
from relparallel.parallel.timeline import Timeline
from relparallel.plotting import PALETTE

__all__ = ["draw_timeline"]

_COLORS: Final = {
    "forward": "blue",
    "backward": "orange",
    "backward_input": "orange",
    "backward_weight": "green",
    "extra": "grey",
}
_OTHERS: Final = ("purple", "vermilion", "sky", "yellow")  # kinds of other timelines, by appearance
_LOWER: Final = {"backward_weight": 0.62, "extra": 0.62}  # heights, for readers who see no colours
_LIGHTER: Final = 0.6  # how far towards white the last part's colour goes
_EDGED: Final = 300  # parts of the whole time: thinner boxes would vanish behind white edges
_NUMBERED: Final = 80  # parts of the whole time: numbers of narrower boxes would touch
_LUMINANCE: Final = (0.299, 0.587, 0.114)

Color = tuple[float, float, float]


def draw_timeline(
    timeline: Timeline, ax: Axes, *, label_up_to: int = 16, height: float = 0.86
) -> None:
    """Draw the tasks of a timeline as boxes, the first resource on top.

    Parameters
    ----------
    timeline : Timeline
        What to draw: a colour per kind, lighter for later parts. Backward passes of the weights and
        extra tasks are lower than the others.
    ax : Axes
        Where to draw.
    label_up_to : int
        Boxes wide enough carry the number of their item (from 1) when there are at most this many
        items; at least 0.
    height : float
        Height of a box in rows, in (0, 1].

    Examples
    --------
    >>> from relparallel.parallel import simulate_schedule
    >>> from relparallel.plotting import figure
    >>> fig, ax = figure(width="single", height=1.5)
    >>> draw_timeline(simulate_schedule("1f1b", stages=2, micro_batches=3), ax)
    >>> len(ax.texts)
    12
    """
    require_instance(Timeline, timeline=timeline)
    require_instance(Axes, ax=ax)
    require_int(label_up_to=label_up_to, at_least=0)
    require_real(height=height, above=0, at_most=1)
    labelled = int(timeline.item.max()) < label_up_to
    thin = timeline.makespan / _EDGED
    for kind, color, chosen in _groups(timeline):
        tall = height * _LOWER.get(kind, 1.0)
        boxes = np.column_stack((timeline.start, timeline.duration))
        for row in range(timeline.resources):
            mine = boxes[chosen & (timeline.resource == row)]
            wide = mine[:, 1] >= thin
            edges = "white" if wide.all() else ["white" if apart else color for apart in wide]
            ax.broken_barh(
                [(x, w) for x, w in mine],
                (row - tall / 2, tall),
                facecolor=color,
                edgecolor=edges,
                linewidth=0.5,
            )
        numbered = chosen & (timeline.duration >= timeline.makespan / _NUMBERED)
        for task in np.flatnonzero(numbered) if labelled else ():
            x = timeline.start[task] + timeline.duration[task] / 2
            _number(ax, x, timeline.resource[task], int(timeline.item[task]) + 1, color)
    ax.set(
        ylim=(timeline.resources - 0.5, -0.5),
        xlim=(0, timeline.makespan),
        yticks=range(timeline.resources),
    )
    ax.grid(visible=False)


def _kind_colors(timeline: Timeline) -> dict[str, Color]:
    """Colour of each kind, in order of appearance."""
    others = iter(_OTHERS)
    kinds = dict.fromkeys(timeline.kind.tolist())
    return {kind: to_rgb(PALETTE[_COLORS.get(kind) or next(others)]) for kind in kinds}


def _groups(timeline: Timeline) -> list[tuple[str, Color, np.ndarray]]:
    """Kind, colour and tasks of each kind and part."""
    groups = []
    last = max(int(timeline.part.max()), 1)
    for kind, base in _kind_colors(timeline).items():
        for part in np.unique(timeline.part):
            white = _LIGHTER * part / last
            r, g, b = (float(channel + (1 - channel) * white) for channel in base)
            groups.append((kind, (r, g, b), (timeline.kind == kind) & (timeline.part == part)))
    return groups


def _number(ax: Axes, x: float, y: float, number: int, background: Color) -> None:
    """Write a number that stands out from its background."""
    dark = (
        sum(weight * channel for weight, channel in zip(_LUMINANCE, background, strict=True)) < 0.5
    )
    ax.text(
        x,
        y,
        str(number),
        color="white" if dark else PALETTE["black"],
        ha="center",
        va="center",
        fontsize=6,
    )
