"""Symmetries of groups of switches, and of those that come from finite fields."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relparallel.topology._arrays import IntArray
from relparallel.topology._finite_field import FiniteField
from relparallel.topology._generators.blocks import blocks, flat, on_switches, rolled

__all__ = ["dragonfly", "dragonfly_plus", "polarfly", "slim_fly"]


def dragonfly(p: int, a: int, h: int, arrangement: str = "consecutive") -> list[IntArray]:
    """Next server; count groups and switches backwards; like groups, or, as a palmtree, the next group.

    Groups c h + 1 .. c h + h - 1 of the consecutive arrangement use the same switch towards any other, and
    any other uses one switch towards all of them.
    """
    switch = np.arange(a * (a * h + 1)).reshape(-1, a)
    palm = arrangement == "palmtree"
    others = np.roll(switch, -1, axis=0) if palm else switch[_like_groups(a, h)]
    moves = [on_switches(part.ravel(), p) for part in (switch[::-1, ::-1], others)]
    return [rolled(blocks((switch.size, p), (switch.size,)), (1, None)), *moves]


def dragonfly_plus(l: int, s: int, p: int, h: int) -> list[IntArray]:  # noqa: E741 - the paper's letter
    """Next server, leaf of the group; count groups and spines backwards; like groups as in a Dragonfly."""
    groups = s * h + 1
    parts = blocks((groups, l, p), (groups, l), (groups, s))
    server, leaf, spine = parts
    backwards = flat([server[::-1], leaf[::-1], spine[::-1, ::-1]])
    alike = flat(part[_like_groups(s, h)] for part in parts)
    return [rolled(parts, (2, None, None)), rolled(parts, (1, 1, None)), backwards, alike]


def _like_groups(a: int, h: int) -> IntArray:
    """Of a h + 1 groups, those between multiples of h turned."""
    between = np.arange(1, a * h + 1).reshape(a, h)
    between[:, :-1] = np.roll(between[:, :-1], -1, axis=1)
    return np.concatenate([[0], between.ravel()])


def slim_fly(q: int, p: int) -> list[IntArray]:
    """Next server; moves and stretches of the plane; where q = 4w + 1 both grids exchanged.

    With points (x, y) and lines y = m x + c: y and c grow alike; x and -c/m or m and y/x do; x and 1/m are
    stretched, or m, y and c, by what keeps the differences that are joined; x -> m, m -> -g x for a primitive
    element g, with y and c times g, exchanges points and lines.
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


def polarfly(q: int, p: int) -> list[IntArray]:
    """Next server; linear maps that keep products of points.

    v -> v + s (v.a) a does where s (2 + s a.a) = 0: a reflection for odd q; for even q any s and a.a = 0.
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
    return [*own, *(on_switches(switch, p) for switch in switches)]
