"""Redundant work and state: which failures pipelines, pairs of processes and copies survive.

Pipelines: a neighbour takes over. Copies of the training state: each of N nodes owns one shard,
which m nodes hold, the owner counted: in groups of m nodes that hold each other's shards; on a
ring, where the m - 1 next nodes hold a shard; mixed, groups with one ring of the m + N mod m last
nodes where m does not divide N.
"""

from functools import lru_cache
from math import comb, perm, pi, sqrt
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance, require_int
from relparallel.training._random_failures import surviving_sets

PLACEMENTS: Final = ("group", "ring", "mixed")
LARGEST: Final = 10**5  # nodes
MOST_STAGES = 10**4


def pipeline_survival(stages: int, failures: int, pipelines: int = 1, ring: bool = True) -> float:
    """Probability that no pipeline loses two neighbours, all sets of k failed nodes equally likely.

    Thorpe et al., "Bamboo", NSDI 2023: a node also holds the layers of its successor, in a ring
    those of the first. A ring has P/(P - k) C(P - k, k) sets without neighbours, a chain C(P - k +
    1, k) (Kaplansky, Bull. AMS 49, 1943).
    """
    require_int(stages=stages, pipelines=pipelines, at_least=1, at_most=MOST_STAGES)
    nodes = stages * pipelines
    require_int(failures=failures, at_least=0, at_most=min(nodes, MOST_STAGES))
    return surviving_sets(stages, pipelines, failures, ring)[failures] / comb(nodes, failures)


def independent_failures_survived(
    stages: int, pipelines: int, node_down: float, ring: bool = True
) -> float:
    """The same where every node is down with a probability: that of one pipeline to the power D."""
    held = [pipeline_survival(stages, failures, 1, ring) for failures in range(stages + 1)]
    return (
        float(scipy.stats.binom.pmf(np.arange(stages + 1), stages, node_down) @ held) ** pipelines
    )


def pair_failures(pairs: int) -> float:
    """Mean number of failures until both processes of one of b pairs are gone, dead ones hit too.

    1 + 4^b / C(2b, b), about 1 + sqrt(pi b): Benoit et al., "Replication is more efficient than you
    think", SC 2019. Times mtbf / (2b) that is a mean time.
    """
    return 1 + sqrt(pi) * float(scipy.special.poch(require_int(pairs=pairs, at_least=1) + 0.5, 0.5))


def replica_holders(
    nodes: int, replicas: int, placement: str = "group", stride: int = 1
) -> NDArray[np.int64]:
    """Nodes that hold each shard [shard, copy] (Wang et al., SOSP 2023, algorithm 1)."""
    replicas_placed(nodes, replicas, placement)
    if nodes % require_int(stride=stride, at_least=1, at_most=nodes):
        raise ValueError(f"stride must divide nodes = {nodes}, got {stride}")
    place, turn = np.arange(nodes)[:, None], np.arange(replicas)
    grouped = nodes - _ring_nodes(nodes, replicas, placement)
    first = place - place % replicas
    group = first + (place - first + turn) % replicas
    ring = grouped + (place - grouped + turn) % max(nodes - grouped, 1)
    held = np.where(place < grouped, group, ring)
    order = np.arange(nodes).reshape(-1, stride).T.ravel()
    holders = np.empty((nodes, replicas), dtype=np.int64)
    holders[order] = order[held]
    return holders


def domain_loss_probability(
    holders: NDArray[np.int64], nodes_per_domain: int, needed: int = 1
) -> float:
    """Probability that the failure of one domain at random loses a shard."""
    require_instance(np.ndarray, holders=holders)
    if (
        holders.ndim != 2
        or holders.dtype.kind not in "iu"
        or holders.size == 0
        or holders.min() < 0
    ):
        raise ValueError(
            f"holders must be an array [shard, copy] of nodes from 0 on, got {holders}"
        )
    nodes, copies = int(holders.max()) + 1, holders.shape[1]
    if nodes % require_int(nodes_per_domain=nodes_per_domain, at_least=1):
        raise ValueError(f"nodes_per_domain must divide the {nodes} nodes, got {nodes_per_domain}")
    fatal = copies - require_int(needed=needed, at_least=1, at_most=copies)  # and one more
    domain = np.sort(holders // nodes_per_domain, axis=1)
    hit = domain[:, fatal:][domain[:, fatal:] == domain[:, : copies - fatal]]
    return float(np.unique(hit).size * nodes_per_domain / nodes)


def replicas_placed(nodes: int, replicas: int, placement: str) -> None:
    """Check what all placements need."""
    require_int(nodes=nodes, at_least=1, at_most=LARGEST)
    require_int(replicas=replicas, at_least=1, at_most=nodes)
    if require_choice(PLACEMENTS, placement=placement) == "group" and nodes % replicas:
        raise ValueError(f"replicas must divide nodes = {nodes} in groups, got {replicas}")


def _ring_nodes(nodes: int, replicas: int, placement: str) -> int:
    """Nodes at the end that stand on a ring."""
    if placement == "ring":
        return nodes
    return replicas + nodes % replicas if placement == "mixed" and nodes % replicas else 0


@lru_cache(maxsize=4096)
def shards_held(nodes: int, replicas: int, failures: int, placement: str = "ring") -> float:
    """Probability that k failed nodes leave each shard a copy: ratio of integers, rounded once."""
    ring = _ring_nodes(nodes, replicas, placement)
    grouped = nodes - ring
    kept = sum(  # one term only, unless the placement is mixed
        _on_ring(ring, replicas, k) * _in_groups(grouped, replicas, failures - k)
        for k in range(max(failures - grouped, 0), min(failures, ring) + 1)
    )
    return kept / comb(nodes, failures)


def _in_groups(nodes: int, replicas: int, failures: int) -> int:
    """Subsets that leave a node in every group."""
    groups = nodes // replicas
    return 0 if failures > nodes - groups else _alternating(groups, nodes, replicas, failures)


def _on_ring(nodes: int, replicas: int, failures: int) -> int:
    """Subsets without ``replicas`` nodes in a row: behind each node that is up, fewer than that."""
    up = nodes - failures
    if failures > up * (replicas - 1):
        return 0
    return nodes * _alternating(up, nodes - 1, replicas, failures) // up if nodes else 1


def _alternating(parts: int, top: int, size: int, chosen: int) -> int:
    """Sum over j: (-1)^j C(parts, j) C(top - j size, chosen - j size), each term from the last."""
    term = total = comb(top, chosen)
    for j in range(min(parts, chosen // size)):
        up, down = perm(chosen - j * size, size), perm(top - j * size, size)
        term = -term * (parts - j) * up // ((j + 1) * down)
        total += term
    return total
