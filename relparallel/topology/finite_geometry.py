"""Networks of diameter two from finite fields: almost as many switches as any graph of the degree can have.

Letters of the papers: ``q`` size of the field, ``p`` servers per switch; 4w + delta is q. Every cable has 400
Gbit/s and no modelled latency (``dataclasses.replace`` sets others).
"""

from __future__ import annotations

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray, joined, require_size
from relparallel.topology._finite_field import FiniteField
from relparallel.topology._switched import describe_switched, switched
from relparallel.topology.description import Description, closed_form
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import Design


def slim_fly(q: int, p: int) -> Topology:
    """Slim Fly: the graph of McKay, Miller and Siran on two q x q grids of switches.

    Switches (0, x, y) and (0, x, y') meet when y - y' is in X, (1, m, c) and (1, m, c') when c - c' is in X',
    (0, x, y) and (1, m, c) when y = m x + c. X holds the even powers of a primitive element, X' the odd ones
    (for delta = -1 half of each, so that X = -X).

    Parameters
    ----------
    q : int
        Prime power of at least 3 with q = 4w + delta, delta -1, 0 or 1.
    p : int
        Servers per switch; with 0 the switches are the hosts.

    Returns
    -------
    Topology
        2 q^2 p servers, then 2 q^2 switches, of which each meets (3q - delta)/2 others. ``pod`` is the column
        of q switches: q of each grid.

    Notes
    -----
    Two switches are at most 2 apart. q = 5 is the graph of Hoffman and Singleton: the most switches, 50, that
    degree 7 and diameter 2 allow. Array operations on the q^3 + 2 w q^2 cables.

    References
    ----------
    Besta, Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014, section 2.

    Examples
    --------
    >>> slim_fly(q=5, p=4)
    <Topology slim_fly(q=5, p=4): 200 hosts, 50 switches, 375 links>
    """
    w, _, p = _slim_fly_rule(q, p)
    require_size("q", q, 2 * q**2 * (1 + 2 * p) + q**3 + 2 * w * q**2)
    field, element = FiniteField(q), np.arange(q)
    column, y = q * element[:, None, None], element[None, :, None]
    grids = [column + i * q**2 + np.stack(np.broadcast_arrays(y, field.add(y, s)))
             for i, s in enumerate(_steps(field, w))]  # fmt: skip
    x, m, c = np.ix_(element, element, element)
    across = (q * x + field.add(field.multiply(m, x), c), q**2 + q * m + c)
    within = [joined((grid[0], grid[1])) for grid in grids]
    cables = np.concatenate([*(ends[ends[:, 0] < ends[:, 1]] for ends in within), joined(across)])
    return switched(
        cables=cables,
        p=p,
        pod=np.repeat(np.arange(2 * q), q),
        meta=Design(name="slim_fly", parameters={"q": q, "p": p}, paper="besta2014slimfly"),
    )


@closed_form("slim_fly")
def _slim_fly(q: int, p: int) -> Description:
    _, degree, p = _slim_fly_rule(q, p)
    switches = 2 * q**2
    return describe_switched(
        design="slim_fly",
        parameters={"q": q, "p": p},
        switches=switches,
        ports=(degree,),
        cables=switches * degree // 2,
        p=p,
        diameter=2,
        bound=2,
        distance=2 * (switches - 1) - degree,
        connectivity=degree,  # of a graph of diameter two it is the least degree (Plesnik 1975)
    )


