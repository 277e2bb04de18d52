"""The dynamic programme on chains finds what looking at every division finds."""

from itertools import combinations

import numpy as np
import pytest

from chapters.chain import best_chains

INF = np.inf


def divisions(n, devices):
    """Every division of n items into consecutive groups with their devices."""
    for count in range(1, n + 1):
        for cuts in combinations(range(1, n), count - 1):
            edges = (0, *cuts, n)
            for shares in shared(devices, count):
                yield [(i, j, k) for i, j, k in zip(edges, edges[1:], shares, strict=False)]


def shared(devices, count):
    """Ways to give all devices to so many groups, each at least one; none if groups take none."""
    if not devices:
        return [(0,) * count]
    return [
        tuple(np.diff((0, *cuts, devices)).tolist())
        for cuts in combinations(range(1, devices), count - 1)
    ]


def value(groups, add, floor):
    reached, used = 0.0, 0
    for i, j, k in groups:
        used += k
        reached = max(reached + add[used, k, i, j], floor[used, k, i, j])
    return reached


@pytest.mark.parametrize("devices", [0, 1, 3, 5])
@pytest.mark.parametrize("kind", ["slowest", "sum", "one after another"])
def test_no_division_is_better(devices, kind):
    rng, n = np.random.default_rng(devices), 6
    shape = (devices + 1, devices + 1, n + 1, n + 1)
    add = np.zeros(shape) if kind == "slowest" else rng.integers(1, 9, shape).astype(float)
    floor = np.full(shape, -INF) if kind == "sum" else rng.integers(1, 9, shape).astype(float)
    floor = floor + add
    add[rng.random(shape) < 0.1] = INF
    found = best_chains(n, lambda j, u, k: (add[u, k, :j, j], floor[u, k, :j, j]), devices=devices)
    expected = min((value(groups, add, floor) for groups in divisions(n, devices)), default=INF)
    assert found.value == expected
    if np.isfinite(expected):
        groups = found.groups()
        assert value(groups, add, floor) == expected
        assert sum(k for *_, k in groups) == devices
        assert [i for i, *_ in groups] == [0, *(j for _, j, _ in groups[:-1])]
        assert groups[-1][1] == n


def test_chains_from_every_start_are_those_of_the_rest_alone():
    times = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    total = np.concatenate([[0.0], np.cumsum(times)])
    every = best_chains(
        5, lambda j, u, k: (0.0, (total[j] - total[:j]) / k), devices=3, every_start=True
    )
    for start in range(5):
        rest = total[start:] - total[start]
        alone = best_chains(5 - start, lambda j, u, k, t=rest: (0.0, (t[j] - t[:j]) / k), devices=3)
        np.testing.assert_allclose(every.values[:, start, start:], alone.values[:, 0])
        assert every.groups(start) == tuple((i + start, j + start, k) for i, j, k in alone.groups())


def test_devices_that_no_chain_uses_are_refused():
    found = best_chains(2, lambda j, u, k: (0.0, INF if k > 1 else 1.0), devices=3)
    assert found.value == INF
    with pytest.raises(ValueError, match="devices must be a number that some chain uses, got 3"):
        found.groups()
    assert found.groups(devices=2) == ((0, 1, 1), (1, 2, 1))
    assert found.groups_to(1, devices=1) == ((0, 1, 1),)


def test_what_is_no_cost_is_refused():
    with pytest.raises(TypeError, match="cost must be"):
        best_chains(2, 3.0)
    with pytest.raises(ValueError, match="items must be"):
        best_chains(0, lambda j, u, k: (0.0, 0.0))
