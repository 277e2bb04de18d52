"""Transfers between meshes: never below the bound, search against all orders, all bytes counted."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s37.resharding import reshard
from chapters.s37.sharding import movement, shards

LAYOUTS = st.sampled_from(
    [{}, {"x": "h"}, {"y": "h"}, {"x": "g"}, {"x": "h", "y": "g"}, {"y": "h", "x": "g"}]
)
UNIT = {"bandwidth": 1.0, "element_bytes": 1.0}


def boxes(layout, hosts, devices=2, x=6, y=5):
    return shards({"x": x, "y": y}, {"h": hosts, "g": devices}, layout)


@given(ways=st.tuples(LAYOUTS, LAYOUTS), hosts=st.tuples(st.integers(1, 3), st.integers(1, 3)))
@settings(deadline=None)
def test_orders_keep_their_ranks_and_hosts_do_one_thing_at_a_time(ways, hosts):
    before, after = boxes(ways[0], hosts[0]), boxes(ways[1], hosts[1])
    found = [
        reshard(before, after, order=how, per_host=2, **UNIT)
        for how in ("given", "greedy", "search")
    ]
    given_, greedy, search = (plan.time for plan in found)
    assert search <= greedy + 1e-9
    assert search <= given_ + 1e-9
    for plan in found:
        assert plan.time >= plan.bound - 1e-9
        line = plan.timeline
        for host in range(line.resources):
            mine = np.flatnonzero(line.resource == host)
            mine = mine[np.argsort(line.start[mine])]
            assert (line.finish[mine][:-1] <= line.start[mine][1:] + 1e-9).all()
        sent = line.duration[line.kind == "send"].sum()
        assert sent >= 30 - 1e-9  # every entry leaves at least once


def test_methods_cost_what_they_say():
    whole, copies = boxes({}, 1, 1), boxes({}, 2)
    times = [
        reshard(whole, copies, method=how, per_host=2, pieces=10, **UNIT).time
        for how in ("send_recv", "all_gather", "broadcast")
    ]
    assert times == pytest.approx([4 * 30, 2 * 30, 30 * 1.1])


def test_send_recv_moves_what_the_movement_counts():
    before, after = boxes({"x": "h", "y": "g"}, 2), boxes({"y": "h", "x": "g"}, 3)
    plan = reshard(before, after, method="send_recv", per_host=2, **UNIT)
    assert (
        plan.timeline.duration[plan.timeline.kind == "send"].sum()
        == movement(before, after).traffic.sum()
    )


@pytest.mark.parametrize("seed", range(3))
def test_search_finds_what_all_orders_and_all_senders_would(seed):
    rng = np.random.default_rng(seed)
    cut = sorted(rng.choice(np.arange(1, 12), 2, replace=False).tolist())
    edges = np.array([0, *cut, 12])
    parts = np.column_stack((edges[:-1], edges[1:]))[:, None]
    before = parts[[0, 1, 2, 0, 1, 2]]  # every part twice, on three hosts of two workers
    after = np.array([[[0, 7]], [[5, 12]]])
    plan = reshard(before, after, order="search", per_host=2, pieces=1, **UNIT)
    assert plan.time == pytest.approx(brute_force(before, after))
    assert plan.proven


def brute_force(before, after) -> float:
    """Least end over all orders and senders of the pieces between all ends."""
    ends = np.unique(np.concatenate([before, after]))
    tasks: dict[tuple, float] = {}
    for low, high in pairwise(ends):
        holders, users = (
            tuple(i for i, ((a, b),) in enumerate(side.tolist()) if a <= low and high <= b)
            for side in (before, after)
        )
        key = tuple({i // 2 for i in holders}), tuple(sorted({i // 2 for i in users}))
        name = (holders, users, key)
        tasks[name] = tasks.get(name, 0.0) + float(high - low)
    work = [(key[0], key[1], seconds * len(key[1])) for (_, _, key), seconds in tasks.items()]
    best = np.inf
    for order in permutations(work):
        for senders in product(*[task[0] for task in order]):
            free: dict[tuple[str, int], float] = {}
            for sender, (_, receivers, seconds) in zip(senders, order, strict=True):
                ports = [("out", sender), *(("in", host) for host in receivers)]
                free |= dict.fromkeys(ports, max(free.get(port, 0.0) for port in ports) + seconds)
            best = min(best, max(free.values()))
    return best


def test_bad_meshes_are_refused():
    with pytest.raises(ValueError, match="after must have 2 dimensions"):
        reshard(boxes({}, 1), shards({"x": 6}, {"h": 1}, {}), bandwidth=1.0)
    with pytest.raises(ValueError, match="per_host must give at most"):
        reshard(boxes({}, 16), boxes({}, 1), bandwidth=1.0)
    with pytest.raises(ValueError, match="before must hold all of after"):
        reshard(boxes({"x": "h"}, 2)[:1], boxes({}, 1), bandwidth=1.0)
