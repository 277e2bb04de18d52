"""Theorems about layouts, and about the order in which gradients and parameters travel."""

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from theorem_table import theorem

from chapters import s33, s37
from relparallel import parallel
from relparallel.workload import LayerGraph, Transformer

_FORWARD = np.array([3.0, 5.0, 2.0, 7.0, 1.0, 4.0])
_BACKWARD = np.array([2.0, 6.0, 3.0, 4.0, 8.0, 1.0])
_SIZES = np.array([9.0, 2.0, 12.0, 5.0, 7.0, 16.0])
_FREE = (0.0, 1.0)  # a network without latency, a byte each second


def _graph(
    forward: ArrayLike, backward: ArrayLike, sizes: ArrayLike, chain: bool = True
) -> LayerGraph:
    """Layers one after another, or side by side."""
    n = np.size(sizes)
    return LayerGraph(
        names=tuple(map(str, range(n))),
        kinds=("layer",) * n,
        forward=np.array(forward),
        backward=np.array(backward),
        parameter_bytes=np.array(sizes),
        activation_bytes=np.zeros(n),
        edges=np.array([(i, i + 1) for i in range(n - 1) if chain]).reshape(-1, 2),
        unit="s",
    )


@theorem("THM-bucketed-overlap", system="Bucketed gradient all-reduce")
def test_bucketed():
    """n equal buckets end after max(n f + c, f + n c), as the simulator finds."""
    # Sum over fast and slow links of simulated ends, and of the closed form.
    zero, work = np.zeros(24), np.full(24, 2.0)
    simulated = sum(
        parallel.order(
            _graph(zero, work, np.full(24, sent)), "ddp", network=_FREE, partition=sent
        ).makespan
        for sent in (2.0**25, 2.0**26)
    )
    return simulated, sum(max(48 + sent, 2 + 24 * sent) for sent in (2.0**25, 2.0**26))


@theorem("THM-priority-fluid", system="P3")
def test_priorities_reach_the_fluid_optimum():
    """Slices by priority end with the fluid optimum, max_i (B_i + S_i + F_i), for whole times."""
    # Simulated, and by sums: backward passes down to layer i, bytes up to it, forward passes from
    # it on.
    found = parallel.order(_graph(_FORWARD, _BACKWARD, _SIZES), "p3", network=_FREE, partition=1.0)
    down, on = np.cumsum(_BACKWARD[::-1])[::-1], np.cumsum(_FORWARD[::-1])[::-1]
    return found.makespan, float(max((down + np.cumsum(_SIZES) + on).max(), down[0] + on[0]))


@theorem("THM-credit-window", system="ByteScheduler")
def test_credit_is_a_window():
    """With c in flight n messages take (n/c)(a + t) + (c - 1) t, and n t + a once c t >= a + t."""
    # Sum over credits of 1 to 8 of 24 messages of one second that arrive after 3.5, and of the two
    # forms.
    graph, credits = _graph([0.0], [0.0], [24.0]), (1, 2, 3, 4, 6, 8)
    found = (
        parallel.order(graph, "forward", network=(3.5, 1.0), partition=1.0, credit=c)
        for c in credits
    )
    form = (24 + 3.5 if c >= 4.5 else 24 / c * 4.5 + c - 1 for c in credits)
    return sum(timeline.makespan for timeline in found), sum(form)


@theorem("THM-tac-johnson", system="TicTac")
def test_tac_is_optimal_side_by_side():
    """For operators side by side no tensor order beats that of TAC, which is Johnson's rule."""
    # Simulated, and the least of all 720 orders by the recursion of a flow shop with two machines.
    found = parallel.order(
        _graph(_FORWARD, 0 * _FORWARD, _SIZES, chain=False), "tac", network=_FREE
    )
    orders = np.array(list(permutations(range(6))))
    arrived, done = np.cumsum(_SIZES[orders], axis=1), np.zeros(len(orders))
    for place in range(6):
        done = np.maximum(done, arrived[:, place]) + _FORWARD[orders[:, place]]
    return found.makespan, float(done.min())


@theorem("THM-fusion-cycle", system="Tensor fusion (Horovod)")
def test_fused():
    """What is ready at a look goes together: simulated ends are those of recursion over looks."""
    # End of the last message in a step without forward passes, and by the recursion.
    graph = _graph(0 * _FORWARD, _BACKWARD, _SIZES)
    merged = s37.fuse_gradients(graph, latency=0.5, bandwidth=4.0, buffer=16.0, cycle=2.5)
    return parallel.order(graph, network=(0.5, 4.0), groups=merged).makespan, merged.finish


@theorem("THM-host-staging", system="GeePS")
def test_staged():
    """Tensor slices via host memory take the slowest hop's time, and the others' for one slice."""
    # PCIe, network and PCIe; simulated, and the sum for a flow shop of 40 equal jobs.
    hops = [(0.0, 12.0), (0.0, 3.0), (0.0, 10.0)]
    found = parallel.order(_graph([0.0], [0.0], [120.0]), network=hops, partition=3.0)
    return found.makespan, 3 / 12 + 3 / 3 + 3 / 10 + 39 * 3 / 3


