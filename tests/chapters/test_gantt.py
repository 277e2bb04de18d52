"""Boxes of a drawn timeline."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from chapters.gantt import draw_timeline
from relparallel.parallel import simulate_schedule
from relparallel.plotting import figure


@pytest.fixture
def ax():
    fig, ax = figure(width="single", height=1.5)
    yield ax
    plt.close(fig)


def test_every_task_is_one_box_at_its_time_and_on_its_row(ax):
    timeline = simulate_schedule("interleaved_1f1b", 2, 4, 2)
    draw_timeline(timeline, ax, height=0.8)
    boxes = [path.get_extents() for rows in ax.collections for path in rows.get_paths()]
    drawn = sorted((round(box.y0 + 0.4), box.x0, box.x1) for box in boxes)
    table = zip(timeline.resource, timeline.start, timeline.finish, strict=True)
    assert np.allclose(drawn, sorted((int(r), float(s), float(f)) for r, s, f in table))
    assert ax.get_xlim() == (0, timeline.makespan)
    assert ax.get_ylim() == (1.5, -0.5)


def test_boxes_carry_numbers_when_there_are_few_items(ax):
    draw_timeline(simulate_schedule("gpipe", 2, 3), ax)
    assert sorted(text.get_text() for text in ax.texts) == sorted("123" * 4)
    ax.clear()
    draw_timeline(simulate_schedule("gpipe", 2, 3), ax, label_up_to=2)
    assert not ax.texts


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("timeline", None),
        ("ax", None),
        ("label_up_to", -1),
        ("height", 0.0),
        ("height", float("nan")),
    ],
)
def test_bad_arguments_are_refused(ax, name, bad):
    good = {"timeline": simulate_schedule("1f1b", 1, 1), "ax": ax}
    with pytest.raises((TypeError, ValueError), match=name):
        draw_timeline(**good | {name: bad})
