"""Drawing a `Timeline`: one row per resource, one box per task."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from relparallel._checks import require_instance, require_int, require_real
from relparallel.parallel import Timeline
from relparallel.plotting import PALETTE

__all__ = ["draw_timeline"]

_COLORS: Final = tuple(to_rgb(PALETTE[name]) for name in ("blue", "orange", "green", "purple"))
_LIGHTER: Final = 0.6  # how far towards white the last part's colour goes
_LUMINANCE: Final = (0.299, 0.587, 0.114)

Color = tuple[float, float, float]


def draw_timeline(timeline: Timeline, ax: Axes, *, label_up_to: int = 16, height: float = 0.86) -> None:
    """Draw the tasks of a timeline as boxes, the first resource on top.

    Parameters
    ----------
    timeline : Timeline
        What to draw: a colour per kind in order of appearance, lighter for later parts.
    ax : Axes
        Where to draw.
    label_up_to : int
        Boxes carry the number of their item (from 1) when there are at most this many items; at least 0.
    height : float
        Height of a box in rows, in (0, 1].

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of its range.

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
    for color, chosen in _groups(timeline):
        boxes = np.column_stack((timeline.start, timeline.duration))
        for row in range(timeline.resources):
            mine = boxes[chosen & (timeline.resource == row)]
            ax.broken_barh(
                [(x, w) for x, w in mine], (row - height / 2, height),
                facecolor=color, edgecolor="white", linewidth=0.5,
            )  # fmt: skip
        for task in np.flatnonzero(chosen) if labelled else ():
            x = timeline.start[task] + timeline.duration[task] / 2
            _number(ax, x, timeline.resource[task], int(timeline.item[task]) + 1, color)
    ax.set(
        ylim=(timeline.resources - 0.5, -0.5), xlim=(0, timeline.makespan), yticks=range(timeline.resources)
    )
    ax.grid(visible=False)


def _groups(timeline: Timeline) -> list[tuple[Color, np.ndarray]]:
    """Colour and tasks of each kind and part."""
    groups = []
    last = max(int(timeline.part.max()), 1)
    for kind, base in zip(dict.fromkeys(timeline.kind.tolist()), _COLORS, strict=False):
        for part in np.unique(timeline.part):
            white = _LIGHTER * part / last
            r, g, b = (float(channel + (1 - channel) * white) for channel in base)
            groups.append(((r, g, b), (timeline.kind == kind) & (timeline.part == part)))
    return groups


def _number(ax: Axes, x: float, y: float, number: int, background: Color) -> None:
    """Write a number that stands out from its background."""
    dark = sum(weight * channel for weight, channel in zip(_LUMINANCE, background, strict=True)) < 0.5
    ax.text(
        x, y, str(number), color="white" if dark else PALETTE["black"],
        ha="center", va="center", fontsize=6,
    )  # fmt: skip
