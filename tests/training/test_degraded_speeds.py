"""Bamboo, Oobleck, ReCycle, reduced tensor parallelism against sums over all failed node sets."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from scipy.stats import binom

from relparallel.training import JobShape, Recovery
from relparallel.training.redundancy import shards_held


@dataclass(frozen=True)
class Layout:
    """A small job, node by node: unit u, pipeline position s, place j among a stage's nodes."""

    units: int
    positions: int
    width: int = 1
    stages_per_node: int = 1

    @property
    def nodes(self):
        return list(product(range(self.units), range(self.positions), range(self.width)))

    @property
    def stages(self):
        return self.positions * self.stages_per_node

    @property
    def shape(self):
        return JobShape(
            nodes=len(self.nodes),
            gpus_per_node=8 * self.stages_per_node,
            replicas=self.units,
            stages=self.stages,
            tensor=8,
            nodes_per_replica=self.positions * self.width,
        )


LAYOUTS = [
    Layout(1, 6),
    Layout(2, 4),
    Layout(4, 3),
    Layout(3, 4),
    Layout(6, 2),
    Layout(7, 1),
    Layout(2, 3, 2),
    Layout(3, 2, 2),
    Layout(3, 1, 4),
    Layout(2, 7),
    Layout(2, 3, 1, 2),
    Layout(3, 2, 1, 4),
]


@cache
def states(layout):
    """All sets of failed nodes, by their number."""
    nodes = layout.nodes
    return [[frozenset(s) for s in combinations(nodes, k)] for k in range(len(nodes) + 1)]


def mean(layout, speed):
    """Mean speed over all sets of k failed nodes, in fractions: of many sets few speeds differ."""
    speeds = [Counter(map(speed, sets)) for sets in states(layout)]
    return [
        float(sum((v * n for v, n in each.items()), Fraction(0)) / each.total()) for each in speeds
    ]


def close(found, expected):
    assert found.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)


def bamboo(layout, failed, batch, micro_batches):
    alive, merged = 0, False
    for u in range(layout.units):
        mine = {(s, j) for v, s, j in failed if v == u}
        if not any(((s + 1) % layout.positions, j) in mine for s, j in mine):
            alive, merged = alive + 1, merged or bool(mine)
    if not alive:
        return Fraction(0)
    m, p = micro_batches, layout.stages
    speed = Fraction(alive, layout.units)
    if batch == "keep":
        speed = Fraction(m, math.ceil(Fraction(m * layout.units, alive)))
    slow = Fraction(1, 2) if m is None else Fraction(p + m - 1, p + 2 * (m - 1))
    return speed * (slow if merged else 1)


@pytest.mark.parametrize(
    ("batch", "micro_batches"),
    [("shrink", None), ("shrink", 1), ("shrink", 5), ("keep", 1), ("keep", 6)],
)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_bamboo_is_the_mean_over_all_sets(layout, batch, micro_batches):
    policy = Recovery("bamboo", 60.0, batch=batch, micro_batches=micro_batches)
    expected = mean(layout, lambda failed: bamboo(layout, failed, batch, micro_batches))
    close(policy.speed(layout.shape, len(layout.nodes)), expected)
    cut = len(layout.nodes) // 2
    close(policy.speed(layout.shape, cut), expected[: cut + 1])


def test_the_overhead_of_redundancy_is_always_paid():
    shape = Layout(3, 4).shape
    plain = Recovery("bamboo", 60.0).speed(shape, 12)
    close(Recovery("bamboo", 60.0, overhead=0.2).speed(shape, 12), (0.8 * plain).tolist())


def recycle(layout, failed, micro_batches, bubble):
    """Slots of the busiest stage: what remaining workers do beyond what is left of the bubble."""
    gone = [len({u for u, s, _ in failed if s == stage}) for stage in range(layout.positions)]
    left = layout.units - max(gone)
    if not left:
        return Fraction(0)
    if micro_batches is None:
        return Fraction(left, layout.units)
    full = micro_batches + layout.stages - 1
    work = max(math.ceil(Fraction(layout.units * micro_batches, layout.units - g)) for g in gone)
    return full / max(Fraction(full), work + (1 - Fraction(bubble)) * (layout.stages - 1))


