"""Pictures of ways of splitting a model."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from chapters.s33.splits import draw_split
from relparallel.parallel import Placement, Strategy
from relparallel.plotting import PALETTE, figure

WAYS = {
    "data": ({"data": 8}, {0}),
    "zero": ({"data": 8, "zero_stage": 3}, set(range(8))),
    "tensor": ({"tensor": 4, "data": 2}, {0, 1, 2, 3}),
    "pipeline": ({"pipeline": 4, "data": 2}, {0, 2, 4, 6}),
    "expert": ({"data": 8, "expert": 4}, {0, 1, 2, 3}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_split_shows_every_part_of_the_model_and_who_stops(way):
    degrees, stopped = WAYS[way]
    strategy = Strategy(**degrees)
    _, ax = figure(height=2.0)
    draw_split(Placement(strategy=strategy), ax)
    held = np.array([image.get_array() for image in ax.images])
    assert held.shape[0] == 8
    assert held.any(axis=0).all()
    if way != "expert":  # all but the layers without experts stand once for each copy
        assert held.sum() == 64 * (8 if way == "data" else 1 if way == "zero" else 2)
    frames = [p for p in ax.patches if isinstance(p, Rectangle) and not p.get_fill()]
    red = [to_hex(frame.get_edgecolor()).upper() == PALETTE["vermilion"] for frame in frames]
    assert set(np.flatnonzero(red)) == stopped
    plt.close("all")
