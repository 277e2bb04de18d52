"""Layout of Clos networks and of clusters with rails: tiers are rows, pods stand beside each other."""

import numpy as np

from relparallel.drawing.shapes import Points, spread
from relparallel.topology import Topology

_STEP = 2.2  # between two rows, in distances of hosts
_BELOW = -1.1  # the row of NVSwitches, below the GPUs that they join


def is_nvswitch(t: Topology) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """NVSwitches: they join the GPUs of a domain from below, as rails do from above."""
    return np.array([kind == "nvswitch" for kind in t.kinds])[t.node_kind]


def is_tiered(t: Topology) -> bool:
    """Whether tiers are rows: hosts below, switches above, and no cables within the highest tier."""
    if t.endpoint.all() or t.tier[t.endpoint].any():
        return False
    return not (t.tier[t.edges] == t.tier.max()).all(axis=1).any()


def tier_layout(t: Topology) -> Points:
    """Tiers as rows; a node stands above the middle of what hangs below it in its pod."""
    row = _rows(t)
    across, left = np.zeros(t.num_nodes), -0.5
    for pod in np.unique(t.pod[t.endpoint]):
        inside = [np.flatnonzero((t.pod == pod) & (row == level)) for level in np.unique(row)]
        hosts = int(np.count_nonzero(t.endpoint & (t.pod == pod)))
        width = max([float(hosts), *(len(nodes) / 2 for nodes in inside)])
        for nodes in inside:
            across[nodes] = spread(left, left + width, len(nodes))
        left += width + 0.8
    first, last = t.hosts[0], t.hosts[-1]
    middle, shared = (across[first] + across[last]) / 2, t.pod < 0
    for level in np.unique(row[shared]):
        nodes = np.flatnonzero(shared & (row == level))
        half = max(across[last] - across[first], len(nodes) / 2) / 2
        across[nodes] = spread(middle - half, middle + half, len(nodes))
    return np.column_stack([across, row])


def _rows(t: Topology) -> Points:
    """Height of every node."""
    below = is_nvswitch(t) & (t.tier < t.tier.max())
    row: Points = np.full(t.num_nodes, _BELOW)
    row[~below] = _STEP * np.unique(t.tier[~below], return_inverse=True)[1]
    return row
