from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s22.circuits import circuit_demand, schedule_circuits
from chapters.s22.moved_circuits import reconfigure
from relparallel.topology import c_through, fat_tree, helios
from relparallel.topology.parts import LINK_CAPACITY


def matchings(groups):
    """All matchings of a small set."""
    if len(groups) < 2:
        return [()]
    first, *rest = groups
    alone = matchings(rest)
    return alone + [
        ((first, other), *more)
        for other in rest
        for more in matchings([g for g in rest if g != other])
    ]


@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.floats(0.2, 5))
def test_no_matching_carries_more(racks, seed, hold):
    rng = np.random.default_rng(seed)
    demand = (
        LINK_CAPACITY
        * rng.exponential(size=(racks, racks))
        * rng.integers(0, 2, size=(racks, racks))
    )
    np.fill_diagonal(demand, 0)
    found = schedule_circuits(c_through(1, racks, 1), demand, hold, 0.0)
    served = np.minimum(demand, LINK_CAPACITY * hold)
    best = max(
        sum(served[i, j] + served[j, i] for i, j in pairs)
        for pairs in matchings(list(range(racks)))
    )
    assert found.carried[0] == pytest.approx(best, rel=1e-9, abs=1e-3)
    assert found.remaining.sum() == pytest.approx(demand.sum() - best, rel=1e-9, abs=1e-3)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.floats(0.2, 5))
def test_no_one_way_circuits_carry_more(pods, seed, hold):
    rng = np.random.default_rng(seed)
    t = helios(pods, 16, 0.5, 0.5)  # one fibre of eight wavelengths a pod
    most = 8 * LINK_CAPACITY * hold
    demand = 8 * LINK_CAPACITY * rng.exponential(size=(pods, pods))
    np.fill_diagonal(demand, 0)
    found = schedule_circuits(t, demand, hold, 0.0, directed=True)
    served = np.minimum(demand, most)
    best = max(served[range(pods), to].sum() for to in permutations(range(pods)))
    assert found.carried[0] == pytest.approx(best, rel=1e-9)
    assert found.carried[0] >= schedule_circuits(t, demand, hold, 0.0).carried[0] * (1 - 1e-9)


@pytest.mark.parametrize(
    "t", [c_through(2, 2, 3), helios(4, 16, 0.5, 0.5)], ids=lambda t: t.meta.name
)
def test_demand_of_groups_is_what_waits_in_their_hosts(t):
    waiting = np.random.default_rng(3).exponential(size=(t.num_hosts, t.num_hosts))
    graph = t.to_networkx()
    # of each host, one for each rack or pod
    switch = [min(graph[host]) for host in t.hosts.tolist()]
    _, group = np.unique(switch, return_inverse=True)
    summed = np.zeros((4, 4))
    np.add.at(summed, (group[:, None], group[None]), waiting)
    np.fill_diagonal(summed, 0)
    assert circuit_demand(t, waiting) == pytest.approx(summed, rel=1e-12)


def test_saturated_circuits_carry_their_share_of_the_time():
    racks, hold, dark = 8, 0.1, 0.012
    demand = 1e15 * (1 - np.eye(racks))
    found = schedule_circuits(c_through(2, 4, 16), demand, hold, dark, epochs=5)
    assert found.duty == pytest.approx(hold / (hold + dark))
    assert found.throughput == pytest.approx(racks * LINK_CAPACITY * found.duty)
    assert found.duration == pytest.approx(5 * (hold + dark))
    assert all(len(pairs) == racks // 2 for pairs in found.matchings)


def test_the_fibres_of_a_helios_pod_are_all_used_and_can_be_wired():
    t = helios(pods=4, hosts_per_pod=16, electrical=0.5, optical=0.5, wavelengths=4)
    demand = np.zeros((4, 4))
    demand[0, 1], demand[2, 3], demand[0, 2] = 1e15, 1e15, 1e12
    found = schedule_circuits(t, demand, 1.0, 0.012)
    assert found.matchings == (((0, 1), (0, 1), (2, 3), (2, 3)),)
    assert found.carried[0] == 4 * 4 * LINK_CAPACITY
    assert reconfigure(t, found.matchings[0]).num_links == t.num_links + 4


def test_without_demand_or_fibres_there_are_no_circuits():
    for t in (c_through(1, 3, 1), helios(3, 4, 1.0, 0.0)):
        found = schedule_circuits(t, np.zeros((3, 3)), 1.0, 0.012, epochs=2)
        assert found.matchings == ((), ())
        assert found.throughput == 0


def test_what_the_caller_gave_is_not_changed():
    demand = LINK_CAPACITY * (1 - np.eye(4))
    schedule_circuits(c_through(1, 4, 4), demand, 1.0, 0.0)
    assert demand.sum() == 12 * LINK_CAPACITY


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"topology": fat_tree(4)}, "topology must be one of the designs"),
        ({"demand": np.ones((4, 4))}, "demand must be .4, 4. with a diagonal of zeros"),
        ({"demand": np.zeros((3, 3))}, "demand must be .4, 4."),
        ({"demand": -np.ones((4, 4))}, "demand must be a number >= 0"),
        ({"hold_time": 0}, "hold_time must be"),
        ({"reconfiguration_time": -1}, "reconfiguration_time must be"),
    ],
)
def test_bad_arguments_are_named(changed, error):
    given_ = {"topology": c_through(2, 2, 2), "demand": np.zeros((4, 4)), "hold_time": 1.0}
    with pytest.raises((TypeError, ValueError), match=error):
        schedule_circuits(**{**given_, "reconfiguration_time": 0.0, **changed})
