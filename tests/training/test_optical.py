import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.training import slice_availability, usable_fraction


def drawn(n, up, cubes, hosts, samples, rng):
    return (rng.random((samples, cubes, hosts)) < up).all(axis=2)


@pytest.mark.parametrize(("n", "up"), [(16, 0.99), (32, 0.99), (8, 0.97), (5, 0.995)])
def test_both_wirings_are_those_of_drawn_hosts(n, up):
    alive = drawn(n, up, 64, 16, 4000, np.random.default_rng(3))
    switched = alive.sum(axis=1) // n * n / 64
    blocks = alive[:, : 64 // n * n].reshape(4000, -1, n).all(axis=2).sum(axis=1) * n / 64
    for values, wired in ((switched, True), (blocks, False)):
        error = 3.5 * values.std() / np.sqrt(4000) + 3 / 4000  # and an event never seen
        assert abs(values.mean() - usable_fraction(n, up, switched=wired)) <= error
    enough = (alive.sum(axis=1) >= 2 * n).mean()
    assert enough == pytest.approx(slice_availability(2, n, up), abs=0.03)


@given(cubes=st.integers(1, 10), n=st.integers(1, 10), up=st.floats(0, 1), hosts=st.integers(1, 3))
def test_all_states_of_a_small_pod(cubes, n, up, hosts):
    n = min(n, cubes)
    p = up**hosts
    states = (np.arange(2**cubes)[:, None] >> np.arange(cubes) & 1).astype(bool)
    chance = np.where(states, p, 1 - p).prod(axis=1)
    free = states.sum(axis=1) // n
    fixed = states[:, : cubes // n * n].reshape(len(states), -1, n).all(axis=2).sum(axis=1)
    for found, wired in ((free, True), (fixed, False)):
        shape = {"cubes": cubes, "hosts_per_cube": hosts, "switched": wired}
        assert usable_fraction(n, up, **shape) == pytest.approx(chance @ found * n / cubes, abs=1e-12)
        for slices in range(1, cubes // n + 1):
            exact = chance @ (found >= slices)
            assert slice_availability(slices, n, up, **shape) == pytest.approx(exact, abs=1e-12)


@given(up=st.floats(0, 1), n=st.integers(1, 64))
def test_switching_never_does_worse(up, n):
    assert usable_fraction(n, up) >= usable_fraction(n, up, switched=False) - 1e-12


def test_slices_larger_than_the_pod_are_refused():
    with pytest.raises(ValueError, match="cubes_per_slice"):
        usable_fraction(65, 0.99)
    with pytest.raises(ValueError, match="slices"):
        slice_availability(5, 16, 0.99)
