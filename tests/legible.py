"""What a reader of a figure would stumble over."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

LEAST = 1.5, 2.5  # pixels by which texts may touch: across, and in height with its empty lines
SHARE = 0.08  # of the smaller text that another may cover


def flaws(fig: Figure) -> list[str]:
    """Texts on each other or cut by the edge, bars cut by the frame, labels given twice."""
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    shown = {label: inside for ax in fig.axes for label, inside in _labels(ax)}
    texts = [
        (text, text.get_window_extent(canvas.get_renderer()))
        for text in fig.findobj(Text)
        if text.get_visible()
        and text.get_text().strip()
        and shown.get(text, True)
        and text.get_rotation() % 90 == 0  # the frame of a slanted one is larger than its letters
    ]
    found = [
        f"{text.get_text()!r} is cut by the edge"
        for text, box in texts
        if text not in shown and not _inside(box, fig.bbox)
    ]
    found += [
        f"{a.get_text()!r} over {b.get_text()!r}"
        for (a, x), (b, y) in combinations(texts, 2)
        if _touch(x, y)
    ]
    found += [said for ax in fig.axes for said in _cut(ax)]
    return found + [
        said for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for said in _twice(axis)
    ]


def _labels(ax: Axes) -> Iterator[tuple[Text, bool]]:
    """Labels of ticks, and whether they are drawn."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        margin = 1e-9 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            inside = ax.axison and low - margin <= tick.get_loc() <= high + margin
            yield from ((tick.label1, inside), (tick.label2, inside))


def _inside(box: Bbox, whole: Bbox) -> bool:
    return box.x0 > -2 and box.y0 > -2 and box.x1 < whole.x1 + 2 and box.y1 < whole.y1 + 2


def _touch(one: Bbox, other: Bbox) -> bool:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    smaller = min(one.width * one.height, other.width * other.height)
    return width > LEAST[0] and height > LEAST[1] and width * height > SHARE * smaller


def _cut(ax: Axes) -> Iterator[str]:
    """Bars that end beyond the frame."""
    right, top = max(ax.get_xlim()), max(ax.get_ylim())
    for bars in ax.containers:
        for bar in bars if isinstance(bars, BarContainer) else ():
            end = bar.get_bbox()
            if end.x1 > right + 1e-9 * abs(right) or end.y1 > top + 1e-9 * abs(top):
                yield f"a bar that ends at {end.x1:.4g}, {end.y1:.4g} is cut"


def _twice(axis: Axis) -> Iterator[str]:
    """Labels that do not tell what they stand at apart."""
    low, high = sorted(axis.get_view_interval())
    inside = [
        tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
    ]
    yield from (
        f"label {text!r} stands twice" for text, n in Counter(inside).items() if text and n > 1
    )