@pytest.mark.parametrize(
    ("micro_batches", "bubble"), [(None, None), (1, None), (4, 0.0), (4, 0.5), (7, 1.0)]
)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_recycle_is_the_mean_over_all_sets(layout, micro_batches, bubble):
    policy = Recovery("recycle", 60.0, micro_batches=micro_batches, bubble=bubble)
    expected = mean(
        layout, lambda s: recycle(layout, s, micro_batches, 1.0 if bubble is None else bubble)
    )
    close(policy.speed(layout.shape, len(layout.nodes)), expected)
    close(policy.speed(layout.shape, 2), expected[:3])


def reduced(layout, failed, kept, batch, micro_batches):
    """Speed of replicas of two paces."""
    return _two_paces(layout.units, len({u for u, _, _ in failed}), kept, batch, micro_batches)


@cache  # the same for all sets that slow as many replicas
def _two_paces(units, slowed, kept, batch, micro_batches):
    """Fewest ticks in which replicas of both paces do the batch, by trying every split."""
    whole, tensor = units - slowed, 8
    if batch == "shrink":
        return (whole + slowed * Fraction(kept, tensor)) / units
    total = units * micro_batches
    times = []
    for fast in range(total + 1):
        if (fast and not whole) or (fast < total and not slowed):
            continue
        each = math.ceil(Fraction(fast, whole)) if fast else 0
        other = math.ceil(Fraction(total - fast, slowed)) if fast < total else 0
        times.append(max(Fraction(each), other * Fraction(tensor, kept)))
    return micro_batches / min(times)


@pytest.mark.parametrize("divisor", [False, True])
@pytest.mark.parametrize(
    ("batch", "micro_batches"), [("shrink", None), ("keep", 1), ("keep", 5), ("keep", 12)]
)
@pytest.mark.parametrize("layout", LAYOUTS[:8], ids=str)
def test_reduced_tensor_is_the_mean_over_all_sets(layout, batch, micro_batches, divisor):
    policy = Recovery(
        "reduced_tensor", 60.0, batch=batch, micro_batches=micro_batches, divisor=divisor
    )
    expected = mean(layout, lambda s: reduced(layout, s, 4 if divisor else 7, batch, micro_batches))
    close(policy.speed(layout.shape, len(layout.nodes)), expected)


@pytest.mark.parametrize("partial", [0.0, 0.25, 1.0])
@pytest.mark.parametrize(
    "layout", [Layout(2, 3), Layout(3, 2), Layout(1, 4), Layout(5, 1)], ids=str
)
def test_reduced_tensor_drops_replicas_with_a_dead_node(layout, partial):
    def speed(failed):
        """Mean over which of the failed nodes have lost one GPU only."""
        total = Fraction(0)
        for few in product((True, False), repeat=len(failed)):
            chance = math.prod(
                (Fraction(partial) if f else 1 - Fraction(partial) for f in few), start=Fraction(1)
            )
            dead = {u for (u, _, _), f in zip(failed, few, strict=True) if not f}
            slowed = {u for (u, _, _), f in zip(failed, few, strict=True) if f} - dead
            whole = layout.units - len(dead) - len(slowed)
            total += chance * (whole + len(slowed) * Fraction(7, 8)) / layout.units
        return total

    policy = Recovery("reduced_tensor", 60.0, partial=partial)
    close(policy.speed(layout.shape, len(layout.nodes)), mean(layout, speed))


@pytest.mark.parametrize("boost", [1.0, 1.0625, Fraction(8, 7), 1.5])
@pytest.mark.parametrize(("batch", "micro_batches"), [("shrink", None), ("keep", 1), ("keep", 5)])
@pytest.mark.parametrize("layout", LAYOUTS[:4], ids=str)
def test_boosted_replicas_are_slowed_less_until_they_keep_up(layout, batch, micro_batches, boost):
    """7 of 8 GPUs that are 8/7 as fast do the work of 8; more speed than that only waits."""
    policy = Recovery(
        "reduced_tensor", 60.0, batch=batch, micro_batches=micro_batches, boost=float(boost)
    )
    ranks = min(7 * Fraction(boost), Fraction(8))
    expected = mean(layout, lambda s: reduced(layout, s, ranks, batch, micro_batches))
    close(policy.speed(layout.shape, len(layout.nodes)), expected)


