"""The cheapest network that is reliable enough, out of candidate links with prices and failures.

E are candidate links with prices c_e that are down with probabilities d_e, x_e = 1 where e is
bought; U(Y) is the probability that the links Y do not connect the terminals, U0 its largest
admitted value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, Final

import networkx as nx
import numpy as np
from numba import njit
from numpy.typing import NDArray

from relparallel._checks import require_int, require_number
from relparallel._notices import doing, told
from relparallel.optimize._milp import OutOfTimeError, least
from relparallel.optimize.network_design import LinkCost, NetworkDesign, edge_numbers
from relparallel.reliability import evaluate
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.problem import LinkChance, NodeChance, Problem, Terminals, read_problem
from relparallel.topology import Topology, as_topology

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]
Oracle = Callable[[Mask], float]
MOST_SPLIT: Final = 14  # nodes up to which every cut, every set of nodes is looked at
ROWS_A_ROUND: Final = 6
FEW: Final = 4000  # sets whose failure is asked for before prices are relaxed
THRESHOLDS: Final = (0.3, 0.5, 0.7)  # a fractional relaxation is rounded at, to see what it lacks
FORMULATION: Final = """minimise    sum_e c_e x_e
subject to  sum_(e not in X) min(a_e, b_X) x_e >= b_X   for every set X of links with U(X) > {target:g}
            x_e in {{0, 1}}                               ({links} links)
