"""Symmetries that every design declares; `relparallel.topology.symmetry` proves them before they are used.

A rule takes the parameters of a builder and gives permutations of its nodes. Random designs have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from relparallel.topology._arrays import IntArray
from relparallel.topology._generators import clusters, grids, groups, servers, trees

__all__ = ["RULES"]

RULES: Final[Mapping[str, Callable[..., Sequence[IntArray]]]] = {
    name: getattr(topic, name)
    for topic in (trees, servers, grids, groups, clusters)
    for name in topic.__all__
}
