"""The check of figures finds what it is for, and nothing in a plain figure."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from legible import flaws


@pytest.fixture
def ax():
    with mpl.rc_context(mpl.rcParamsDefault):  # other tests set the style of the collection
        yield Figure(layout="none").subplots()


def test_a_plain_figure_has_no_flaws(ax):
    ax.plot([1, 2, 3])
    ax.set(xlabel="time [s]", ylabel="speed", title="It rises")
    assert flaws(ax.figure) == []


def test_a_text_on_another_is_found(ax):
    ax.text(0.5, 0.5, "first")
    ax.text(0.51, 0.5, "second")
    assert flaws(ax.figure) == ["'first' over 'second'"]


def test_a_text_on_the_numbers_of_an_axis_is_found(ax):
    ax.text(0.35, -0.06, "below the axis")
    assert any("below the axis" in said for said in flaws(ax.figure))


def test_a_text_beyond_the_edge_is_found(ax):
    ax.figure.text(0.9, 0.5, "a text that is too long for its place")
    assert flaws(ax.figure) == ["'a text that is too long for its place' is cut by the edge"]


def test_a_bar_beyond_the_frame_is_found(ax):
    ax.barh([0, 1], [3.0, 8.0])
    ax.set_xlim(0, 5)
    assert flaws(ax.figure) == ["a bar that ends at 8, 1.4 is cut"]


def test_two_bars_with_one_label_are_found(ax):
    ax.barh([0, 1], [3.0, 2.0])
    ax.set_yticks([0, 1], ["TP8 PP4", "TP8 PP4"])
    assert flaws(ax.figure) == ["label 'TP8 PP4' stands twice"]