@pytest.mark.parametrize("failed", [1e-4, 1e-3, 1e-2])
def test_a_failed_gpu_of_a_rack_of_72_costs_the_rack_or_one_gpu(failed):
    """A share of GPUs is down, each alone: 72 times as much is lost if every rack must be whole."""
    racks, repair = 256, 86400.0
    shape = JobShape(
        nodes=racks, gpus_per_node=72, replicas=racks, stages=1, tensor=72, nodes_per_replica=1
    )
    hit = -math.expm1(72 * math.log1p(-failed))
    rate = hit / (1 - hit) / repair
    kept = {
        name: 1 - Recovery(policy, repair, **options).throughput(shape, rate)
        for name, policy, options in (
            ("dropped", "elastic", {}),
            ("slowed", "reduced_tensor", {}),
            ("boosted", "reduced_tensor", {"boost": 72 / 71}),
        )
    }
    assert kept["dropped"] == pytest.approx(hit, rel=1e-9)
    assert kept["dropped"] == pytest.approx(72 * kept["slowed"], rel=1e-9)
    twice = 71 / 2 * failed  # Bonferroni: racks with two failed GPUs count as if with one
    assert failed * (1 - twice) <= kept["slowed"] <= failed
    assert abs(kept["boosted"]) < 1e-12


def shards(layout, failed, holders):
    dead = {u for u, _, _ in failed}
    return spread(layout.units, frozenset(dead), min(holders, layout.units))


@cache
def spread(units, dead, holders):
    """One over the most shards on a living holder: least for which a flow carries all shards."""
    shard, holder = np.divmod(np.arange(units * holders), holders)
    holder = units + (shard + holder) % units
    alive = units + np.setdiff1d(np.arange(units), list(dead))
    shard, holder = (ends[np.isin(holder, alive)] for ends in (shard, holder))
    tail = np.concatenate([shard, np.full(units, 2 * units), alive])
    head = np.concatenate([holder, np.arange(units), np.full(alive.size, 2 * units + 1)])
    for most in range(1, holders + 1):
        room = np.concatenate([np.ones(shard.size + units), np.full(alive.size, most)]).astype(
            np.int32
        )
        arcs = csr_array((room, (tail, head)), shape=(2 * units + 2, 2 * units + 2))
        if maximum_flow(arcs, 2 * units, 2 * units + 1).flow_value == units:
            return Fraction(1, most)
    return Fraction(0)


@pytest.mark.parametrize("holders", [1, 2, 3])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_spare_shards_are_the_mean_over_all_sets(layout, holders):
    policy = Recovery("spare_shards", 60.0, holders=holders)
    close(
        policy.speed(layout.shape, len(layout.nodes)),
        mean(layout, lambda s: shards(layout, s, holders)),
    )


@pytest.mark.parametrize(
    ("units", "holders", "dead"), [(12, 3, 6), (8, 3, 4), (9, 4, 6), (10, 5, 5), (12, 2, 4)]
)
def test_a_long_run_of_dead_holders_loads_the_living_one(units, holders, dead):
    """The average load says 0.153 for 12 units of which 6 are dead, all sets say 0.124."""
    speed = Recovery("spare_shards", 1.0, holders=holders).speed(Layout(units, 1).shape, dead)[dead]
    every = [spread(units, frozenset(s), holders) for s in combinations(range(units), dead)]
    assert speed == pytest.approx(float(sum(every, Fraction(0)) / len(every)), rel=1e-12)


@pytest.mark.parametrize(
    ("units", "holders", "dead"), [(128, 8, 64), (128, 8, 80), (64, 4, 32), (40, 6, 26)]
)
def test_spare_shards_of_large_rings_are_the_mean_over_drawn_sets(units, holders, dead):
    rng, drawn = np.random.default_rng(units + dead), []
    for _ in range(400):
        gone = frozenset(rng.choice(units, dead, replace=False).tolist())
        drawn.append(float(spread.__wrapped__(units, gone, holders)))
    speed = Recovery("spare_shards", 1.0, holders=holders).speed(Layout(units, 1).shape, dead)[dead]
    assert speed == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / len(drawn) ** 0.5)