def polarfly(q: int, p: int | None = None) -> Topology:
    """PolarFly: switches are the points of the projective plane over GF(q), joined when orthogonal.

    Parameters
    ----------
    q : int
        Prime power of at least 2.
    p : int, optional
        Servers per switch, (q + 1)/2 rounded down if not given; with 0 the switches are the hosts.

    Returns
    -------
    Topology
        p (q^2 + q + 1) servers, then as many switches as points. The last q + 1 switches are the quadrics,
        points orthogonal to themselves: they have q cables to switches, the others q + 1.

    Notes
    -----
    Two points are orthogonal to exactly one, so two switches are at most 2 apart and one path of two links
    at most joins them. No graph of diameter 2 has more than (q + 1)^2 + 1 switches of degree q + 1. Array
    operations on the q (q + 1)^2/2 cables of the switches.

    References
    ----------
    Lakhotia et al., "PolarFly: a cost-effective and flexible low-diameter topology", SC 2022, section 5;
    Brown, "On graphs that do not contain a Thomsen graph", 1966.

    Examples
    --------
    >>> polarfly(q=31, p=0)
    <Topology polarfly(q=31, p=0): 993 hosts, 0 switches, 15872 links>
    """
    p = _polarfly_servers(q, p)
    points = q**2 + q + 1
    require_size("q", q, points * (1 + 2 * p) + q * (q + 1) ** 2 // 2)
    line = _orthogonal(FiniteField(q))
    own = np.arange(points)
    quadric = (line == own[:, None]).any(axis=1)
    place = np.empty(points, dtype=np.int64)
    place[np.argsort(quadric, kind="stable")] = own
    ends = joined((place[:, None], place[line]))
    return switched(
        cables=ends[ends[:, 0] < ends[:, 1]],
        p=p,
        pod=np.full(points, -1),
        meta=Design(name="polarfly", parameters={"q": q, "p": p}, paper="lakhotia2022polarfly"),
    )


@closed_form("polarfly")
def _polarfly(q: int, p: int | None = None) -> Description:
    p = _polarfly_servers(q, p)
    points, cables = q**2 + q + 1, q * (q + 1) ** 2 // 2
    return describe_switched(
        design="polarfly",
        parameters={"q": q, "p": p},
        switches=points,
        ports=(q, q + 1),
        cables=cables,
        p=p,
        diameter=2,
        bound=2,
        distance=2 * (points - 1) - 2 * cables / points,
        connectivity=q,  # as above
    )


def _slim_fly_rule(q: int, p: int) -> tuple[int, int, int]:
    """Return w, the degree and p, where q = 4w + delta."""
    FiniteField(q)
    require_int(p=p, at_least=0)
    w, delta = (q + 1) // 4, q - 4 * ((q + 1) // 4)
    if q < 3 or delta > 1:
        raise ValueError(f"q must be 4w + delta with delta -1, 0 or 1 and w >= 1, got {q}")
    return w, (3 * q - delta) // 2, p


def _steps(field: FiniteField, w: int) -> tuple[IntArray, IntArray]:
    """The differences X and X' at which switches of a column meet."""
    even = 2 * np.arange(2 * w)
    if field.q == 4 * w - 1:
        even[w:] -= 1  # the first half and what makes X = -X
    return field.powers[even % (field.q - 1)], field.powers[(even + 1) % (field.q - 1)]


def _polarfly_servers(q: int, p: int | None) -> int:
    FiniteField(q)
    return (q + 1) // 2 if p is None else int(require_int(p=p, at_least=0))


def _orthogonal(field: FiniteField) -> IntArray:
    """Points orthogonal to each point, q + 1 to a row; (1, y, z) is y q + z, then (0, 1, z) and (0, 0, 1)."""
    q = field.q
    t, y, z = np.arange(q), *np.divmod(np.arange(q**2), q)
    a = np.r_[np.ones(q**2, dtype=np.int64), np.zeros(q + 1, dtype=np.int64)][:, None]
    b = np.r_[y, np.ones(q, dtype=np.int64), 0][:, None]
    c = np.r_[z, t, 1][:, None]
    over_b, over_c = field.negate(field.invert(b)), field.negate(field.invert(c))  # used where not 0
    sloped = t * q + field.multiply(field.add(a, field.multiply(b, t)), over_c)  # (1, t, -(a + b t)/c)
    upright = field.multiply(a, over_b) * q + t  # (1, -a/b, t) where c is 0
    many = np.where(c > 0, sloped, np.where(b > 0, upright, q**2 + t))
    last = np.where(c > 0, q**2 + field.multiply(b, over_c), q**2 + q)
    return np.concatenate([many, last], axis=1)
