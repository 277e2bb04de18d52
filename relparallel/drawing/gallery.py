"""Several topologies beside each other, each with its name and a word on its rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.figure import Figure

from relparallel._checks import require_instance, require_int, require_real
from relparallel.drawing.picture import draw_topology
from relparallel.plotting import figure
from relparallel.topology import Topology

_NOTE: Final = "#555555"


def gallery(
    topologies: Mapping[str, Topology | nx.Graph[Any]],
    notes: Mapping[str, str] | None = None,
    *,
    columns: int = 4,
    height: float = 1.85,
) -> Figure:
    """Draw topologies in the panels of one figure of double width, row by row.

    Parameters
    ----------
    topologies : Mapping of str to Topology or networkx.Graph
        What to draw, by its title; at least one.
    notes : Mapping of str to str, optional
        A line below the picture of that title.
    columns : int, optional
        Panels in a row.
    height : float, optional
        Of a row [inches].

    Returns
    -------
    Figure
        Ready to save; a notebook shows it only as the value of a cell.

    Examples
    --------
    >>> from relparallel.topology import bcube, dcell
    >>> fig = gallery({"BCube": bcube(4, 1), "DCell": dcell(4, 1)}, {"BCube": "a table"}, columns=2)
    >>> [ax.get_title(loc="left") for ax in fig.axes]
    ['BCube', 'DCell']
    """
    require_instance(Mapping, topologies=topologies)
    words = {} if notes is None else require_instance(Mapping, notes=notes)
    require_int(columns=columns, at_least=1)
    require_real(height=height, above=0)
    if not topologies or not words.keys() <= topologies.keys():
        raise ValueError(f"notes must be for pictures, at least one, got {', '.join(words) or 'no picture'}")
    rows = -(-len(topologies) // columns)
    fig, panels = figure(height=rows * height, rows=rows, columns=columns, squeeze=False)
    for ax in panels.flat:
        ax.axis("off")
    for ax, (title, topology) in zip(panels.flat, topologies.items(), strict=False):
        draw_topology(topology, ax)
        ax.set_title(title, fontsize=7.5, pad=5)
        note = ax.text(0, -0.03, words.get(title, ""), transform=ax.transAxes, fontsize=6.5, va="top")
        note.set(color=_NOTE, in_layout=False)  # a long note must not move the panels apart
    low = 0.06 / (rows * height)  # of the figure, for the notes of the last row
    fig.set_layout_engine("constrained", w_pad=0.05, h_pad=0.11, hspace=0.0, rect=(0, low, 1, 1 - low))
    plt.close(fig)  # not a second time below a cell that saves it
    return fig
