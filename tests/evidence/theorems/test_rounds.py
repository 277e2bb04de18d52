"""Theorems on rounds of messages: servers, experts, locality, and what a lost part costs."""

from itertools import product

import networkx as nx
import numpy as np
from scipy.stats import binom
from theorem_table import theorem

from chapters import s32, s33
from relparallel import parallel, topology, units, workload
from relparallel.parallel.collective_forms import crossover_size
from relparallel.parallel.round_plans import RoundPlan
from relparallel.parallel.servers import (
    gpu_hierarchical_server_rounds,
    hierarchical_server_rounds,
)

_STAR = topology.as_topology(nx.star_graph(32))  # node 0 joins all others


def _on_star(rounds: object, ranks: int, **options: object) -> RoundPlan:
    """Rounds between the leaves of a star, one byte an element."""
    return parallel.plan_rounds(rounds, _STAR, nodes=np.arange(1, ranks + 1), **options)


@theorem("THM-mpi-crossover", system="MPI collectives")
def test_recursive_doubling_until():
    """Full-vector swaps beat halving-doubling below alpha B log2 n/(log2 n - 2 (n - 1)/n) bytes."""
    # Size found by bisection for 64 ranks, and the formula.
    links = parallel.Links(
        latency=4e-6, bandwidth=100 * units.GB, network_latency=0, network_bandwidth=1
    )
    found = crossover_size("all_reduce", "recursive_doubling", "halving_doubling", 64, 64, links)
    return found, 4e-6 * 100 * units.GB * 6 / (6 - 2 * 63 / 64)


@theorem("THM-horovod-fusion", system="Horovod")
def test_fused_gradients():
    """Gradients fused into f buffers cost 2 (n - 1)(f alpha + M/(n B)), the rounds of f rings."""
    # VGG-16 in buffers of 128 MiB, filled in order: the rounds priced, and the formula.
    sizes = workload.layer_graph("vgg-16", element_bytes=4).parameter_bytes

    buffers, n, alpha = [0.0], 64, 2e-5
    for size in sizes[sizes > 0].tolist():
        if buffers[-1] and buffers[-1] + size > 2**27:
            buffers.append(0.0)
        buffers[-1] += size
    links = parallel.Links(latency=alpha, bandwidth=3e9, network_latency=0, network_bandwidth=1)
    rings = [parallel.ring_all_reduce(n, n * 10**6) for _ in buffers]
    priced = [
        parallel.rounds_time(ring, n, links, element_bytes=size / n / 1e6)
        for ring, size in zip(rings, buffers, strict=True)
    ]
    return sum(priced), 2 * (n - 1) * (len(buffers) * alpha + float(sizes.sum()) / n / 3e9)


@theorem("THM-byteps-streamed", system="BytePS")
def test_byteps_streamed():
    """Its rounds, streamed over one NIC a machine, take the time of the theorem."""
    # Eight GPU machines and 1 to 8 CPU machines with a vector that all their shares divide.
    streamed = theory = 0.0
    for k in range(1, 9):
        size = 56 * k * (64 + 6 * k)
        rounds = parallel.collective("server_sum", "byteps", 8 + k, size, servers=k)
        streamed += _on_star(rounds, 8 + k, streamed=True).time() * 50e9 / size
        theory += s32.byteps_time(8, k, 1.0, 1.0).time
    return streamed, theory


