"""The cheapest reliable network is what enumeration of all subsets finds."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from relparallel.optimize import cheapest_network, reliable_network
from relparallel.optimize.cheapest_network import _credits, _enumerated
from relparallel.reliability import evaluate


def instance(seed: int, nodes: int, links: int) -> nx.Graph:
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(nodes, links, seed=seed)
    for pair in graph.edges:
        graph.edges[pair].update(
            cost=float(rng.integers(1, 20)), up=float(rng.choice([0.8, 0.9, 0.95]))
        )
    return graph


def failure(graph: nx.Graph, links, terminals) -> float:
    """Over all states of the links that are bought."""
    total = 0.0
    for state in product((True, False), repeat=len(links)):
        alive = nx.Graph([pair for pair, up in zip(links, state, strict=True) if up])
        alive.add_nodes_from(graph)
        if not all(nx.has_path(alive, terminals[0], t) for t in terminals[1:]):
            total += np.prod(
                [
                    graph.edges[pair]["up"] if up else 1 - graph.edges[pair]["up"]
                    for pair, up in zip(links, state, strict=True)
                ]
            )
    return float(total)


def cheapest(graph: nx.Graph, admitted: float, terminals) -> float | None:
    """Least price over all subsets, cheap ones first, with the exact index."""
    pairs = list(graph.edges)
    prices = np.array([graph.edges[pair]["cost"] for pair in pairs])
    ups = np.array([graph.edges[pair]["up"] for pair in pairs])
    subsets = np.array(list(product((0, 1), repeat=len(pairs))))
    for subset in subsets[np.argsort(subsets @ prices, kind="stable")]:
        bought = nx.Graph([pair for pair, taken in zip(pairs, subset, strict=True) if taken])
        bought.add_nodes_from(graph)
        joined = nx.node_connected_component(bought, terminals[0]) >= set(terminals)
        if (
            joined
            and evaluate(graph, terminals, np.where(subset, ups, 0.0)).unreliability <= admitted
        ):
            return float(subset @ prices)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_it_is_what_enumeration_finds(seed):
    nodes = 4 + seed % 3
    graph = instance(seed, nodes, min(nodes * (nodes - 1) // 2, 9))
    terminals = list(graph) if seed % 2 else [0, 1, 2]
    admitted = (0.05, 0.1, 0.2)[seed % 3]
    expected = cheapest(graph, admitted, terminals)
    if expected is None:
        with pytest.raises(ValueError, match="unreliability must be at least"):
            reliable_network(graph, admitted, terminals, "up")
        return
    design = reliable_network(graph, admitted, terminals, "up")
    assert design.proven
    assert design.cost == pytest.approx(expected)
    assert failure(graph, list(design.links), terminals) == pytest.approx(
        design.unreliability, rel=1e-10
    )
    assert design.unreliability <= admitted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_sets_in_order_of_price_and_relaxations_find_the_same(seed, monkeypatch):
    graph, admitted = instance(seed, 7, 13), (0.05, 0.1, 0.2)[seed % 3]
    for pair in list(graph.edges)[: seed % 4]:
        graph.edges[pair]["cost"] = 0.0
    if evaluate(graph, link_up="up").unreliability > admitted:
        return
    expected = cheapest(graph, admitted, list(graph))
    for few in (0, 3, 10**6):
        monkeypatch.setattr(cheapest_network, "FEW", few)
        design = reliable_network(graph, admitted, link_up="up")
        assert (design.cost, design.proven) == (expected, True)


@pytest.mark.parametrize("extra", [0.0, 3e-4], ids=["halves", "no common coin"])
def test_prices_need_not_be_whole_for_a_proof(extra):
    graph = nx.Graph()
    for u, v, cost, up in (
        *((0, 1, 1, 1.0), (0, 2, 3, 0.99), (0, 3, 2, 1.0), (0, 4, 1.5, 0.99), (1, 2, 3, 0.9)),
        *((1, 3, 1, 1.0), (1, 4, 1, 0.8), (2, 3, 2, 0.8), (2, 4, 1.5, 0.5), (3, 4, 3, 0.5)),
    ):
        graph.add_edge(u, v, cost=cost + extra, up=up)
    design = reliable_network(graph, 0.2, link_up="up", max_rounds=60)
    assert design.proven
    assert design.cost == pytest.approx(cheapest(graph, 0.2, list(graph)), rel=1e-12)


@pytest.mark.slow
def test_ten_nodes_and_20_links_are_proven():
    graph = instance(5, 10, 20)
    design = reliable_network(graph, 0.1, link_up="up")
    assert design.proven
    assert design.unreliability <= 0.1
    for pair in design.links:  # nothing that was bought can be left out
        rest = [p for p in design.links if p != pair]
        up = {p: graph.edges[p]["up"] for p in rest} | {
            p: 0.0 for p in graph.edges if p not in rest
        }
        assert evaluate(graph, link_up=up).unreliability > 0.1


def test_too_few_rounds_give_an_honest_bracket():
    design = reliable_network(instance(5, 10, 25), 0.06, link_up="up", max_rounds=2)
    assert not design.proven
    assert design.bound < design.cost
    assert design.unreliability <= 0.06


def test_too_little_time_gives_an_honest_bracket():
    reliable_network(instance(2, 6, 10), 0.2, link_up=0.9)  # compile first
    graph = instance(2, 12, 28)
    design = reliable_network(graph, 0.2, link_up=0.9, max_seconds=1.0)
    assert not design.proven
    assert 0 < design.bound < design.cost
    assert evaluate(graph.edge_subgraph(design.links), link_up=0.9).unreliability <= 0.2


def test_the_solver_prints_nothing(capfd):
    reliable_network(instance(4, 9, 16), 0.1, link_up="up")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("seed", range(6))
def test_failures_by_what_the_root_reaches_add_up_to_the_unreliability(seed):
    graph = instance(seed, 6, 10)
    rng = np.random.default_rng(seed)
    edges = np.array(sorted(tuple(sorted(pair)) for pair in graph.edges))
    up = np.array([graph.edges[u, v]["up"] for u, v in edges.tolist()])
    node = rng.uniform(0.8, 1.0, 6)
    bought = rng.random(10) < 0.7
    chances = dict(zip(map(tuple, edges.tolist()), np.where(bought, up, 0.0), strict=True))
    exact = evaluate(graph, (0, 3, 5), chances, node).unreliability
    bits = sum(1 << t for t in (0, 3, 5))
    found, share = _credits(edges, 1 - up, bought, np.column_stack([node, 1 - node]), bits, 0)
    # The terminals' own failures are inside: a terminal that is down is not reached.
    assert found == pytest.approx(exact, rel=1e-10)
    assert ((share >= 0) & (share <= found)).all()
    for link in np.flatnonzero(~bought):  # the credit bounds what one more link can repair
        more = chances | {tuple(edges[link].tolist()): up[link]}
        repaired = exact - evaluate(graph, (0, 3, 5), more, node).unreliability
        assert repaired <= up[link] * share[link] + 1e-12


@pytest.mark.parametrize("count", [1, 2])
def test_one_terminal_needs_no_links(count):
    found = reliable_network(nx.empty_graph(count), 0.1, (0,), 1.0, 0.99)
    assert (found.links, found.cost, found.proven) == ((), 0.0, True)
    assert found.unreliability == pytest.approx(0.01)


def test_terminals_without_links_are_out_of_reach():
    with pytest.raises(ValueError, match="unreliability must be at least 1"):
        reliable_network(nx.empty_graph(2), 0.1, link_up=0.9)


def test_the_reliability_of_links_must_be_given():
    with pytest.raises(ValueError, match="link_up must be given"):
        reliable_network(nx.complete_graph(4), 0.1, cost=1.0)


def upgrade(nodes: int, offers: int) -> nx.Graph:
    """A ring with chords that are there, of price 0, and links on offer."""
    rng = np.random.default_rng(7)
    graph = nx.cycle_graph(nodes)
    for u in range(0, nodes, 3):
        graph.add_edge(u, (u + 5) % nodes)
    nx.set_edge_attributes(graph, 0.0, "cost")
    offered = 0
    while offered < offers:
        u, step = (int(number) for number in rng.integers([nodes, 6]))
        if not graph.has_edge(u, (u + step + 2) % nodes):
            graph.add_edge(u, (u + step + 2) % nodes, cost=float(rng.integers(50, 400)))
            offered += 1
    return graph


def ten_lines(graph: nx.Graph, admitted: float, up: float) -> float:
    """What a reader would write: always the link that lowers U most for its price."""
    links = [pair for pair in graph.edges if not graph.edges[pair]["cost"]]
    spent = 0.0
    while evaluate(nx.Graph(links), "nodes", up).unreliability > admitted:
        rest = [pair for pair in graph.edges if pair not in links]
        now = evaluate(nx.Graph(links), "nodes", up).unreliability
        best = max(
            rest,
            key=lambda pair: (
                (now - evaluate(nx.Graph([*links, pair]), "nodes", up).unreliability)
                / graph.edges[pair]["cost"]
            ),
        )
        links.append(best)
        spent += graph.edges[best]["cost"]
    return spent


def test_what_is_there_stays_and_an_upgrade_is_no_dearer_than_ten_lines_find():
    graph, up = upgrade(60, 30), 0.98
    there = {frozenset(pair) for pair in graph.edges if not graph.edges[pair]["cost"]}
    now = evaluate(nx.Graph([tuple(pair) for pair in there]), "nodes", up).unreliability
    design = reliable_network(graph, 0.6 * now, "nodes", up, max_rounds=1, max_seconds=30.0)
    assert {frozenset(link) for link in design.links} >= there
    assert design.cost <= ten_lines(graph, 0.6 * now, up)
    assert design.unreliability <= 0.6 * now


@pytest.fixture
def wan() -> tuple[nx.Graph, float]:
    """60 nodes in a ring with chords, 40 dear links on offer, and what two or three of them reach."""
    rng = np.random.default_rng(3)
    graph = nx.cycle_graph(60)
    graph.add_edges_from((u, (u + 5) % 60) for u in range(0, 60, 3))
    nx.set_edge_attributes(graph, 0.0, "cost")
    while graph.size() < 120:
        u, v = (int(number) for number in rng.integers(60, size=2))
        if 0 < abs(u - v) < 9 and not graph.has_edge(u, v):
            graph.add_edge(u, v, cost=float(rng.integers(700, 2200)))
    there = graph.edge_subgraph([pair for pair in graph.edges if not graph.edges[pair]["cost"]])
    return graph, 0.9 * evaluate(there, "nodes", 0.999).unreliability


def test_an_upgrade_of_60_nodes_is_proven_and_nothing_cheaper_reaches_as_much(wan):
    graph, admitted = wan
    design = reliable_network(graph, admitted, link_up=0.999)
    assert design.proven
    assert "cheaper fails" in design.formulation
    price = nx.get_edge_attributes(graph, "cost")
    there = [pair for pair in price if not price[pair]]
    offered = sorted((pair for pair in price if price[pair]), key=price.get)
    dearest = int(design.cost // price[offered[0]])  # links of a cheaper set, at most
    sets = [s for k in range(1, dearest + 1) for s in combinations(offered, k)]
    cheaper = [s for s in sets if sum(map(price.get, s)) < design.cost]
    assert len(cheaper) > 30
    for links in cheaper:
        bought = nx.Graph([*there, *links])
        assert evaluate(bought, "nodes", 0.999).unreliability > admitted


@pytest.mark.parametrize("few", [1, 20])
def test_where_sets_are_many_the_bound_is_a_price_up_to_which_all_fail(wan, monkeypatch, few):
    graph, admitted = wan
    optimum = reliable_network(graph, admitted, link_up=0.999).cost
    monkeypatch.setattr(cheapest_network, "FEW", few)
    # no relaxation says anything: what is left is the bound of the sets
    monkeypatch.setattr(cheapest_network, "_cheaper", lambda prices, *_, **__: (prices, -np.inf))
    found = reliable_network(graph, admitted, link_up=0.999, max_rounds=1)
    assert 0 < found.bound <= optimum <= found.cost


@pytest.mark.parametrize("few", [0, 1, 2, 4, 7, 12, 20, 40, 10**6])
def test_wherever_it_is_cut_short_the_bound_is_no_dearer_than_the_optimum(few, monkeypatch):
    """Of any failure that more links lower; sets that wait may be cheaper than the one looked at."""
    monkeypatch.setattr(cheapest_network, "FEW", few)
    rng = np.random.default_rng(few)
    sets = np.array(list(product((False, True), repeat=8)))
    for _ in range(40):
        prices, gain = rng.integers(0, 20, 8).astype(float), rng.exponential(size=8)
        target = float(np.exp(-0.6 * gain.sum()))
        good = np.exp(-(sets @ gain)) <= target
        optimum = (sets[good] @ prices).min()
        if not optimum:  # links of price 0 are enough, which the first network tells
            continue
        best, bound = _enumerated(
            prices,
            lambda links, gain=gain: float(np.exp(-(links @ gain))),
            target,
            np.ones(8, dtype=bool),
            np.zeros((0, 8)),
            1.0,
            np.inf,
        )
        assert bound <= optimum <= prices @ best
        assert few < 10**6 or bound == optimum == prices @ best


def test_what_is_too_wide_is_refused_by_its_name():
    with pytest.raises(ValueError, match="candidates must fit the frontier DP"):
        reliable_network(nx.complete_graph(17), 0.1, link_up=0.9, cost=1.0)


def test_a_large_network_gets_an_upgrade_and_a_gap():
    ring = nx.cycle_graph(200)
    nx.set_edge_attributes(ring, 0.0, "cost")
    rng = np.random.default_rng(1)
    while ring.size() < 305:
        u, step = (int(number) for number in rng.integers([200, 5]))
        if not ring.has_edge(u, (u + step + 2) % 200):
            ring.add_edge(u, (u + step + 2) % 200, cost=float(rng.integers(1, 10)))
    found = reliable_network(ring, 1e-4, link_up=0.9999, max_seconds=0.7)
    again = evaluate(nx.Graph(found.links), "nodes", 0.9999).unreliability
    assert again == pytest.approx(found.unreliability)
    assert again <= 1e-4
    assert (
        0 <= found.bound <= found.cost < 0.5 * sum(price for *_, price in ring.edges(data="cost"))
    )
