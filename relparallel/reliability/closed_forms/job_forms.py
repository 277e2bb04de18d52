"""The hosts of a training job in a fat-tree: the probability that all of them can reach each other.

A job is a set of hosts, as `topology.fat_tree` numbers them: host i hangs at edge switch ``i // h``, in pod
``i // h^2``, h = k/2. Its hosts and their edge switches stand in series with what lies above them.
"""

import math
from collections.abc import Collection, Sequence
from itertools import combinations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_choice, require_instance, require_int
from relparallel.reliability.closed_forms._arguments import half_radix, single_probabilities
from relparallel.reliability.closed_forms.fat_tree_forms import Bracket, fat_tree_pair, pods_together
from relparallel.reliability.probability import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.result import Reliability, Routing

JOINED_EXACTLY: Final = 5  # edge switches whose ten pairs are followed one by one

FloatArray = NDArray[np.float64]


def job_connected(
    k: int,
    hosts: Collection[int],
    core_up: float = 1.0,
    aggregation_up: float = 1.0,
    edge_up: float = 1.0,
    core_link_up: float = 1.0,
    edge_link_up: float = 1.0,
    host_up: float = 1.0,
    *,
    routing: Routing = "any",
) -> Reliability:
    """Probability that the hosts of a job in a k-ary fat-tree are up and can all reach each other.

    Parameters
    ----------
    k : int
        Ports per switch, even, from 2 to 256; to 64 if core cables fail and any path counts.
    hosts : collection of int
        One or more different hosts, from 0 to k^3/4 - 1. One alone has nobody to reach.
    core_up, aggregation_up, edge_up : float, optional
        Up-probability of a switch of each tier; the edge switches of the job must be up themselves.
    core_link_up, edge_link_up : float, optional
        Up-probability of a cable between aggregation and core, and between edge and aggregation. The latter
        has to be 1 for any path.
    host_up : float, optional
        Up-probability of a host with its cable.
    routing : {"any", "updown"}, optional
        Whether any path counts, while the edge switches of other pods work, or each two hosts need a path
        that goes up and then down.

    Returns
    -------
    Reliability
        Exact for any path, and for up to five edge switches under up-down routing. For more, ``lower`` is the
        unreliability of the worst pair, and ``upper``, also the value, the sum over all pairs.

    Notes
    -----
    Any path: a job of one pod needs one aggregation switch, a job of several pods those pods together, as in
    `fat_tree_pods_connected`. Up-down: a group joins those pairs of edge switches that it reaches, directly
    in one pod, through a core between pods. Groups are independent, so the set of joined pairs grows from
    group to group, with 2^10 states for five edge switches; positive terms only.

    Examples
    --------
    >>> ups = {"core_up": 0.999, "aggregation_up": 0.99, "edge_up": 0.9999}
    >>> print(f"{job_connected(8, range(32), **ups).unreliability:.3e}")
    7.997e-04
    >>> print(f"{job_connected(8, range(0, 32, 8), **ups, routing='updown').unreliability:.3e}")
    4.001e-04
    """
    c, a, e, m, l, v = single_probabilities(  # noqa: E741
        core_up=core_up,
        aggregation_up=aggregation_up,
        edge_up=edge_up,
        core_link_up=core_link_up,
        edge_link_up=edge_link_up,
        host_up=host_up,
    )
    require_choice(("any", "updown"), routing=routing)
    h = half_radix(k, at_most=64 if m < 1.0 and routing == "any" else 256)
    chosen = _hosts(h, hosts)
    edges = np.unique(chosen // h) if len(chosen) > 1 else chosen[:0]  # a host alone needs no switch
    pods = (edges // h).tolist()
    middle = (_any_path if routing == "any" else _up_down)(k, pods, c, a, m, l)
    ends = series(*[part(v)] * len(chosen), *[part(e)] * len(pods))
    together, upper = series(ends, (middle.together, middle.upper))
    lower = series(ends, (1.0 - middle.lower, middle.lower))[1]
    upper = min(upper, 1.0)
    return Reliability(
        reliability=min(together, 1.0),
        unreliability=upper,
        lower=min(lower, upper),
        upper=upper,
        method="closed_form",
        routing=routing,
    )


def _hosts(h: int, hosts: Collection[int]) -> NDArray[np.int64]:
    """The hosts of the job as numbers."""
    require_instance((list, tuple, range, set, frozenset, np.ndarray), hosts=hosts)
    numbers = [require_int(hosts=int(i) if isinstance(i, np.integer) else i, at_least=0) for i in hosts]
    last = 2 * h**3 - 1
    if not numbers or len(set(numbers)) < len(numbers) or max(numbers) > last:
        raise ValueError(f"hosts must be one or more different hosts from 0 to {last}, got {hosts!r}")
    return np.array(numbers, dtype=np.int64)


def _any_path(k: int, pods: Sequence[int], c: float, a: float, m: float, l: float) -> Bracket:  # noqa: E741
    """What joins the edge switches of a job, each given by its pod, over any path."""
    if len(pods) < 2:
        return _exactly(CERTAIN)
    if l < 1.0:
        raise ValueError(
            f"edge_link_up must be 1.0 where any path counts, got {l}; routing='updown' takes it, and so "
            "does evaluate(topology.fat_tree(k), hosts, ...)"
        )
    if len(set(pods)) == 1:
        return _exactly(parallel(*[part(a)] * (k // 2)))
    return pods_together(k, c, a, m, len(set(pods)))


def _exactly(chance: Chance) -> Bracket:
    up, down = chance
    return Bracket(up, down, down)


def _up_down(k: int, pods: Sequence[int], c: float, a: float, m: float, l: float) -> Bracket:  # noqa: E741
    """The same over up-down paths."""
    if len(pods) <= JOINED_EXACTLY:
        return _exactly(pairs_joined(k // 2, k // 2, pods, part(c), part(a), part(m), part(l)))
    near = math.comb(len(pods), 2) - sum(x != y for x, y in combinations(pods, 2))
    far = math.comb(len(pods), 2) - near
    inside, across = (fat_tree_pair(k, c, a, 1.0, m, l, turn=turn) for turn in ("aggregation", "core"))
    worst = max((pair.unreliability for pair, count in ((inside, near), (across, far)) if count), default=0.0)
    every = min(near * inside.unreliability + far * across.unreliability, 1.0)
    return Bracket(1.0 - every, worst, max(every, worst))


def pairs_joined(
    groups: int,
    cores: int,
    pods: Sequence[int],
    core: Chance,
    aggregation: Chance,
    core_link: Chance,
    link: Chance,
) -> Chance:
    """Chance that groups of so many cores join every pair of a few edge switches, each given by its pod."""
    pairs = [*combinations(range(len(pods)), 2)]
    one_group = np.zeros(2 ** len(pairs))
    for reached in product((True, False), repeat=len(pods)):
        chance = _reached(pods, reached, aggregation, link)
        above = sorted({pod for pod, there in zip(pods, reached, strict=True) if there})
        bridges = [*combinations(above, 2)]
        for mask, weight in enumerate(bridged(cores, above, core, core_link)):
            across = {pair for i, pair in enumerate(bridges) if mask >> i & 1}
            joined = sum(
                1 << i
                for i, (x, y) in enumerate(pairs)
                if reached[x] and reached[y] and (pods[x] == pods[y] or (pods[x], pods[y]) in across)
            )
            one_group[joined] += chance * weight
    state = unions(one_group, groups)
    return float(state[-1]), float(state[:-1].sum())


def _reached(pods: Sequence[int], reached: Sequence[bool], aggregation: Chance, link: Chance) -> float:
    """Chance that one group reaches just these edge switches from its aggregation switches."""
    total = 1.0
    for pod in set(pods):
        here = [there for place, there in zip(pods, reached, strict=True) if place == pod]
        links = math.prod(link[not there] for there in here)
        total *= aggregation[0] * links + aggregation[1] * (not any(here))
    return total


def bridged(h: int, pods: Sequence[int], core: Chance, core_link: Chance) -> FloatArray:
    """Distribution of the set of pairs of pods, as a bit mask, that h cores join."""
    pairs = [*combinations(range(len(pods)), 2)]
    one_core = np.zeros(2 ** len(pairs))
    one_core[0] = core[1]
    for wired in product((True, False), repeat=len(pods)):
        joined = sum(1 << i for i, (x, y) in enumerate(pairs) if wired[x] and wired[y])
        one_core[joined] += core[0] * math.prod(core_link[not there] for there in wired)
    return unions(one_core, h)


def unions(one: FloatArray, count: int) -> FloatArray:
    """Distribution of the union of ``count`` independent sets, given as bit masks."""
    masks, state = np.arange(one.size), np.zeros(one.size)
    state[0] = 1.0
    for _ in range(count):
        grown = np.zeros(one.size)
        for mask in np.flatnonzero(one):
            grown += np.bincount(masks | mask, weights=one[mask] * state, minlength=one.size)
        state = grown
    return state
