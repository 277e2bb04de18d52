"""Closed forms for pairs of servers where servers forward: BCube and DCell of two levels, and rings.

In a BCube_1 every server joins one switch of either level: the switches are a complete bipartite graph, the
servers its links. In a DCell_1 every two cells share one cable: the switches of the cells are a complete
graph, whose links are made of two servers and three cables. So a pair of servers is a pair of terminals that
have taken the place of two links of a `crowds` graph; all other vertices are alike.

References
----------
Guo et al., "BCube", SIGCOMM 2009. Guo et al., "DCell", SIGCOMM 2008.
"""

from __future__ import annotations

from relparallel._checks import require_int
from relparallel.reliability.chances import Chance, parallel, part, series
from relparallel.reliability.closed_forms._arguments import single_probabilities
from relparallel.reliability.closed_forms.crowds import NEVER, Crowd, between
from relparallel.reliability.result import Reliability, exactly

_MOST = 48  # ports; the work of a bipartite crowd grows with their fourth power


def bcube_pair(
    n: int,
    source: int,
    target: int,
    server_up: float = 1.0,
    switch_up: float = 1.0,
    link_up: float = 1.0,
    end_up: float | None = None,
) -> Reliability:
    """Probability that two servers of a BCube_1 reach each other over any path.

    Parameters
    ----------
    n : int
        Ports per switch, 2 to 48.
    source, target : int
        Servers, from 0 to n^2 - 1 as in ``topology.bcube(n, 1)``; different.
    server_up, switch_up, link_up : float, optional
        Up-probability of a server (the two must be up themselves), of a switch, and of a cable.
    end_up : float, optional
        Up-probability of each of the two, where it differs from that of a server on the way.

    Returns
    -------
    Reliability
        Any path counts; all servers forward.

    Notes
    -----
    With v, s and l the up-probabilities: switches of the two levels are joined by a server with probability v
    l^2. The outbreak starts at the switches to which the source is attached; at most O(n^6) operations when
    all parts fail, O(n^4) when switches are perfect.

    With more levels a server is an edge of k + 1 switches, and a crowd no longer knows itself by numbers. Ask
    `relparallel.reliability.evaluate` about ``topology.bcube(n, k)``: it is exact for n = k = 2 and certifies
    a bracket above, whose relative width is near the chance of a cable to fail.

    Examples
    --------
    >>> print(f"{bcube_pair(8, 0, 9, server_up=0.999, switch_up=0.999, link_up=0.9999).unreliability:.6e}")
    2.001415e-03
    """
    require_int(n=n, at_least=2, at_most=_MOST)
    _require_pair(n * n, source, target)
    server, switch, link, end = map(
        part,
        single_probabilities(
            server_up=server_up,
            switch_up=switch_up,
            link_up=link_up,
            end_up=server_up if end_up is None else end_up,
        ),
    )
    middle = between(bcube_crowd(n, source, target, server, switch, link))
    return exactly(*series(end, end, middle), "closed_form")


