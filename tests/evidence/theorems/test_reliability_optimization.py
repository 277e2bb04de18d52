"""Theorems of the paradigms of reliability optimisation."""

import networkx as nx
import numpy as np
from scipy.stats import poisson
from theorem_table import theorem

from chapters import s12
from chapters.s12.components import component_table
from relparallel import optimize, reliability, topology


@theorem("THM-redundancy-two-routes", system="Redundancy allocation (RAP)")
def test_table_equals_programme():
    """The dynamic and the mixed-integer programme prove the same optimum at C=130, W=180."""
    # Two exact routes.
    table = component_table("fyffe")
    by_table, by_programme = (
        s12.redundancy_allocation(table, 130, 180, method=method).unreliability
        for method in ("table", "milp")
    )
    return by_table, by_programme


@theorem("THM-cheapest-two-connected", system="Survivable design and SRLG-disjoint paths")
def test_ring_is_cheapest():
    """In a complete graph at price 1 no 2-edge-connected network beats a ring: n links."""
    # Eight nodes, nothing given.
    nothing, complete = nx.empty_graph(8), nx.complete_graph(8)
    return s12.survivable_augmentation(nothing, complete, cost=1.0).cost, 8.0


@theorem("THM-cheapest-reliable-ring", system="Reliable network design")
def test_ring_is_reliable_enough():
    """Five nodes, links up 0.9, U <= 0.1: a ring, U = 1 - 0.9^5 - 5 0.1 0.9^4, no 4 links."""
    # Exact unreliability of the certified optimum, and the closed form of the ring.
    design = optimize.reliable_network(nx.complete_graph(5), 0.1, link_up=0.9, cost=1.0)
    return design.unreliability or 0.0, 1 - 0.9**5 - 5 * 0.1 * 0.9**4


@theorem("THM-fabric-two-planes", system="Reliable network design")
def test_two_planes_are_a_product():
    """Hosts with a cable in each of two planes and no forwarding: U of all hosts is U_A U_B."""
    # 64 hosts: the bracket of the fabric choice, and the closed form of one plane squared; eight
    # digits.
    graph = topology.leaf_spine(8, 4, 8).to_networkx()
    graph.add_edges_from([(u, v ^ 1) for u, v in graph.edges if graph.nodes[u]["kind"] == "host"])
    graph.remove_edges_from(
        [(u, v) for u, v in graph.edges if graph.nodes[v]["kind"] == "spine" and (u ^ v) & 1]
    )
    found = s12.cheapest_fabric({"planes": graph}, 64, 0.5, "all").table["lower"].iloc[0]
    parts = s12.equipped(topology.leaf_spine(4, 2, 16))
    switch, cable = (
        float(up[-1])
        for up in (parts.node_attributes["availability"], parts.edge_attributes["availability"])
    )
    plane = reliability.leaf_spine_leaves_connected(
        4, 2, switch, cable, switch, cable, hosts_per_leaf=16
    )
    return float(f"{found:.7e}"), float(f"{plane.unreliability**2:.7e}")


@theorem("THM-spares-two-models", system="Spare and maintenance planning")
def test_stock_is_erlang():
    """One kind of part: the cheapest stock is the inverse of Erlang's formula."""
    # A fleet of 2,048 nodes with cold spares; B(n) is the n-th of n + 1 Poisson terms over their
    # sum.
    plan = s12.spares(2048, 1 / 3.79e-3, 1.0, 0.999, kind="cold")
    servers, load = np.arange(1, 100), 2048 * 3.79e-3
    blocked = poisson.pmf(servers, load) / poisson.cdf(servers, load)
    return float(plan.spares[0]), float(servers[blocked <= 1e-3][0] - 1)


@theorem("THM-inspection-is-young", system="Spare and maintenance planning")
def test_inspection_is_young():
    """For rare failures the optimal inspection interval is Young's sqrt(2 c / (d lam))."""
    # Rounded to five digits; the next term is of relative order sqrt(c lam / d).
    plan = s12.inspection_interval(rate=1e-14, inspection=2.0, downtime=1.0)
    return float(f"{plan.interval:.5g}"), float(f"{(2 * 2.0 / 1e-14) ** 0.5:.5g}")
