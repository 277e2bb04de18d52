"""In which order an attacker takes the busiest parts, by the load of the whole or of what is left."""

from __future__ import annotations

import numpy as np

from relparallel.metrics.load import load_of
from relparallel.topology import Topology
from relparallel.topology._arrays import BoolArray, FloatArray, IntArray


def load_of_links(t: Topology, cables: IntArray) -> FloatArray:
    """Load of a cable of every pair in its busier direction, over the largest; all hosts live."""
    whole = bool((cables == t.multiplicity).all())
    found = load_of(t, t.endpoint.astype(np.float64), cables, "paths", symmetric=whole)
    return _relative(found.load.max(axis=1))


def load_of_nodes(t: Topology, alive: BoolArray) -> FloatArray:
    """Traffic that enters or leaves every node, over the largest, when these nodes live."""
    weight = (t.endpoint & alive).astype(np.float64)
    cables = t.multiplicity * alive[t.edges].all(axis=1)
    found = load_of(t, weight, cables, "paths", symmetric=bool(alive.all()))
    both = np.repeat(found.flow.sum(axis=1), 2)
    traffic = np.bincount(t.edges.ravel(), weights=both, minlength=t.num_nodes)
    return _relative(traffic.astype(np.float64))


def busiest_first(t: Topology, owner: IntArray, links: bool, steps: int, tie: FloatArray) -> IntArray:
    """Order of the parts when each step takes the busiest part left, and the smallest ``tie`` of equals.

    ``owner`` is the pair of every cable, or the node of every part. Parts beyond the steps follow by ``tie``.
    """
    left, cables = np.ones(owner.size, dtype=bool), t.multiplicity.copy()
    alive, order = np.ones(t.num_nodes, dtype=bool), []
    for _ in range(steps):
        load = (load_of_links(t, cables) if links else load_of_nodes(t, alive))[owner]
        part = int(np.lexsort((tie, -load, ~left))[0])
        left[part] = False
        order.append(part)
        if links:
            cables[owner[part]] -= 1
        else:
            alive[owner[part]] = False
    rest = np.flatnonzero(left)
    return np.concatenate([np.array(order, dtype=np.int64), rest[np.argsort(tie[rest])]])


def _relative(load: FloatArray) -> FloatArray:
    """Nine digits, so that equal loads are equal however they were summed."""
    return np.asarray(np.round(load / max(load.max(initial=0.0), 1e-300), 9))
