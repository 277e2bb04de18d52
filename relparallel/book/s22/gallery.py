"""Networks side by side, as a reader compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.figure import Figure

from relparallel.drawing import draw_topology
from relparallel.plotting import figure
from relparallel.topology import Topology


def gallery(
    topologies: Mapping[str, Topology | nx.Graph[Any]],
    notes: Mapping[str, str] | None = None,
    *,
    columns: int = 4,
    height: float = 1.85,
) -> Figure:
    """Topologies by their titles in the panels of one figure, row by row, with a note below each.

    A row is ``height`` inches high. A notebook shows the figure only as the value of a cell.

    >>> from relparallel.topology import bcube, dcell
    >>> fig = gallery({"BCube": bcube(4, 1), "DCell": dcell(4, 1)}, {"BCube": "a table"}, columns=2)
    >>> [ax.get_title(loc="left") for ax in fig.axes]
    ['BCube', 'DCell']
    """
    words = notes or {}
    if lost := words.keys() - topologies.keys():
        raise ValueError(f"notes must be for pictures, got {', '.join(lost)}")
    rows = -(-len(topologies) // columns)
    fig, panels = figure(height=rows * height, rows=rows, columns=columns, squeeze=False)
    for ax in panels.flat:
        ax.axis("off")
    for ax, (title, topology) in zip(panels.flat, topologies.items(), strict=False):
        draw_topology(topology, ax)
        ax.set_title(title, fontsize=7.5, pad=5)
        note = ax.text(
            0, -0.03, words.get(title, ""), transform=ax.transAxes, fontsize=6.5, va="top"
        )
        note.set(color="#555555", in_layout=False)  # a long note must not move the panels apart
    low = 0.06 / (rows * height)  # of the figure, for the notes of the last row
    fig.set_layout_engine(
        "constrained", w_pad=0.05, h_pad=0.11, hspace=0.0, rect=(0, low, 1, 1 - low)
    )
    plt.close(fig)  # not a second time below a cell that saves it
    return fig
