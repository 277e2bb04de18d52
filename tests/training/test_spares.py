from fractions import Fraction
from itertools import product
from math import factorial, inf

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s44.spares_law import spares_law
from relparallel.training import shortage_probability, spares_needed
from relparallel.training.spares import loss_probability


@given(servers=st.integers(0, 30), load=st.fractions(Fraction(1, 50), Fraction(40)))
def test_loss_probability_is_the_quotient_of_its_sum(servers, load):
    terms = [load**j / factorial(j) for j in range(servers + 1)]
    assert loss_probability(servers, float(load)) == pytest.approx(
        float(terms[-1] / sum(terms)), rel=1e-12
    )


def test_loss_probability_takes_loads_as_arrays_and_survives_extremes():
    busy = loss_probability(5, np.array([0.0, 1e-9, 1e30]))
    assert busy[0] == 0.0
    assert busy[1] == pytest.approx(1e-45 / 120, rel=1e-6)
    assert busy[2] == 1.0


def stationary_shortage(nodes, spares, failing, mending, crews=inf, hot=False):
    """Share of time short of nodes in the birth-death chain of repairs, by linear algebra."""
    states = (nodes if hot else 1) + spares + 1
    rates = np.zeros((states, states))
    for down in range(states):
        if down < states - 1:
            rates[down, down + 1] = (nodes + spares - down if hot else nodes) * failing
        if down:
            rates[down, down - 1] = min(down, crews) * mending
    np.fill_diagonal(rates, -rates.sum(axis=1))
    balance = np.vstack([rates.T, np.ones(states)])
    return np.linalg.lstsq(balance, np.eye(states + 1)[-1], rcond=None)[0][spares + 1 :].sum()


@pytest.mark.parametrize(("nodes", "spares"), [(1, 0), (10, 2), (50, 5), (200, 0)])
def test_cold_spares_are_a_birth_death_chain(nodes, spares):
    expected = stationary_shortage(nodes, spares, failing=0.01, mending=0.3)
    assert shortage_probability(nodes, spares, 0.01, 1 / 0.3) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.0, 1.4])
def test_cold_spares_feel_the_mean_repair_only(sigma):
    # LANL repairs are lognormal with sigma 1.4; a loss system of the same mean is as often short.
    rng, nodes, spares, failing, mean = np.random.default_rng(3), 40, 4, 0.01, 8.0
    clock, busy_until, waited, batches = 0.0, [], [], []
    for _ in range(200):
        start, waited = clock, 0.0
        for _ in range(300):
            clock += rng.exponential(1 / (nodes * failing))
            busy_until = [t for t in busy_until if t > clock]
            busy_until.append(clock + mean * rng.lognormal(-(sigma**2) / 2, sigma))
            if len(busy_until) > spares:
                waited += min(busy_until) - clock
                clock = min(busy_until)
        batches.append(waited / (clock - start))
    z = (np.mean(batches) - shortage_probability(nodes, spares, failing, mean)) / (
        np.std(batches) / np.sqrt(200)
    )
    assert abs(z) < 4


@pytest.mark.parametrize(("nodes", "spares"), [(3, 1), (4, 2), (2, 0), (1, 5)])
def test_hot_spares_are_a_binomial_tail(nodes, spares):
    down = 0.2 / 1.2
    total = sum(
        down ** sum(state) * (1 - down) ** (len(state) - sum(state))
        for state in product((0, 1), repeat=nodes + spares)
        if sum(state) > spares
    )
    assert shortage_probability(nodes, spares, 0.1, 2.0, kind="hot") == pytest.approx(
        total, rel=1e-12
    )


@given(
    nodes=st.integers(1, 5000),
    down=st.floats(0.0, 0.05),
    allowed=st.floats(1e-9, 0.9),
    kind=st.sampled_from(["cold", "hot"]),
)
def test_spares_needed_is_the_smallest_number_that_suffices(nodes, down, allowed, kind):
    spares = spares_needed(nodes, down, 1.0, allowed, kind)
    assert shortage_probability(nodes, spares, down, 1.0, kind) <= allowed * (1 + 1e-9)
    if spares:
        assert shortage_probability(nodes, spares - 1, down, 1.0, kind) > allowed * (1 - 1e-9)


def test_the_share_of_spares_falls_with_the_cluster():
    share = [spares_needed(n, 3.79e-3, 1.0, 1e-3) / n for n in (128, 512, 2048, 8192, 32768)]
    assert share == sorted(share, reverse=True)


@pytest.mark.parametrize("kind", ["cold", "hot"])
@pytest.mark.parametrize("crews", [1, 2, 5])
@pytest.mark.parametrize(("nodes", "spares"), [(1, 0), (10, 2), (40, 5), (25, 0)])
def test_a_few_crews_are_a_birth_death_chain(nodes, spares, crews, kind):
    expected = stationary_shortage(nodes, spares, 0.01, 0.3, crews, hot=kind == "hot")
    found = shortage_probability(nodes, spares, 0.01, 1 / 0.3, kind, crews)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["cold", "hot"])
def test_crews_enough_are_as_good_as_one_for_each(kind):
    job = {
        "nodes": 30,
        "spares": 4,
        "node_rate": np.array([0.0, 1e-3, 0.1]),
        "repair": 2.0,
        "kind": kind,
    }
    assert shortage_probability(**job, crews=34) == pytest.approx(
        shortage_probability(**job), rel=1e-10
    )


@given(
    nodes=st.integers(1, 200),
    down=st.floats(1e-4, 0.05),
    allowed=st.floats(1e-6, 0.5),
    crews=st.integers(1, 9),
    kind=st.sampled_from(["cold", "hot"]),
)
def test_spares_with_few_crews_are_the_fewest_or_refused(nodes, down, allowed, crews, kind):
    if shortage_probability(nodes, 5000, down, 1.0, kind, crews) > allowed * (1 + 1e-6):
        with pytest.raises(ValueError, match="crews must be more"):
            spares_needed(nodes, down, 1.0, allowed, kind, crews)
        return
    spares = spares_needed(nodes, down, 1.0, allowed, kind, crews)
    assert shortage_probability(nodes, spares, down, 1.0, kind, crews) <= allowed * (1 + 1e-9)
    if spares:
        assert shortage_probability(nodes, spares - 1, down, 1.0, kind, crews) > allowed * (
            1 - 1e-9
        )


@pytest.mark.parametrize("kind", ["cold", "hot"])
@pytest.mark.parametrize("shortage", [1e-2, 1e-3, 1e-4, 1e-6])
def test_the_square_root_law_is_a_few_spares_off(shortage, kind):
    # A million nodes: the law is the limit of many nodes of which few are down.
    loads = np.geomspace(0.1, 1e4, 30)
    needed = [spares_needed(10**6, load / 1e6, 1.0, shortage, kind) for load in loads]
    law = spares_law(loads, shortage, kind)
    assert np.abs(needed - law).max() < {"cold": 3, "hot": 6}[kind]


@pytest.mark.parametrize(
    ("name", "bad"),
    [("nodes", 0), ("node_rate", -1.0), ("repair", 1e300), ("shortage", 0.0), ("kind", "warm")],
)
def test_bad_spares_are_named(name, bad):
    good = {"nodes": 8, "node_rate": 1e-3, "repair": 1.0, "shortage": 0.1}
    with pytest.raises((ValueError, TypeError), match=name):
        spares_needed(**{**good, name: bad})


def test_a_load_beyond_every_cluster_is_refused():
    with pytest.raises(ValueError, match="repair"):
        spares_needed(nodes=10**6, node_rate=1.0, repair=1e3, shortage=0.1)
