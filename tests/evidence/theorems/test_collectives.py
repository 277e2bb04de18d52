"""Theorems about collectives: least bytes and rounds, what nodes change, what overlap is worth."""

import numpy as np
from scipy.optimize import linprog
from theorem_table import theorem

from chapters import s32
from relparallel import hardware, parallel, topology, units
from relparallel.parallel.collective_forms import crossover_size, overlap_time
from relparallel.parallel.group_bandwidth import group_links

_NODES = parallel.Links(
    latency=2e-6, bandwidth=230 * units.GB, network_latency=8e-6, network_bandwidth=180 * units.GB
)


@theorem("THM-ring-optimal", system="Ring all-reduce")
def test_least_bytes():
    """Ring and halving-doubling both send 2 (n - 1)/n of a vector per rank, the least possible."""
    # Most bytes that a rank sends by either, and twice the bound.
    sent = [
        parallel.bytes_sent(
            parallel.collective("all_reduce", name, 32, 3200), 32, element_bytes=1
        ).max()
        for name in ("ring", "halving_doubling")
    ]
    return float(sum(sent)), 2 * 2 * 31 / 32 * 3200


@theorem("THM-halving-time", system="Halving-doubling all-reduce")
def test_halving_price():
    """Among 64 ranks the rounds cost 2 log2 n alpha + 2 (n - 1)/n N beta."""
    # Price of the rounds, and the closed form.
    rounds = parallel.collective("all_reduce", "halving_doubling", 64, 2**16)
    links = parallel.Links(
        latency=3e-6, bandwidth=1 * units.GB, network_latency=0, network_bandwidth=1
    )
    priced = parallel.rounds_time(rounds, 64, links, element_bytes=4)
    return priced, 12 * 3e-6 + 2 * 63 / 64 * 2**18 / units.GB


