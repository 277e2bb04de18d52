import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.topology import fat_tree, grow, hyperx, jellyfish, leaf_spine, torus, xpander


def rng(seed=1):
    return np.random.default_rng(seed)


def cables_between_switches(t):
    return {tuple((edge - t.num_hosts).tolist()) for edge in t.edges if edge.min() >= t.num_hosts}


def moved(before, after):
    """Cables between switches that are pulled, and that are laid."""
    old, new = cables_between_switches(before), cables_between_switches(after)
    return len(old - new), len(new - old)


@settings(max_examples=25)
@given(
    n=st.integers(12, 40),
    r=st.integers(3, 6),
    p=st.integers(0, 3),
    more=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_jellyfish_grows_without_a_change_of_ports(n, r, p, more, seed):
    n += n * r % 2
    before = jellyfish(n, r + p, r, rng(seed))
    after = grow(before, more, rng(seed))
    count = before.num_hosts // n if p else 0
    assert (after.num_hosts, after.num_nodes) == (
        before.num_hosts + more * max(count, 1),
        before.num_nodes + more * (1 + p),
    )
    ports = after.degrees[after.num_hosts if p else 0 :]
    assert set(ports[:n].tolist()) == {r + p}
    assert set(ports[n:].tolist()) == {2 * (r // 2) + p}
    assert nx.is_connected(after.to_networkx())


@pytest.mark.parametrize("r", [3, 4, 7, 10])
def test_one_more_switch_moves_half_as_many_cables_as_it_has_ports(r):
    before = jellyfish(40, r + 2, r, rng())
    assert moved(before, grow(before, 1, rng())) == (r // 2, 2 * (r // 2))


def test_a_quarter_more_of_a_jellyfish_moves_few_cables():
    """Each of 50 switches takes at most r/2 = 4 cables of the old network apart, of 800 that it has."""
    before = jellyfish(200, 12, 8, rng())
    after = grow(before, 50, rng())
    assert after.num_hosts - before.num_hosts == before.num_hosts // 4
    assert 150 < moved(before, after)[0] <= 50 * 4


def test_xpander_grows_the_same_way():
    before = xpander(6, 5, 2, rng())
    after = grow(before, 3, rng())
    assert moved(before, after)[0] <= 9
    assert set(after.degrees[after.switches].tolist()) == {8}
    assert set(after.pod[after.switches][-3:].tolist()) == {-1}


def test_the_same_state_gives_the_same_network():
    t = jellyfish(20, 6, 4, rng())
    assert grow(t, 4, rng(3)) == grow(t, 4, rng(3))
    assert grow(t, 4, rng(3)) != grow(t, 4, rng(4))


@pytest.mark.parametrize("t", [fat_tree(4), leaf_spine(4, 2, 2), torus((4, 4))], ids=repr)
def test_networks_of_unequal_switches_are_refused(t):
    with pytest.raises(ValueError, match="topology must be of switches with as many hosts and cables each"):
        grow(t, 1, rng())


def test_a_network_that_has_no_cable_to_spare_is_refused():
    with pytest.raises(ValueError, match="topology must have cables away from the neighbours of switch 2"):
        grow(hyperx((2,), 1, 4), 1, rng())  # two switches with four cables: the first joins both


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"switches": 0}, "switches must be"),
        ({"rng": 3}, "rng must be"),
        ({"topology": None}, "topology must"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        grow(**{"topology": jellyfish(8, 4, 3, rng()), "switches": 1, "rng": rng()} | arguments)
