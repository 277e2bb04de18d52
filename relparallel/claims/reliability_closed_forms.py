"""Reliabilities of whole fabrics: closed forms and lumping, each beside the frontier DP where it fits."""

from relparallel import reliability
from relparallel.claims.registry import reproduces
from relparallel.published import Fact


@reproduces("NR-ftsw-*")
def pods_apart(k: int, core_up: float, aggregation_up: float) -> float:
    """Probability that switch failures part the pods of a fat-tree."""
    return reliability.fat_tree_pods_connected(k, core_up, aggregation_up).unreliability


@reproduces("NR-ftpair-*", quantity="*up-down*")
def pair_apart(
    k: int, core_up: float, aggregation_up: float, core_link_up: float, edge_link_up: float
) -> float:
    """Probability that two edge switches have no up-down path."""
    return reliability.fat_tree_pair(
        k, core_up, aggregation_up, 1.0, core_link_up, edge_link_up
    ).unreliability


@reproduces("NR-mob-*")
def pods_by_partitions(
    fact: Fact, k: int, core_up: float, aggregation_up: float, core_link_down: float
) -> float:
    """Probability that the pods are connected, or not, when their cables to the core fail too."""
    pods = reliability.fat_tree_pods_connected(k, core_up, aggregation_up, 1.0 - core_link_down)
    return pods.unreliability if "not all" in fact.quantity else pods.reliability


@reproduces("NR-ls-16x8")
def leaves_apart(leaves: int, spines: int, spine_up: float, link_down: float) -> float:
    """Probability that some leaf switch is cut off."""
    return reliability.leaf_spine_leaves_connected(leaves, spines, spine_up, 1.0 - link_down).unreliability