def dcell_pair(
    n: int,
    source: int,
    target: int,
    server_up: float = 1.0,
    switch_up: float = 1.0,
    link_up: float = 1.0,
    cable_up: float | None = None,
    end_up: float | None = None,
) -> Reliability:
    """Probability that two servers of a DCell_1 reach each other over any path.

    Parameters
    ----------
    n : int
        Ports per switch, 2 to 48.
    source, target : int
        Servers, from 0 to n (n + 1) - 1 as in ``topology.dcell(n, 1)``; different.
    server_up, switch_up, link_up : float, optional
        Up-probability of a server (the two must be up themselves), of a switch, and of a cable.
    cable_up : float, optional
        Up-probability of a cable between two servers, where it differs from one to a switch.
    end_up : float, optional
        Up-probability of each of the two, where it differs from that of a server on the way.

    Returns
    -------
    Reliability
        Any path counts; all servers forward.

    Notes
    -----
    With v, s, l and m the up-probabilities: two switches are joined with probability l^2 v^2 m. A server is
    attached to its own switch with l and, through its partner, to the switch of the partner's cell with m v
    l. Partners have their cable beside all else. At most O(n^4) operations. `evaluate` answers for more
    levels: exactly for ``topology.dcell(2, 2)``, by a certified bracket above.

    Examples
    --------
    >>> print(f"{dcell_pair(8, 0, 71, server_up=0.999, switch_up=0.999, link_up=0.9999).unreliability:.6e}")
    2.003827e-03
    """
    require_int(n=n, at_least=2, at_most=_MOST)
    _require_pair(n * (n + 1), source, target)
    server, switch, link, cable, end = map(
        part,
        single_probabilities(
            server_up=server_up,
            switch_up=switch_up,
            link_up=link_up,
            cable_up=link_up if cable_up is None else cable_up,
            end_up=server_up if end_up is None else end_up,
        ),
    )
    middle = between(dcell_crowd(n, source, target, server, switch, link, cable))
    partners = _cells(n, source) == _cells(n, target)[::-1]
    return exactly(*series(end, end, parallel(cable if partners else NEVER, middle)), "closed_form")


def ring_pair(n: int, hops: int, node_up: float = 1.0, link_up: float = 1.0) -> Reliability:
    """Probability that two nodes of a ring reach each other, one way round or the other.

    Parameters
    ----------
    n : int
        Nodes, at least 3.
    hops : int
        Links between the two on one side, 1 to n - 1.
    node_up, link_up : float, optional
        Up-probability of a node (the two must be up themselves) and of a link.

    Returns
    -------
    Reliability
        Any path counts.

    Notes
    -----
    R = v^2 (1 - (1 - l^d v^(d-1)) (1 - l^(n-d) v^(n-d-1))). O(n) operations.

    Examples
    --------
    >>> print(f"{ring_pair(8, 4, link_up=0.99).unreliability:.6e}")
    1.552674e-03
    """
    require_int(n=n, at_least=3, at_most=10**6)
    require_int(hops=hops, at_least=1, at_most=n - 1)
    node, link = map(part, single_probabilities(node_up=node_up, link_up=link_up))
    ways = [series(*[link] * d, *[node] * (d - 1)) for d in (hops, n - hops)]
    return exactly(*series(node, node, parallel(*ways)), "closed_form")


def bcube_crowd(n: int, source: int, target: int, server: Chance, switch: Chance, link: Chance) -> Crowd:
    """Switches of the first level, 0 to n - 1, and of the second one, n to 2 n - 1, and a pair of servers."""
    (row, column), (level, place) = divmod(source, n), divmod(target, n)
    first, second = {row: link, n + column: link}, {level: link, n + place: link}
    sides = {name: int(name >= n) for name in (*first, *second)}
    others = n - len({row, level}), n - len({column, place})
    return Crowd(sides, others, switch, series(server, link, link), first, second)


def dcell_crowd(
    n: int, source: int, target: int, server: Chance, switch: Chance, link: Chance, cable: Chance
) -> Crowd:
    """Switches of the cells, 0 to n, and a pair of servers; a cable between the two is left out."""
    (cell, away), (there, back) = ends = [_cells(n, number) for number in (source, target)]
    far = NEVER if ends[0] == ends[1][::-1] else series(cable, server, link)
    sides = dict.fromkeys([cell, away, there, back], 0)
    others = (n + 1 - len(sides),)
    joined = series(link, link, server, server, cable)
    return Crowd(sides, others, switch, joined, {cell: link, away: far}, {there: link, back: far})


def _require_pair(servers: int, source: int, target: int) -> None:
    """Check two different servers."""
    require_int(source=source, target=target, at_least=0, at_most=servers - 1)
    if source == target:
        raise ValueError(f"target must be another server than source, got {target} for both")


def _cells(n: int, server: int) -> tuple[int, int]:
    """Cell of a server of a DCell_1, and the cell of its partner."""
    cell, place = divmod(server, n)
    return cell, place + (place >= cell)
