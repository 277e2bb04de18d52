"""Networks of diameter two from finite fields: nearly the most switches that a degree allows.

Letters of the papers: ``q`` size of the field, ``p`` servers per switch; 4w + delta is q.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from relparallel._checks import require_int
from relparallel.topology._arrays import IntArray, joined
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import (
    blocks,
    describe_switched,
    rolled,
    switched,
    with_own_servers,
    within,
)
from relparallel.topology.fabric import Topology

_LARGEST = 2**13  # two q x q grids of switches pass the limit of what is built long before


class FiniteField:
    """GF(q) for a prime power q of at most 8192, vectorised.

    An element is a number 0..q-1 whose base-p digits are the coefficients of a polynomial over the
    integers modulo p, where q = p^m; 0 and 1 are themselves. Products go through powers of a
    primitive element.
    """

    def __init__(self, q: int) -> None:
        self.q: int = require_int(q=q, at_least=2, at_most=_LARGEST)
        self.p = next(p for p in range(2, q + 1) if q % p == 0)
        self.m = next(m for m in range(1, 14) if self.p**m >= q)
        if self.p**self.m != q:
            raise ValueError(
                f"q must be a prime power, for there is no field of other size, got {q}"
            )

    def add(self, a: IntArray, b: IntArray) -> IntArray:
        """Sum: digit by digit modulo p."""
        places = self.p ** np.arange(self.m)
        digits = (a[..., None] // places + b[..., None] // places) % self.p
        return np.asarray((digits * places).sum(axis=-1))

    def multiply(self, a: IntArray, b: IntArray) -> IntArray:
        """Product: 0, or the power with the sum of both exponents."""
        exponent = (self._logarithms[a] + self._logarithms[b]) % (self.q - 1)
        return np.where((a == 0) | (b == 0), 0, self.powers[exponent])

    def negate(self, a: IntArray) -> IntArray:
        """Additive inverse: p - 1 times the element."""
        return self.multiply(a, np.array(self.p - 1))

    def invert(self, a: IntArray) -> IntArray:
        """Multiplicative inverse of elements that are not 0."""
        return self.powers[-self._logarithms[a] % (self.q - 1)]

    @cached_property
    def powers(self) -> IntArray:
        """Powers 0..q-2 of a primitive element: every element but 0, once."""
        return next(c for c in map(self._cycle, range(1, self.q)) if c.size == self.q - 1)

    @cached_property
    def _logarithms(self) -> IntArray:
        logarithms = np.zeros(self.q, dtype=np.int64)
        logarithms[self.powers] = np.arange(self.q - 1)
        return logarithms

    def _cycle(self, low: int) -> IntArray:
        """Powers of x until 1 returns, with x^m replaced by the polynomial of the digits of low."""
        times = self._times_x(low).tolist()
        found = [1]
        while (following := times[found[-1]]) > 1 and len(found) < self.q:
            found.append(following)
        return np.array(found)

    def _times_x(self, low: int) -> IntArray:
        """Every element times x: its digits move up, and the highest becomes a multiple of x^m."""
        places = self.p ** np.arange(self.m)
        high, rest = np.divmod(np.arange(self.q), self.p ** (self.m - 1))
        digits = (rest * self.p)[:, None] // places + high[:, None] * (low // places % self.p)
        return np.asarray((digits % self.p * places).sum(axis=1))


def _slim_fly(q: int, p: int) -> Description:
    FiniteField(q)
    require_int(p=p, at_least=0)
    delta = q - 4 * ((q + 1) // 4)
    if q < 3 or delta > 1:
        raise ValueError(f"q must be 4w + delta with delta -1, 0 or 1 and w >= 1, got {q}")
    switches, degree = 2 * q**2, (3 * q - delta) // 2
    return describe_switched(
        switches=switches,
        ports=(degree,),
        cables=switches * degree // 2,
        p=p,
        diameter=2,
        distance=2 * (switches - 1) - degree,
        connectivity=degree,  # of a graph of diameter two it is the least degree (Plesnik 1975)
    )


def _slim_fly_moves(q: int, p: int) -> list[IntArray]:
    """Next server; moves and stretches of the plane; where q = 4w + 1 both grids exchanged.

    With points (x, y) and lines y = m x + c: y and c grow alike; x and -c/m or m and y/x do; x and
    1/m are stretched, or m, y and c, by what keeps the differences that are joined; x -> m, m -> -g
    x for a primitive element g, with y and c times g, exchanges points and lines.
    """
    field = FiniteField(q)
    own, other = np.divmod(np.arange(q**2), q)  # x and y of points, m and c of lines
    images = []
    for unit in (np.array(field.p**i) for i in range(field.m)):
        slope, up = field.multiply(own, unit), field.add(other, unit)
        images += [
            ((own, up), (own, up)),
            ((field.add(own, unit), other), (own, field.add(other, field.negate(slope)))),
            ((own, field.add(other, slope)), (field.add(own, unit), other)),
        ]
    g, square = field.powers[1 % (q - 1)], q % 4 == 1
    keeps = field.powers[2] if square else field.negate(np.array(1))
    times, grown = field.multiply(own, keeps), field.multiply(other, keeps)
    images += [
        ((field.multiply(own, g), other), (field.multiply(own, field.invert(g)), other)),
        ((own, grown), (times, grown)),
    ]
    found = [np.concatenate([x * q + y, q**2 + m * q + c]) for (x, y), (m, c) in images]
    if square:
        risen = field.multiply(other, g)
        turned = field.negate(field.multiply(own, g))
        found.append(np.concatenate([q**2 + own * q + risen, turned * q + risen]))
    return _with_servers(found, 2 * q**2, p)


@design(
    closed_form=_slim_fly,
    symmetries=_slim_fly_moves,
    layout="rings_of_subgroups",
    stripes=lambda t: within(t, t.pod),
    sizes=lambda hosts: [{"q": q, "p": (3 * q + 1) // 4} for q in range(3, 100)],
    paper="besta2014slimfly",
)
def slim_fly(q: int, p: int) -> Topology:
    """Slim Fly: the graph of McKay, Miller and Siran on two q x q grids of switches.

    Switches (0, x, y) and (0, x, y') meet when y - y' is in X, (1, m, c) and (1, m, c') when c - c'
    is in X', (0, x, y) and (1, m, c) when y = m x + c. X holds the even powers of a primitive
    element, X' the odd ones (for delta = -1 half of each, so that X = -X).

    Parameters
    ----------
    q : int
        Prime power of at least 3 with q = 4w + delta, delta -1, 0 or 1.
    p : int
        Servers per switch; with 0 the switches are the hosts.

    Returns
    -------
    Topology
        2 q^2 p servers, then 2 q^2 switches, of which each meets (3q - delta)/2 others. ``pod`` is
        the column of q switches: q of each grid.

    Notes
    -----
    Two switches are at most 2 apart. q = 5 is the graph of Hoffman and Singleton: the most
    switches, 50, that degree 7 and diameter 2 allow. Source: Besta, Hoefler, SC 2014, section 2.

    Examples
    --------
    >>> slim_fly(q=5, p=4)
    <Topology slim_fly(q=5, p=4): 200 hosts, 50 switches, 375 links>
    """
    form, w = planned("slim_fly", q, p), (q + 1) // 4
    field, element = FiniteField(q), np.arange(q)
    column, y = q * element[:, None, None], element[None, :, None]
    grids = [
        column + i * q**2 + np.stack(np.broadcast_arrays(y, field.add(y, s)))
        for i, s in enumerate(_steps(field, w))
    ]
    x, m, c = np.ix_(element, element, element)
    across = (q * x + field.add(field.multiply(m, x), c), q**2 + q * m + c)
    within = [joined((grid[0], grid[1])) for grid in grids]
    cables = np.concatenate([*(ends[ends[:, 0] < ends[:, 1]] for ends in within), joined(across)])
    return switched(form, cables, np.repeat(np.arange(2 * q), q))


def _polarfly(q: int, p: int | None = None) -> Description:
    FiniteField(q)
    own = (q + 1) // 2 if p is None else require_int(p=p, at_least=0)
    points, cables = q**2 + q + 1, q * (q + 1) ** 2 // 2
    form = describe_switched(
        switches=points,
        ports=(q, q + 1),
        cables=cables,
        p=own,
        diameter=2,
        distance=2 * (points - 1) - 2 * cables / points,
        connectivity=q,  # as above
    )
    return replace(form, parameters={"q": q, "p": own})


def _polarfly_moves(q: int, p: int) -> list[IntArray]:
    """Next server; linear maps that keep products of points.

    v -> v + s (v.a) a does where s (2 + s a.a) = 0: a reflection for odd q; for even q any s and
    a.a = 0.
    """
    field = FiniteField(q)
    points = _points(field)
    place = np.empty(q**2 + q + 1, dtype=np.int64)
    place[np.argsort(_product(field, points, points) == 0, kind="stable")] = np.arange(place.size)
    found = []
    for axis, s in _axes(field):
        moved = _product(field, points, axis[:, None])
        image = field.add(points, field.multiply(field.multiply(moved, s), axis[:, None]))
        switch = np.empty_like(place)
        switch[place] = place[_number(field, image)]
        found.append(switch)
    return _with_servers(found, place.size, p)


def clusters(t: Topology) -> IntArray:
    """Cluster of each PolarFly node: 0 the quadrics, then one per neighbour of the first quadric.

    A cluster holds the neighbour first and what is joined to it; what is left over is with the
    quadrics.
    """
    switches = t.switches if t.num_switches else np.arange(t.num_nodes)
    of, quadrics = (
        np.zeros(t.num_nodes, dtype=np.int64),
        switches[-int(t.meta.parameters["q"]) - 1 :],
    )
    free = np.isin(np.arange(t.num_nodes), switches) & ~np.isin(np.arange(t.num_nodes), quadrics)
    near = np.split(t.indices, t.indptr[1:-1])
    hubs = [node for node in near[quadrics[0]] if free[node]]
    for number, hub in enumerate(hubs, start=1):
        of[hub] = number
    free[hubs] = False
    for number, hub in enumerate(hubs, start=1):
        joined = [node for node in near[hub] if free[node]]
        of[joined], free[joined] = number, False
    hosts = np.flatnonzero(np.isin(np.arange(t.num_nodes), switches, invert=True))
    of[hosts] = of[t.indices[t.indptr[hosts]]]
    return of


@design(
    closed_form=_polarfly,
    symmetries=_polarfly_moves,
    layout="planes",
    stripes=lambda t: within(t, clusters(t)),
    sizes=lambda hosts: [{"q": q, "p": (q + 1) // 2} for q in range(3, 140)],
    paper="lakhotia2022polarfly",
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
        p (q^2 + q + 1) servers, then as many switches as points. The last q + 1 switches are the
        quadrics, points orthogonal to themselves: they have q cables to switches, the others q + 1.

    Notes
    -----
    Two points are orthogonal to exactly one, so two switches are at most 2 apart and one path of
    two links at most joins them. No graph of diameter 2 has more than (q + 1)^2 + 1 switches of
    degree q + 1. Source: Lakhotia et al., SC 2022, section 5; Brown, on graphs without a Thomsen
    graph, 1966.

    Examples
    --------
    >>> polarfly(q=31, p=0)
    <Topology polarfly(q=31, p=0): 993 hosts, 0 switches, 15872 links>
    """
    form, line = planned("polarfly", q, p), _orthogonal(FiniteField(q))
    own = np.arange(len(line))
    quadric = (line == own[:, None]).any(axis=1)
    place = np.empty_like(own)
    place[np.argsort(quadric, kind="stable")] = own
    ends = joined((place[:, None], place[line]))
    return switched(form, ends[ends[:, 0] < ends[:, 1]], np.full(own.size, -1))


def _steps(field: FiniteField, w: int) -> tuple[IntArray, IntArray]:
    """The differences X and X' at which switches of a column meet."""
    even = 2 * np.arange(2 * w)
    if field.q == 4 * w - 1:
        even[w:] -= 1  # the first half and what makes X = -X
    return field.powers[even % (field.q - 1)], field.powers[(even + 1) % (field.q - 1)]


def _orthogonal(field: FiniteField) -> IntArray:
    """Points orthogonal to each, q + 1 a row; (1, y, z) is y q + z, then (0, 1, z), (0, 0, 1)."""
    q = field.q
    t, y, z = np.arange(q), *np.divmod(np.arange(q**2), q)
    a = np.r_[np.ones(q**2, dtype=np.int64), np.zeros(q + 1, dtype=np.int64)][:, None]
    b = np.r_[y, np.ones(q, dtype=np.int64), 0][:, None]
    c = np.r_[z, t, 1][:, None]
    # used where not 0
    over_b, over_c = field.negate(field.invert(b)), field.negate(field.invert(c))
    # (1, t, -(a + b t)/c)
    sloped = t * q + field.multiply(field.add(a, field.multiply(b, t)), over_c)
    upright = field.multiply(a, over_b) * q + t  # (1, -a/b, t) where c is 0
    many = np.where(c > 0, sloped, np.where(b > 0, upright, q**2 + t))
    last = np.where(c > 0, q**2 + field.multiply(b, over_c), q**2 + q)
    return np.concatenate([many, last], axis=1)


def _axes(field: FiniteField) -> Iterator[tuple[IntArray, IntArray]]:
    """Some a and s of the maps: enough that they carry all points of a kind into each other."""
    one, minus = 1, int(field.negate(np.array(1)))
    for g in {1, *field.powers[1:2].tolist()}:
        for axis in ((0, one, minus), (one, minus, 0), (one, g, 0), (0, one, g), (one, g, g)):
            a = np.array(axis)
            square = _product(field, a[:, None], a[:, None])[0]
            if field.p == 2 and square == 0:
                yield from ((a, np.array(s)) for s in {1, g})
            elif field.p > 2 and square:
                two = field.add(np.array(1), np.array(1))
                yield a, field.negate(field.multiply(two, field.invert(square)))


def _points(field: FiniteField) -> IntArray:
    """Coordinates of the points, [3, q^2 + q + 1]: (1, y, z), then (0, 1, z), then (0, 0, 1)."""
    q = field.q
    (y, z), t = np.divmod(np.arange(q**2), q), np.arange(q)
    return np.stack([np.r_[y * 0 + 1, t * 0, 0], np.r_[y, t * 0 + 1, 0], np.r_[z, t, 1]])


def _number(field: FiniteField, point: IntArray) -> IntArray:
    """Number of points, whatever their factor."""
    x, y, z = point
    scale = field.invert(np.where(x > 0, x, np.where(y > 0, y, np.where(z > 0, z, 1))))
    y, z, q = field.multiply(y, scale), field.multiply(z, scale), field.q
    return np.where(x > 0, y * q + z, np.where(y > 0, q**2 + z, q**2 + q))


def _product(field: FiniteField, a: IntArray, b: IntArray) -> IntArray:
    """Sum of the products of three coordinates."""
    x, y, z = field.multiply(a, b)
    return field.add(field.add(x, y), z)


def _with_servers(switches: list[IntArray], count: int, p: int) -> list[IntArray]:
    """Moves of the switches with their p servers, and the next server of each."""
    own = [rolled(blocks((count, p), (count,)), (1, None))] if p else []
    return [*own, *(with_own_servers(switch, p) for switch in switches)]