def test_spare_shards_of_a_huge_ring_are_refused():
    with pytest.raises(ValueError, match="down must be at most"):
        Recovery("spare_shards", 1.0, holders=30).speed(Layout(100_000, 1).shape, 20_000)


@pytest.mark.parametrize(("units", "holders"), [(200, 8), (600, 10), (600, 20)])
def test_failures_that_spare_shards_endure(units, holders):
    """Holders at random endure Gamma(1/r) N^(1 - 1/r) / r failures, a little less than a ring."""
    endured = sum(shards_held(units, holders, dead) for dead in range(units))
    form = math.gamma(1 / holders) * units ** (1 - 1 / holders) / holders
    assert 1.04 < endured / form < 1.12


def oobleck(nodes, smallest, largest, faults, layers):
    """Best sum of rates over every multiset of sizes, by enumeration."""

    def rate(size):
        return (
            Fraction(size)
            if layers is None
            else Fraction(layers, math.ceil(Fraction(layers, size)))
        )

    best = [Fraction(0)]

    def extend(left, size, count, total):
        if count > faults:
            best.append(total)
        for chosen in range(size, min(left, largest) + 1):
            extend(left - chosen, chosen, count + 1, total + rate(chosen))

    extend(nodes, smallest, 0, Fraction(0))
    return max(best)


@pytest.mark.parametrize(("faults", "layers"), [(0, None), (1, None), (1, 8), (2, 10), (1, 13)])
@pytest.mark.parametrize(("smallest", "largest"), [(1, 1), (2, 3), (3, 5), (2, 8), (4, 4)])
def test_oobleck_is_the_best_of_all_instantiations(smallest, largest, faults, layers):
    shape = Layout(14, 1).shape
    policy = Recovery(
        "oobleck", 60.0, smallest=smallest, largest=largest, faults=faults, layers=layers
    )
    speeds = [oobleck(14 - k, smallest, largest, faults, layers) for k in range(15)]
    close(policy.speed(shape, 14), [float(s / speeds[0]) for s in speeds])


def test_policies_agree_where_they_mean_the_same():
    shape = JobShape(nodes=60, replicas=60, stages=1, tensor=8, nodes_per_replica=1)
    elastic = Recovery("elastic", 60.0).speed(shape, 60)
    for policy in ("regroup", "bamboo", "recycle"):
        close(Recovery(policy, 60.0).speed(shape, 60), elastic.tolist())
    close(Recovery("oobleck", 60.0, faults=0).speed(shape, 60), elastic.tolist())
    close(Recovery("reduced_tensor", 60.0, partial=0.0).speed(shape, 60), elastic.tolist())
    one = JobShape(nodes=60, replicas=480, stages=1, tensor=1, nodes_per_replica=1)
    close(
        Recovery("elastic", 60.0, batch="keep", micro_batches=3).speed(one, 60),
        Recovery("bamboo", 60.0, batch="keep", micro_batches=3).speed(one, 60).tolist(),
    )