@theorem("THM-byteps-pcie", system="BytePS")
def test_byteps_pcie():
    """Below two PCIe switches, CPU sums load their links 2 (n - 1)/n times less than a ring."""
    # Busiest link from a switch to the CPU for eight GPUs, by the ring over that by GPUs and CPU.
    machine = topology.as_topology(
        nx.Graph([(8, 10), (9, 10)] + [(gpu, 8 + gpu // 4) for gpu in range(8)])
    )
    up = np.tile((machine.edges == machine.index_of(10)).any(axis=1), 2)
    nodes = [machine.index_of(name) for name in (*range(8), 10)]
    ways = (parallel.ring_all_reduce(8, 64), gpu_hierarchical_server_rounds(9, 64, 1, 4))
    ring, assisted = (
        parallel.plan_rounds(way, machine, nodes=nodes).load()[up].max() for way in ways
    )
    return float(ring / assisted), 2 * 7 / 8


@theorem("THM-hierarchical-servers", system="Hierarchical (GPU) parameter server")
def test_hierarchical_servers():
    """With g GPUs in each of N nodes k servers receive N vectors, not g N: summed by GPUs first."""
    # Elements that four servers receive of 32 GPUs in nodes of 8, over one vector; and the formula.
    received = 0.0
    for step in gpu_hierarchical_server_rounds(36, 320, 4, 8):
        received += float(step.elements[step.destination >= 32].sum())
    return received / 320, 4.0


@theorem("THM-in-network-sum", system="Hierarchical (GPU) parameter server")
def test_in_network():
    """Summed by switches, every host sends one vector, (n/2)/(n - 1) of what it sends in a ring."""
    # Bytes from the hosts of a leaf-spine with servers at leaves and a spine, over those of the
    # ring.
    t = topology.leaf_spine(leaves=4, spines=1, hosts_per_leaf=4)
    leaves, spine = np.flatnonzero(t.is_kind("leaf")), np.flatnonzero(t.is_kind("spine"))
    ways = [
        (hierarchical_server_rounds(21, 160, 1, 4), np.concatenate([t.hosts, leaves, spine])),
        (parallel.ring_all_reduce(16, 160), t.hosts),
    ]
    first = (t.edges[:, 0] < 16).nonzero()[0]
    switches, ring = (
        parallel.plan_rounds(way, t, nodes=at).load()[first].sum() for way, at in ways
    )
    return float(switches / ring), 8 / 15


@theorem("THM-lost-spine", system="Hierarchical all-reduce")
def test_lost_spine():
    """With s spines, s hosts a leaf, a lost spine slows a leaf-spine's network part s/(s - 1)."""
    # Slowdown of 4 leaves of 8 hosts by the plan, and by 2 (g - 1)/g inside and 2 (k - 1)/k between
    # leaves.
    t = topology.leaf_spine(leaves=4, spines=8, hosts_per_leaf=8)
    plan = parallel.plan_rounds(parallel.collective("all_reduce", "hierarchical", 32, 320, 8), t)
    inside, between = 2 * 7 / 8, 2 * 3 / 4 / 8
    return plan.slowdown(t.switches[-1:]), (inside + between * 8 / 7) / (inside + between)


@theorem("THM-plink-racks", system="PLink")
def test_planted_racks():
    """Probes with noise below half the step between two distance levels give the planted racks."""
    # Pairs of 48 machines in 6 shuffled racks that stand together as planted, and all pairs.
    rng = np.random.default_rng(7)
    rack = rng.permutation(np.repeat(np.arange(6), 8))
    same = rack[:, None] == rack
    found = s32.discover_groups(np.where(same, 10e-6, 30e-6) + rng.uniform(-9e-6, 9e-6, (48, 48)))
    return float(((found[:, None] == found) == same).sum()), 48.0**2


@theorem("THM-expert-capacity", system="Expert parallelism")
def test_dropped_tokens():
    """Of T tokens to E experts at random, capacity C drops E/T E[(X - C)+], X binomial(T, 1/E)."""
    # Share dropped in all 3^6 routings of 6 tokens at capacity factor 1, and the formula.
    kept = [
        s33.expert_tokens([np.bincount(choice, minlength=3)], capacity=1.0).sum()
        for choice in product(range(3), repeat=6)
    ]
    excess = sum((x - 2) * binom.pmf(x, 6, 1 / 3) for x in range(3, 7))
    return 1 - float(np.mean(kept)) / 6, float(3 / 6 * excess)


@theorem("THM-expert-imbalance", system="Expert parallelism")
def test_hot_expert():
    """An expert with share s of all tokens makes their exchange among n ranks n s times as long."""
    # Streamed time for 8 ranks of 1,400 tokens, four in ten to one expert, over that of equal
    # shares.
    hot, even = np.full((8, 8), 120), np.full((8, 8), 175)
    hot[:, 0] = 560
    times = [
        _on_star(s33.exchange_rounds(s33.expert_tokens(counts)), 8, streamed=True).time()
        for counts in (hot, even)
    ]
    return times[0] / times[1], 8 * 0.4