where       a_e = -log d_e,  b_X = log(U(X) / {target:g}); {rows} of the inequalities were needed{sets}"""
LOOKED_AT: Final = "\n            every set of links that is cheaper fails more often"


@told
def reliable_network(
    candidates: Topology | nx.Graph[Any],
    unreliability: float,
    terminals: Terminals = "all",
    link_up: LinkChance | None = None,
    node_up: NodeChance = 1.0,
    *,
    cost: LinkCost = "cost",
    max_rounds: int = 2000,
    max_seconds: float = 60.0,
) -> NetworkDesign:
    """Buy links for the least money such that the terminals are connected often enough.

    Parameters
    ----------
    candidates : Topology or networkx.Graph
        All links that can be bought; parallel edges are one link, bought at one price.
    unreliability : float
        Largest admitted probability that the terminals are not connected, in (0, 1).
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that have to be connected.
    link_up, node_up : float, array, mapping or str
        Probability that a link or a node is up, as `relparallel.reliability.evaluate`; that of
        links must be given.
    cost : str, float, array [m] or mapping
        Price of every link, by attribute, in the order of the links, or by pair of labels; a link
        of price 0 is there already, and stays.
    max_rounds, max_seconds : int, float
        Relaxations, and time [s], after which the best network is returned with the bound that was
        reached.

    Returns
    -------
    NetworkDesign
        The optimum (any of them where several cost the same), with ``cost == bound``, unless
        ``max_rounds`` or ``max_seconds`` was too small; then ``proven`` is False and the bound
        certified all the same.

    Notes
    -----
    A set of links that fails with U(X) > U0 needs help: whatever Y adds, with probability prod d_e
    over Y outside X all of it is down, so U(Y) >= U(X) prod d_e, and the logarithm is the
    inequality of the formulation. X = all links but those of a cut gives U(X) = 1: the cut must be
    reliable by itself. These are looked for first; a relaxation that satisfies them is evaluated
    exactly, and if it fails, links are added to it in several orders for as long as it still fails,
    which makes the inequality strong. The first relaxation whose optimum is reliable enough is the
    optimum. Coefficients are lowered to b_X, which no 0-1 solution feels. The first network adds to
    the links of price 0 whatever lowers log U most for its price. What is cheaper than the best
    network, by one step where all prices are whole, is then gone through in order of price, a set
    followed by those with one dearer link more, without what fails even with every dearer link that
    could still be paid: more links never fail more often. Where such sets are few, this is the
    proof; where they are many, relaxations go on from the price up to which all fail.

    References
    ----------
    Problem: Jan, Hwang and Cheng, "Topological optimization of a communication network subject to a
    reliability constraint", IEEE Transactions on Reliability 42, 1993. Cover inequalities: Balas,
    "Facets of the knapsack polytope", Mathematical Programming 8, 1975.

    Examples
    --------
    >>> import networkx as nx
    >>> ring = nx.complete_graph(5)
    >>> nx.set_edge_attributes(ring, {(u, v): 1.0 + (v - u) % 5 // 2 for u, v in ring.edges}, "cost")
    >>> design = reliable_network(ring, unreliability=0.1, link_up=0.9)
    >>> len(design.links), design.proven, round(design.unreliability, 5)
    (5, True, 0.08146)
    """
    topology = as_topology(candidates, name="candidates")
    target = require_number(unreliability=unreliability, above=0, below=1)
    require_int(max_rounds=max_rounds, at_least=1)
    if link_up is None:
        raise ValueError(
            "link_up must be given: a probability, one for each link, or an attribute, got None"
        )
    until = time.monotonic() + require_number(max_seconds=max_seconds, above=0, at_most=1e9)
    prices = edge_numbers("cost", cost, topology, candidates)
    problem = read_problem(candidates, terminals, link_up, node_up)
    rows_of = {pair: i for i, pair in enumerate(map(tuple, topology.edges.tolist()))}
    usable = np.array(
        [rows_of[pair] for pair in map(tuple, problem.edges.tolist())], dtype=np.int64
    )
    oracle = _oracle(topology, problem, usable)
    try:
        floor = oracle(np.ones(usable.size, dtype=np.bool_))
    except NotExactError as why:
        raise NotExactError(
            f"candidates must fit the frontier DP: {str(why).partition(';')[0]}"
        ) from why
    if floor > target:
        raise ValueError(
            f"unreliability must be at least {floor!r}, that of all candidates, got {target!r}"
        )
    bought, bound, rows = np.zeros(usable.size, dtype=np.bool_), 0.0, 0
    if usable.size:
        bought, bound, rows = _cutting_planes(
            problem, prices[usable], oracle, target, max_rounds, until
        )
    chosen = topology.edges[usable[bought]].tolist()
    return NetworkDesign(
        links=tuple((topology.labels[u], topology.labels[v]) for u, v in chosen),
        cost=float(prices[usable[bought]].sum()),
        bound=bound,
        unreliability=oracle(bought),
        rows=rows,
        formulation=FORMULATION.format(
            target=target, links=usable.size, rows=rows, sets="" if rows else LOOKED_AT
        ),
    )


def _oracle(topology: Topology, problem: Problem, usable: NDArray[np.int64]) -> Oracle:
    """Exact unreliability of a set of links, remembered."""
    single = replace(topology, multiplicity=np.ones(len(topology.edges), dtype=np.int64))
    terminals = [topology.labels[v] for v in problem.terminals.tolist()]
    known: dict[bytes, float] = {}

    def unreliability(chosen: Mask) -> float:
        key = np.packbits(chosen).tobytes()
        if key not in known:
            down: Any = np.ones(len(topology.edges))
            down[usable[chosen]] = problem.link[chosen, 1]
            down = down if down.size else 1.0
            found = evaluate(
                single, terminals, link_down=down, node_down=problem.node[:, 1], method="exact"
            )
            known[key] = found.unreliability
        return known[key]

    return unreliability


def _cutting_planes(
    problem: Problem,
    prices: FloatArray,
    oracle: Oracle,
    target: float,
    max_rounds: int,
    until: float,
) -> tuple[Mask, float, int]:
    """The cheapest set that the oracle admits, a bound on its price, the inequalities it took."""
    sides = _sides(problem)
    free = prices == 0
    # by which a link lowers the failure of a cut
    strength = -np.log(np.maximum(problem.link[:, 1], 1e-250))
    pool = np.where(sides, np.minimum(strength / -np.log(target), 1.0), 0.0)
    rows = pool[np.argsort(sides.sum(axis=1), kind="stable")[: len(problem.node)]]
    half = time.monotonic() + (until - time.monotonic()) / 2
    best = _repaired(prices, oracle, _greedy(problem, prices, oracle, target, half), target)
    step = _step(prices)
    best, bound = _enumerated(prices, oracle, target, best, pool, step, half)
    if bound == prices @ best:
        return best, bound, 0
    whole = False
    for _ in range(max_rounds):
        most = float(prices @ best)
        doing(f"price {most:g} is found, {bound:g} the bound")
        try:
            x, low = _cheaper(prices, rows, most - step, whole, until, gap=1.0 if step else 0.0)
        except OutOfTimeError as stopped:
            bound = max(bound, stopped.bound)
            break
        if x is None:
            bound = most
            break
        bound = max(bound, low)
        found = [pool[np.argsort(pool @ x, kind="stable")[:ROWS_A_ROUND]]]
        for threshold in (0.5,) if whole else THRESHOLDS:
            chosen = (x > threshold) | free
            if oracle(chosen) > target:
                found.append(_lacking(problem, prices, oracle, chosen, target))
            best = min(
                best, _repaired(prices, oracle, chosen, target), key=lambda links: prices @ links
            )
        if (
            prices @ best - step <= bound * (1 - 1e-9)
            or prices @ best <= bound + 1e-8 * prices.max()
        ):
            bound = float(prices @ best)
            break
        cuts = np.concatenate(found)
        deepest = np.argsort(cuts @ x, kind="stable")[: 2 * ROWS_A_ROUND]
        deepest = deepest[cuts[deepest] @ x < 1 - (1e-6 if whole else 1e-2)]
        whole = not whole and not deepest.size
        rows = np.unique(np.concatenate([rows, cuts[deepest]]), axis=0)
    if step:  # raised to a sum that prices can have
        bound = math.ceil(bound / step - 1e-6) * step
    return best, min(bound, float(prices @ best)), len(rows)


def _enumerated(
    prices: FloatArray,
    oracle: Oracle,
    target: float,
    best: Mask,
    rows: FloatArray,
    step: float,
    until: float,
) -> tuple[Mask, float]:
    """The cheapest set that is reliable enough and its price, else the price up to which all fail.

    Sets in order of price; each is followed by those with one more, dearer link.
    """
    free, most = prices == 0, float(prices @ best)
    paid = np.argsort(prices, kind="stable")[free.sum() :]
    cost = prices[paid]
    heap, asked = [(0.0, 0, 0.0, 0, free)], 0  # by the price of the first set that follows
    while heap and heap[0][0] < most - step / 2:
        _, _, price, first, links = heappop(heap)
        for place in range(first, paid.size):
            now = price + cost[place]
            left = most * (1 - 1e-12) - step / 2 - now
            if left < 0:
                break
            if asked >= FEW or time.monotonic() > until:
                return best, min([now, *(entry[0] for entry in heap[:1])])
            asked += 1
            doing(f"price {most:g} is found, cheaper sets by {now:g} are looked at")
            more = links.copy()
            more[paid[place]] = True
            every = more.copy()
            every[paid[place + 1 :][cost[place + 1 :] <= left]] = True
            if (rows @ every < 1 - 1e-9).any() or oracle(every) > target:
                continue
            if oracle(more) <= target:
                best, most = more, now
            elif place + 1 < paid.size:
                heappush(heap, (now + cost[place + 1], asked, now, place + 1, more))
    return best, float(prices @ best)


def _step(prices: FloatArray) -> float:
    """What two different sums of prices differ by at least; 0 if that is unknown or too little."""
    for parts in (1, 2, 4, 5, 10, 100, 1000):
        units = np.round(prices * parts)
        common = int(np.gcd.reduce(units.astype(np.int64))) if units.max() < 2**31 else 0
        if np.abs(prices * parts - units).max() <= 1e-12 * units.max() < common * 1e-6:
            return common / parts
    return 0.0


def _cheaper(
    prices: FloatArray, rows: FloatArray, most: float, whole: bool, until: float, gap: float
) -> tuple[FloatArray | None, float]:
    """A choice that satisfies the inequalities and costs at most so much; a bound on all of them.

    The cheapest fractions; of whole choices the first (with a gap of 1), which gives inequalities
    as good as the cheapest would and is found much sooner. None if there is none.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise OutOfTimeError(0.0)
    scale = max(float(prices.max()), 1.0)
    limited = np.concatenate([rows, -prices[None] / scale])
    lower = np.r_[np.ones(len(rows)), -most / scale * (1 + 1e-9)]
    return least(prices, limited, lower, whole=whole, gap=gap, seconds=left)


def _greedy(
    problem: Problem, prices: FloatArray, oracle: Oracle, target: float, until: float
) -> Mask:
    """Links of price 0, cheapest tree, then what lowers log U most per price, while time lasts."""
    graph: nx.Graph[int] = nx.Graph()
    for link, (u, v) in enumerate(problem.edges.tolist()):
        graph.add_edge(u, v, price=prices[link], link=link)
    links: Mask = prices == 0
    links[[d["link"] for *_, d in nx.minimum_spanning_edges(graph, weight="price")]] = True
    while (now := oracle(links)) > target and time.monotonic() < until:
        rest = np.flatnonzero(~links)
        gain = np.zeros(rest.size)
        for place, link in enumerate(rest.tolist()):
            links[link] = True
            gain[place] = math.log(now / max(oracle(links), target)) / prices[link]
            links[link] = False
        links[rest[gain.argmax()]] = True
    return links


def _repaired(prices: FloatArray, oracle: Oracle, chosen: Mask, target: float) -> Mask:
    """A reliable set near the choice: cheap links added until it is, dear ones left out again."""
    links: Mask = chosen | (prices == 0)
    for link in np.argsort(prices, kind="stable"):
        if oracle(links) <= target:
            break
        links[link] = True
    for link in np.argsort(-prices, kind="stable"):
        if links[link] and prices[link]:
            links[link] = False
            links[link] = oracle(links) > target
    return links


def _sides(problem: Problem) -> Mask:
    """Links across every cut that parts the terminals [cuts, m]; in large networks single nodes."""
    count = len(problem.node)
    ends = problem.edges
    if count <= MOST_SPLIT:
        codes = np.arange(1, 2 ** (count - 1), dtype=np.int64)
        side = (codes[:, None] >> np.arange(count)) & 1 > 0
    else:
        side = np.eye(count, dtype=np.bool_)
    share = side[:, problem.terminals].sum(axis=1)
    side = side[(share > 0) & (share < problem.terminals.size)]
    return np.asarray(np.unique(side[:, ends[:, 0]] != side[:, ends[:, 1]], axis=0))


def _lacking(
    problem: Problem, prices: FloatArray, oracle: Oracle, chosen: Mask, target: float
) -> FloatArray:
    """Inequalities that the choice breaks, from itself and from larger sets that fail too."""
    found = []
    free = np.flatnonzero(~chosen)
    for order in (prices, -prices):
        grown = chosen.copy()
        for link in free[np.argsort(order[free], kind="stable")]:
            grown[link] = True
            grown[link] = oracle(grown) > target
        found.append(np.where(grown, 0.0, 1.0))
    if len(problem.node) > MOST_SPLIT:  # credits look at every set of nodes
        return np.array(found)
    bits, down = int((1 << problem.terminals).sum()), np.ascontiguousarray(problem.link[:, 1])
    for root in problem.terminals.tolist():
        failure, share = _credits(problem.edges, down, chosen, problem.node, bits, root)
        found.append(np.minimum(problem.link[:, 0] * share / (failure - target), 1.0))
    return np.array(found)


@njit(cache=True)
def _credits(edges, down, bought, node, terminals, root):  # type: ignore[no-untyped-def]
    """Probability of failure, and for every link the share of it across which the link would lead.

    ``edges[m, 2]``, ``down[m]``, ``bought[m]``, ``node[n, 2]`` (up, down), ``terminals`` as a bit
    mask. In a failed state the root reaches S; the state stays failed unless a link from S to a
    node that is up is added and is up. 3^(n-1) steps for the probabilities that S is connected.
    """
    n = node.shape[0]
    full = 1 << n
    inside = np.zeros(full)  # sum of log d over bought links within a set
    pair = np.zeros((n, n))
    for e in range(edges.shape[0]):
        if bought[e]:
            cost = np.log(max(down[e], 1e-250))
            pair[edges[e, 0], edges[e, 1]] += cost
            pair[edges[e, 1], edges[e, 0]] += cost
    for s in range(1, full):
        low = 0
        while not (s >> low) & 1:
            low += 1
        rest = s & (s - 1)
        inside[s] = inside[rest]
        for v in range(low + 1, n):
            if (rest >> v) & 1:
                inside[s] += pair[low, v]
    connected = np.zeros(full)
    bit = 1 << root
    failure = node[root, 1]
    share = np.zeros(edges.shape[0])
    shut = np.empty(n)
    for s in range(1, full):
        if not s & bit:
            continue
        others = s & ~bit
        parted = 0.0
        part = (others - 1) & others
        while others:  # every proper subset that holds the root
            t = part | bit
            parted += connected[t] * np.exp(inside[s] - inside[t] - inside[s & ~t])
            if part == 0:
                break
            part = (part - 1) & others
        connected[s] = max(1.0 - parted, 0.0)
        if terminals & ~s == 0:
            continue
        mass = connected[s]
        for v in range(n):
            if (s >> v) & 1:
                mass *= node[v, 0]
            else:
                apart = np.exp(inside[s | (1 << v)] - inside[s])
                closed = node[v, 1] + node[v, 0] * apart
                mass *= closed
                shut[v] = node[v, 0] * apart / closed if closed > 0 else 0.0
        failure += mass
        for e in range(edges.shape[0]):
            u, v = edges[e, 0], edges[e, 1]
            if not bought[e] and (s >> u) & 1 != (s >> v) & 1:
                share[e] += mass * (shut[v] if (s >> u) & 1 else shut[u])
    return failure, share