@theorem("THM-pipelined-broadcast", system="Cross-mesh resharding")
def test_pipelined_broadcast():
    """K pieces that A hosts pass on take t (1 + (A - 1)/K)."""
    # Simulated as a message of 6 slices over 5 hops, and as the only transfer of a resharding.
    found = parallel.order(
        _graph([0.0], [0.0], [30.0]), network=[_FREE] * 5, partition=5.0
    ).makespan
    one = s37.shards({"x": 30}, {"host": 1}, {})
    many = s37.shards({"x": 30}, {"host": 5}, {})
    return s37.reshard(one, many, bandwidth=1.0, element_bytes=1.0, pieces=6).time, found


@theorem("THM-reshard-order", system="Cross-mesh resharding")
def test_reshard_order():
    """No order of the transfers between two meshes is faster than the one that search finds."""
    # Halves to fifths, where greedy is not best; by search, and by trying 720 orders of the
    # overlaps.
    halves, fifths = (s37.shards({"x": 20}, {"host": n}, {"x": "host"}) for n in (2, 5))
    found = s37.reshard(halves, fifths, bandwidth=1.0, element_bytes=1.0, order="search")
    free: dict[tuple[str, int], float] = {}
    tasks = [
        (min(a, b) - max(low, start), i, j)
        for i, ((low, a),) in enumerate(halves.tolist())
        for j, ((start, b),) in enumerate(fifths.tolist())
        if min(a, b) > max(low, start)
    ]
    ends = []
    for order in permutations(tasks):
        free.clear()
        for seconds, sender, receiver in order:
            ports = ("out", sender), ("in", receiver)
            free |= dict.fromkeys(ports, max(free.get(port, 0.0) for port in ports) + seconds)
        ends.append(max(free.values()))
    return found.time, min(ends)


@theorem("THM-mesh-layouts", system="Mesh-TensorFlow")
def test_mesh_layouts():
    """Two layers, d to h to d, sum 2 d h gradient elements with batch b split, 2 b d of activations
    with h split, and 2 b d/r + 2 d h/c on a mesh of r x c.
    """
    # Digits of the three layouts, by the products of a training step, and by Shazeer et al.,
    # section 4.
    b, d, h, r, c = 24, 8, 20, 2, 4
    passes = ["bd,dh->bh", "bh,hd->bd", "bd,bh->hd", "bd,hd->bh", "bh,bd->dh", "bh,dh->bd"]
    found = [
        sum(s37.mesh_product(p, {"b": b, "d": d, "h": h}, mesh, layout, 1).summed for p in passes)
        for mesh, layout in (
            ({"all": 4}, {"b": "all"}),
            ({"all": 4}, {"h": "all"}),
            ({"row": r, "column": c}, {"b": "row", "h": "column"}),
        )
    ]
    form = (2 * d * h, 2 * b * d, 2 * b * d / r + 2 * d * h / c)
    weights = np.array([1.0, 1e4, 1e8])
    return float(weights @ found), float(weights @ form)


@theorem("THM-partitioned-affine", system="Linear-algebraic model parallelism")
def test_partitioned_affine():
    """An affine layer on a mesh is broadcast, local product, sum-reduce; its gradient runs through
    their adjoints.
    """
    # Sum of squares of output and input gradient, by 2 x 3 workers and serially.
    rng, mesh = np.random.default_rng(7), {"out": 2, "in": 3}
    weights, x, back = rng.normal(size=(8, 9)), rng.normal(size=9), rng.normal(size=8)
    inputs = s37.movement(*(s37.shards({"i": 9}, m, {"i": "in"}) for m in ({"in": 3}, mesh)))
    outputs = s37.movement(*(s37.shards({"o": 8}, m, {"o": "out"}) for m in ({"out": 2}, mesh)))
    boxes = s37.shards({"o": 8, "i": 9}, mesh, {"o": "out", "i": "in"}).tolist()
    local = [weights[slice(*o), slice(*i)] for o, i in boxes]
    y = outputs.adjoint([w @ v for w, v in zip(local, inputs(np.split(x, 3)), strict=True)])
    g = inputs.adjoint([w.T @ v for w, v in zip(local, outputs(np.split(back, 2)), strict=True)])
    serial = weights @ x, weights.T @ back
    return float(sum((v**2).sum() for v in (*y, *g))), float(sum((v**2).sum() for v in serial))


@theorem("THM-hybrid-sharding", system="Fully sharded data parallelism")
def test_hybrid_sharding():
    """Sharding inside nodes sends what a hierarchical all-reduce sends, and gathers once more."""
    # Bytes that a rank sends in a step, by the strategy's collectives and counted over executed
    # rounds.
    model = Transformer(layers=2, hidden=64, heads=2, vocabulary=96, sequence=8)
    strategy = parallel.Strategy(data=32, zero_stage=3, shard=8)
    ours = sum(c.bytes_sent for c in s33.strategy_collectives(model, strategy, 32))
    rounds = parallel.collective(
        "all_reduce", "hierarchical", 32, int(model.parameters), ranks_per_node=8
    )
    gather = parallel.collective("all_gather", "ring", 8, int(model.parameters))
    counted = parallel.bytes_sent(rounds, 32).mean() + parallel.bytes_sent(gather, 8).mean()
    return ours, float(counted)
