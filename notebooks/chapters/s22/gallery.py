"""Networks side by side, as a reader compares them, with the routes that join two hosts in each."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from chapters.drawing import draw_topology
from relparallel.plotting import figure
from relparallel.topology import Topology
from relparallel.topology.disjoint import disjoint_path_set


def gallery(
    topologies: Mapping[str, Topology],
    notes: Mapping[str, str],
    pairs: Mapping[str, tuple[int, int]],
    *,
    title: str = "",
    columns: int = 4,
    height: float = 1.85,
) -> Figure:
    """Topologies by their titles in the panels of one figure, row by row, with a note below each.

    In panels with a pair of hosts their disjoint routes are drawn and counted. A row is ``height``
    inches high. A notebook shows the figure only as the value of a cell.

    >>> from relparallel.topology import bcube, dcell
    >>> fig = gallery({"BCube": bcube(4, 1), "DCell": dcell(4, 1)}, {}, {"BCube": (0, 15)})
    >>> [ax.get_title(loc="left") for ax in fig.axes[:2]]
    ['BCube: 2 routes', 'DCell']
    """
    if lost := (notes.keys() | pairs.keys()) - topologies.keys():
        raise ValueError(f"notes and pairs must be for pictures, got {', '.join(sorted(lost))}")
    rows = -(-len(topologies) // columns)
    fig, panels = figure(height=rows * height, rows=rows, columns=columns, squeeze=False)
    for ax in panels.flat:
        ax.axis("off")
    for ax, (name, t) in zip(panels.flat, topologies.items(), strict=False):
        ends = [t.labels[node] for node in pairs.get(name, ())]
        found = disjoint_path_set(t, *ends, share="nodes") if ends else []
        draw_topology(t, ax, paths=found)
        count = f": {len(found)} route{'s' * (len(found) > 1)}" if found else ""
        ax.set_title(name + count, fontsize=8, pad=5)
        note = ax.text(0, -0.03, notes.get(name, ""), transform=ax.transAxes, fontsize=7, va="top")
        note.set(color="#333333", in_layout=False)  # a long note must not move the panels apart
    low, high = 0.06 / (rows * height), 1 - 0.18 / (rows * height)
    fig.text(0.007, 0.985, title, va="top", fontsize=8.5, fontweight="bold")
    fig.set_layout_engine(  # room for the notes of the last row, and for the title
        "constrained", w_pad=0.05, h_pad=0.11, hspace=0.0, rect=(0, low, 1, high - low)
    )
    fig.draw_without_rendering()
    for ax in fig.axes:
        ax.autoscale_view()  # to the size that the layout gives a panel
    plt.close(fig)  # not a second time below a cell that saves it
    return fig