@pytest.mark.parametrize(
    "policy",
    ["elastic", "regroup", "bamboo", "oobleck", "recycle", "reduced_tensor", "spare_shards"],
)
def test_large_jobs_agree_with_random_sets(policy):
    rng, layout, down, runs = np.random.default_rng(5), Layout(64, 16), 40, 300
    shape = layout.shape
    options = {"micro_batches": 12} if policy in ("recycle", "bamboo") else {}
    options |= {"holders": 6} if policy == "spare_shards" else {}
    speed = Recovery(policy, 60.0, **options).speed(shape, down)[-1]
    drawn = []
    for _ in range(runs):
        failed = [layout.nodes[i] for i in rng.choice(len(layout.nodes), down, replace=False)]
        drawn.append(
            float(
                {
                    "elastic": lambda s: Fraction(64 - len({u for u, _, _ in s}), 64),
                    "regroup": lambda s: Fraction((1024 - len(s)) // 16, 64),
                    "bamboo": lambda s: bamboo(layout, s, "shrink", 12),
                    "oobleck": lambda s: Fraction(1024 - len(s), 1024),
                    "recycle": lambda s: recycle(layout, s, 12, 1.0),
                    "reduced_tensor": lambda s: reduced(layout, s, 7, "shrink", None),
                    "spare_shards": lambda s: shards(layout, s, 6),
                }[policy](failed)
            )
        )
    error = np.std(drawn) / math.sqrt(runs)
    assert abs(np.mean(drawn) - speed) <= 4 * error + 1e-12


def test_the_curve_does_not_depend_on_where_it_ends():
    shape = Layout(128, 16).shape
    for policy in (
        Recovery("bamboo", 60.0),
        Recovery("recycle", 60.0, micro_batches=16),
        Recovery("bamboo", 60.0, batch="keep", micro_batches=16),
    ):
        close(policy.speed(shape, 40), policy.speed(shape, 700)[:41].tolist())


@pytest.mark.parametrize(
    "policy",
    ["elastic", "bamboo", "recycle", "regroup", "oobleck", "reduced_tensor", "spare_shards"],
)
def test_throughput_is_the_mean_over_independent_nodes(policy):
    layout, down = Layout(3, 4), 0.2 / 1.2
    recovery = Recovery(policy, 1.0, pause=0.5)
    weights = binom.pmf(np.arange(13), 12, down)
    expected = weights @ recovery.speed(layout.shape, 12) / (1 + 12 * 0.2 * 0.5)
    assert recovery.throughput(layout.shape, 0.2) == pytest.approx(expected, rel=1e-12)
    assert recovery.throughput(layout.shape, 0.0) == 1.0


def test_throughput_of_jobs_that_wait_is_the_time_without_a_shortage():
    shape = Layout(3, 4).shape
    assert Recovery("restart", 1.0).throughput(shape, 0.02) == pytest.approx(1 / 1.24)
    assert Recovery("hot_spares", 1.0).throughput(shape, 0.02) == pytest.approx(1.02**-12)


@pytest.mark.parametrize(
    ("policy", "options", "named"),
    [
        ("elastic", {"overhead": 0.1}, "overhead"),
        ("bamboo", {"bubble": 0.5}, "bubble"),
        ("recycle", {"batch": "keep", "micro_batches": 4}, "batch"),
        ("oobleck", {"micro_batches": 4}, "micro_batches"),
        ("recycle", {"micro_batches": 0}, "micro_batches"),
        ("restart", {"faults": 1}, "faults"),
        ("reduced_tensor", {"batch": "keep", "micro_batches": 2, "partial": 0.5}, "partial"),
        ("reduced_tensor", {"boost": 0.9}, "boost"),
        ("elastic", {"boost": 1.1}, "boost"),
        ("oobleck", {"smallest": 0}, "smallest"),
        ("melt", {}, "policy"),
        ("elastic", {"repair": -1.0}, "repair"),
    ],
)
def test_options_of_another_policy_are_refused(policy, options, named):
    with pytest.raises((ValueError, TypeError), match=rf"\b{named}\b must"):
        Recovery(policy, **{"repair": 60.0, **options})


def test_shapes_that_a_policy_cannot_take_are_refused():
    crooked = JobShape(
        nodes=8, replicas=2, stages=8, tensor=1, nodes_per_replica=4, stages_per_node=3
    )
    for policy in ("bamboo", "recycle"):
        with pytest.raises(ValueError, match="shape must spread 8 stages evenly"):
            Recovery(policy, 60.0).speed(crooked, 1)
    shared = JobShape(nodes=8, replicas=4, stages=2, tensor=4, nodes_per_replica=4)
    with pytest.raises(ValueError, match="shape must have replicas on nodes of their own"):
        Recovery("reduced_tensor", 60.0).speed(shared, 1)
    with pytest.raises(ValueError, match="shape must have 3 times 4 nodes"):
        Recovery("oobleck", 60.0, faults=2).speed(Layout(2, 4).shape, 1)