@theorem("THM-hierarchy-network", system="Hierarchical all-reduce")
def test_hierarchy_network():
    """With 8 ranks in each of 16 nodes every node sends 2 (k - 1)/k of a vector to the network."""
    # Elements out of all nodes, counted over the rounds; and the formula.
    steps = list(parallel.collective("all_reduce", "hierarchical", 128, 1280, ranks_per_node=8))
    away = [(step.source // 8 != step.destination // 8) @ step.elements for step in steps]
    return float(sum(away)), 16 * 2 * 15 / 16 * 1280


@theorem("THM-hierarchy-nodes", system="Hierarchical all-reduce")
def test_hierarchy_from_nodes():
    """For 256 MiB on nodes of 8 the hierarchy beats a ring from the same number of nodes on by the
    closed forms as by pricing the rounds.
    """
    # Fewest nodes by the closed forms, and by the rounds.
    nodes = np.arange(2, 65)
    ring, nested = (
        parallel.collective_time("all_reduce", name, 256 * units.MIB, 8 * nodes, 8, _NODES)
        for name in ("ring", "hierarchical")
    )

    def gain(k: int) -> float:
        ring_time, nested_time = (
            parallel.rounds_time(
                parallel.collective("all_reduce", name, 8 * k, 2**28, 8), 8, _NODES, element_bytes=1
            )
            for name in ("ring", "hierarchical")
        )
        return ring_time - nested_time

    first = next(k for k in nodes.tolist() if gain(k) > 0)
    return float(nodes[np.argmax(nested < ring)]), float(first)


@theorem("THM-tree-ring-crossover", system="Tree all-reduce")
def test_tree_ring_crossover():
    """A binomial tree over n = 2^l ranks beats the ring below alpha B (n - 1 - l)/(l - (n - 1)/n)
    bytes.
    """
    # Size found by bisection, and the formula.
    links = parallel.Links(
        latency=4e-6, bandwidth=100 * units.GB, network_latency=0, network_bandwidth=1
    )
    found = crossover_size("all_reduce", "tree", "ring", 64, 64, links)
    return found, 4e-6 * 100 * units.GB * (63 - 6) / (6 - 63 / 64)


@theorem("THM-groups-share-network", system="Rank placement")
def test_shared_network():
    """At tensor degree t on nodes of 8, a node's min(t, 8) data groups get that part of its network
    each.
    """
    # Sum over t of the bandwidth of data groups, and of the shares.
    selene, degrees = hardware.cluster("a100-80gb-selene", gpus=128), (1, 2, 4, 8, 16)
    placements = [
        parallel.Placement(strategy=parallel.Strategy(tensor=t, data=128 // t)) for t in degrees
    ]
    found = sum(float(group_links(p, selene, "data").bandwidth.min()) for p in placements)
    return found, sum(200 * units.GB / min(t, 8) for t in degrees)


@theorem("THM-rails-apart", system="Rail-optimised cluster")
def test_rails_apart():
    """On a DGX SuperPOD no data groups of tensor degree 8 share a link: each gets a whole rail."""
    # Largest load of a link when all eight groups communicate, and when one does.
    placement = parallel.Placement(strategy=parallel.Strategy(tensor=8, data=32))
    found = group_links(placement, topology.dgx_superpod(1), "data")
    return float(found.load.max()), float(found.flow.max())


@theorem("THM-overlap-worth", system="Overlap of communication and computation")
def test_overlap_worth():
    """Slowed a and b times, overlapping saves nothing where 1/a + 1/b = 1, whatever the times."""
    # Overlapped times of four pairs for a = 3 and b = 3/2, and one after the other.
    work, sent = np.array([0.2, 1.0, 3.0, 7.0]), np.array([5.0, 2.0, 3.0, 0.1])
    overlapped = overlap_time(work, sent, compute_slowdown=3, communication_slowdown=1.5)
    return float(overlapped.sum()), float(work.sum() + sent.sum())


@theorem("THM-byteps-split", system="BytePS")
def test_byteps_split():
    """No split of the sum over GPU and CPU machines is faster: linear programme over NIC loads."""
    # Sum of the least times for eight GPU machines and 0 to 8 CPU machines.
    form = [s32.byteps_time(8, k, 1.0, 1.0).time for k in range(9)]
    least = 0.0
    for k in range(9):  # t >= n M_cpu, t >= 1 + (n - 2) M_gpu, k M_cpu + n M_gpu = 1
        loads = [[-1, 8 * (k > 0), 0], [-1, 0, 6]]
        found = linprog([1, 0, 0], A_ub=loads, b_ub=[0, -1], A_eq=[[0, k, 8]], b_eq=[1])
        least += float(found.fun or np.nan)
    return float(sum(form)), least


@theorem("THM-blueconnect-executed", system="BlueConnect")
def test_blueconnect_executed():
    """On two levels it sends what a hierarchical all-reduce sends, counted over its rounds."""
    # Bytes between 4 nodes of 8 ranks over the bandwidth of all 8 NICs, and the outer level's share
    # of time.
    steps = list(parallel.collective("all_reduce", "hierarchical", 32, 3200, ranks_per_node=8))
    away = [(step.source // 8 != step.destination // 8) @ step.elements for step in steps]
    return sum(away) / 32, parallel.blueconnect_time(3200.0, [(8, 0.0, 1e30), (4, 0.0, 1.0)])


@theorem("THM-server-superstep", system="BSP")
def test_server_superstep():
    """A parameter server's push is a superstep whose largest message is what a server receives."""
    # Eight workers and three servers with a chain of two; one byte each, one byte per second.
    received = [(8 + 2 - 1) / 3] * 3 + [1.0] * 8
    return s32.superstep_time(np.zeros(11), received, 1.0, 0.0), s32.server_time(8, 3, 1.0, 1.0, 2)


@theorem("THM-servers-meet-byteps", system="Parameter Server")
def test_servers_meet_byteps():
    """As many servers as workers are BytePS with as many CPU machines; with none it is the ring."""
    # Times of both for 2 to 16 workers, and that of the ring's bytes.
    ours = sum(s32.server_time(n, n, 1.0, 1.0) + 2 * (n - 1) / n for n in range(2, 17))
    theirs = sum(
        s32.byteps_time(n, n, 1.0, 1.0).time + s32.byteps_time(n, 0, 1.0, 1.0).time
        for n in range(2, 17)
    )
    return float(ours), float(theirs)
