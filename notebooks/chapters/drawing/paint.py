"""Colours of cables and switches: what kind of thing they are in their design."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from chapters.drawing.grids import is_nvswitch
from chapters.drawing.layouts import layout
from relparallel.plotting import PALETTE
from relparallel.topology import Topology
from relparallel.topology.description import rules

PLAIN: Final = "#9A9A9A"
_LIGHT, _NVLINK = PALETTE["vermilion"], PALETTE["green"]  # circuits of light; links of an NVSwitch
_STRIPES: Final = (PLAIN, *(PALETTE[name] for name in ("blue", "orange", "purple", "sky")), _LIGHT)


def cable_colours(t: Topology) -> NDArray[np.str_]:
    """One colour for each cable, by its design's stripes; circuits and NVLink have their own."""
    rule = rules().get(t.meta.name)
    kind = np.zeros(len(t.edges), dtype=np.int64)
    if rule is not None and rule.stripes is not None:
        kind = rule.stripes(t)
    colours = np.array(_STRIPES)[kind]
    colours[is_nvswitch(t)[t.edges].any(axis=1)] = _NVLINK
    light = t.edge_attributes.get("optical")
    if light is not None:
        colours[light] = _LIGHT
    return np.asarray(colours)


def switch_colours(t: Topology) -> NDArray[np.str_]:
    """One colour for each node: black, NVSwitches green, those that the layout marks vermilion."""
    colours = np.where(is_nvswitch(t), _NVLINK, PALETTE["black"])
    marked = layout(t).marked
    if marked is not None:
        colours[marked(t)] = _LIGHT
    return np.asarray(colours)
