"""Frequency of failures against Markov chains of all states, simulation and finite differences."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

from relparallel.reliability import availability, failure_frequency
from relparallel.topology import leaf_spine


def by_markov_chain(graph, terminals, times):
    """Unavailability and failures per second: generator of all link states with these times."""
    links = list(graph.edges)
    states = list(product((0, 1), repeat=len(links)))  # 1: up
    index = {state: i for i, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for state in states:
        for i, (life, repair) in enumerate(times):
            other = (*state[:i], 1 - state[i], *state[i + 1 :])
            rates[index[state], index[other]] = 1 / life if state[i] else 1 / repair
    generator = rates - np.diag(rates.sum(axis=1))
    share = np.linalg.solve(
        np.vstack([generator.T[:-1], np.ones(len(states))]), np.eye(len(states))[-1]
    )
    works = np.array(
        [
            _connected(graph, terminals, [e for e, up in zip(links, s, strict=True) if up])
            for s in states
        ]
    )
    return share[~works].sum(), share[works] @ rates[works][:, ~works].sum(axis=1)


def _connected(graph, terminals, links):
    rest = nx.Graph(links)
    rest.add_nodes_from(graph)
    return all(nx.has_path(rest, terminals[0], t) for t in terminals)


GRAPHS = {
    "bridge": (nx.Graph(["sa", "sb", "ab", "at", "bt"]), ("s", "t")),
    "ring": (nx.cycle_graph(5), (0, 2, 3)),
    "K4": (nx.complete_graph(4), (0, 1, 2, 3)),
}


def _times(graph, seed=1):
    rng = np.random.default_rng(seed)
    return list(
        zip(
            rng.uniform(5, 50, len(graph.edges)), rng.uniform(0.5, 5, len(graph.edges)), strict=True
        )
    )


def _found(graph, terminals, times):
    return failure_frequency(
        graph, terminals, [life for life, _ in times], [repair for _, repair in times]
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_against_the_markov_chain_of_all_states(name):
    graph, terminals = GRAPHS[name]
    times = _times(graph)
    down, often = by_markov_chain(graph, terminals, times)
    found = _found(graph, terminals, times)
    assert found.unavailability == pytest.approx(down, rel=1e-11)
    assert found.frequency == pytest.approx(often, rel=1e-11)
    assert found.up_time == pytest.approx((1 - down) / often, rel=1e-11)
    assert found.down_time == pytest.approx(down / often, rel=1e-11)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("which", [0, 1])
def test_derivatives_against_differences_of_the_markov_chain(name, which):
    graph, terminals = GRAPHS[name]
    times = _times(graph, seed=2)
    found = _found(graph, terminals, times)
    slopes = dict(zip(found.names, (found.by_mtbf, found.by_mttr)[which], strict=True))
    for i, pair in enumerate(graph.edges):
        sides = []
        for step in (-1, 1):
            moved = [list(t) for t in times]
            moved[i][which] += step * 1e-3
            sides.append(by_markov_chain(graph, terminals, moved)[0])
        own = slopes[pair] if pair in slopes else slopes[pair[::-1]]
        assert own == pytest.approx((sides[1] - sides[0]) / 2e-3, rel=1e-5)


def test_against_a_simulation_with_other_laws():
    """Only mean lives and repairs count: uniform lives, constant repairs, four links in a ring."""
    rng, end = np.random.default_rng(7), 4e5
    lives, repair = (2.0, 10.0), 1.0
    changes = []
    for _ in range(4):
        gaps = np.column_stack([rng.uniform(*lives, 80_000), np.full(80_000, repair)])
        times = np.cumsum(gaps.ravel())
        changes += [(t, -1 if i % 2 == 0 else 1) for i, t in enumerate(times[times < end])]
    down, outages, since, out = 0, 0, 0.0, 0.0
    for t, change in sorted(changes):
        before, down = down, down - change
        if before == 1 and down == 2:
            outages, since = outages + 1, t
        if before == 2 and down == 1:
            out += t - since
    found = failure_frequency(nx.cycle_graph(4), "all", link_mtbf=6.0, link_mttr=repair)
    assert outages / end == pytest.approx(found.frequency, rel=4 / np.sqrt(outages))
    assert out / end == pytest.approx(found.unavailability, rel=6 / np.sqrt(outages))


def test_parts_in_series_add_their_failures():
    """Two nodes and one link, all needed; a repair that takes no time is a failure all the same."""
    found = failure_frequency(nx.path_graph(2), "all", 100.0, 0.0, {0: 50.0, 1: 25.0}, 0.0)
    assert found.unavailability == 0.0
    assert found.frequency == pytest.approx(1 / 100 + 1 / 50 + 1 / 25, rel=1e-14)
    assert found.down_time == 0.0


def test_one_part_is_its_own_system():
    found = failure_frequency(nx.path_graph(2), "all", 97.0, 3.0)
    assert (found.up_time, found.down_time) == pytest.approx((97.0, 3.0), rel=1e-14)
    assert found.availability == pytest.approx(availability(97.0, 3.0), rel=1e-15)
    assert found.by_mttr[0] == pytest.approx(97 / 100**2, rel=1e-14)
    assert found.by_mtbf[0] == pytest.approx(-3 / 100**2, rel=1e-14)


def test_parallel_cables_fail_alone():
    twice = nx.MultiGraph([(0, 1), (0, 1)])
    found = failure_frequency(twice, "all", 99.0, 1.0)
    assert found.unavailability == pytest.approx(1e-4, rel=1e-13)
    assert found.down_time == pytest.approx(0.5, rel=1e-13)  # two repairs at once
    assert found.by_mttr[0] == pytest.approx(2 * 0.01 * 99 / 100**2, rel=1e-12)


def test_attributes_and_names():
    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, 100.0, "life")
    by_name = failure_frequency(graph, (0, 2), link_mtbf="life", link_mttr=1.0)
    one = failure_frequency(graph, (0, 2), link_mtbf=100.0, link_mttr=1.0)
    assert by_name.frequency == one.frequency
    mapped = failure_frequency(graph, (0, 2), {(0, 1): 100.0, (3, 2): 50.0}, 1.0)
    assert set(mapped.names) == {(0, 1), (2, 3)}
    assert mapped.frequency == pytest.approx((1 / 101) * (1 / 51) * 2, rel=1e-13)


def test_a_fabric_too_wide_for_the_sweep_fails_as_its_single_parts_do():
    """60 leaves: hosts, their cables and leaf switches are alone; 16 spines hardly matter."""
    fabric, mtbf, mttr = leaf_spine(leaves=60, spines=16, hosts_per_leaf=1), 1e8, 1e3
    times = {"link_mtbf": mtbf, "link_mttr": mttr, "node_mtbf": mtbf, "node_mttr": mttr}
    found = failure_frequency(fabric, "all", **times)
    up = mtbf / (mtbf + mttr)
    assert found.frequency == pytest.approx(180 / (mtbf + mttr) * up**179, rel=1e-9)
    assert found.down_time == pytest.approx(
        (1 - up**180) / (180 / (mtbf + mttr) * up**179), rel=1e-9
    )


def test_the_table_begins_with_the_best_repair():
    table = failure_frequency(
        nx.Graph(["sa", "sb", "ab", "at", "bt"]), ("s", "t"), 100.0, 1.0
    ).to_frame()
    assert table["by_mttr_hour"].is_monotonic_decreasing
    assert table["part"].iloc[-1] == ("a", "b")
    assert table["share_of_failures"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("link_mtbf", [1.0]),
        ("link_mtbf", {(0, 2): 1.0}),
        ("link_mttr", "life"),
        ("node_mtbf", {9: 1.0}),
        ("node_mttr", -1),
    ],
)
def test_times_that_do_not_fit_are_refused(argument, value):
    with pytest.raises(ValueError, match=rf"{argument} must"):
        failure_frequency(nx.cycle_graph(4), **{argument: value})


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"link_mtbf": 100.0}, "link_mttr must .* a finite link_mtbf .* at least 0, got None"),
        (
            {"node_mtbf": 100.0, "link_mttr": 1.0},
            "node_mttr must .* a finite node_mtbf .* at least 0, got None",
        ),
        (
            {"link_mtbf": [100.0, np.inf], "link_mttr": {(1, 2): 1.0}},
            "link_mttr must .*, got no time for 0, 1",
        ),
        (
            {"node_mtbf": {1: 9.0, 2: 8.0}, "node_mttr": {1: 0.0}},
            "node_mttr must .*, got no time for 2",
        ),
    ],
)
def test_what_fails_needs_a_time_to_repair(times, told):
    """Without one, a network that fails would never be down."""
    with pytest.raises(ValueError, match=told):
        failure_frequency(nx.path_graph(3), **times)


def test_what_never_fails_needs_no_time_to_repair():
    found = failure_frequency(nx.path_graph(3), link_mtbf=[99.0, np.inf], link_mttr={(0, 1): 1.0})
    assert (found.names, found.frequency) == ([(0, 1)], pytest.approx(0.01, rel=1e-14))


def test_networks_without_links():
    alone = failure_frequency(nx.empty_graph(1), node_mtbf=90.0, node_mttr=10.0)
    assert alone.unavailability == pytest.approx(0.1)
    assert alone.frequency == pytest.approx(0.01)
    apart = failure_frequency(nx.empty_graph(2), node_mtbf=90.0, node_mttr=10.0)
    assert (apart.unavailability, apart.frequency) == (1.0, 0.0)


def test_a_network_that_is_never_connected_is_out_for_ever():
    parts = nx.Graph([(0, 1), (2, 3)])
    found = failure_frequency(parts, link_mtbf=1e6, link_mttr=1e3)
    assert (found.up_time, found.down_time) == (0.0, np.inf)
    assert "never connected" in repr(found)


def test_a_network_of_whose_failures_nothing_is_said_is_refused():
    with pytest.raises(ValueError, match="link_mtbf or node_mtbf must say how often parts fail"):
        failure_frequency(nx.cycle_graph(4))
