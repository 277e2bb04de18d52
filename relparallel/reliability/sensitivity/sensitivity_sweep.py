"""A sweep forth and a sweep back: how the failure mass of a programme answers to every one of its parts.

The sweep forth is the frontier programme, which also writes down where every state goes. The sweep back gives
every state g, the probability that the terminals end up apart. A link in which two states d (down) and u (up)
differ has the derivative sum of f (g(d) - g(u)), f the probability to get there: no term is negative, and
none is left out because its chance is 0.

The difference is where digits are lost: a link that matters in one of 1e12 failures has g(d) and g(u) that
agree in twelve digits. So g is a whole number of several words of 30 bits, as many as the least derivative
seems to need. It costs little: a state needs one product, g = g(u) + down (g(d) - g(u)) or the like from the
other side, and records are read in batches whose numbers a processor mixes several at a time (`many_digits`).
Where even so some part matters too little, and records are few, the sweep back is repeated with more words.
All other steps, such as the way back through the tape, add and multiply what is not negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.programme.compiling import njit_borrowing
from relparallel.reliability.programme.layer_rows import KIND, MERGE, SUCCEED, planned_rows
from relparallel.reliability.sensitivity.many_digits import FULL, mixed
from relparallel.reliability.sensitivity.traced_sweep import ENDS, FAILURE, Space, Trace, forth, no_space
from relparallel.reliability.sensitivity.word_counts import MOST, first_words, missing_words, rounding

_TINY = 1e-300  # masses below may be 0
_SMALLEST = 1e-180  # derivative beside U that is ever held
_FEW_RECORDS = 2**12  # for which to make room at first
_QUICK = 2**15  # records times words: so many take less time than the rest
_SOME = 2.0**7  # derivative without digits, beside what rounding may add
_PRIME, _ROOT = 2**31 - 1, 16807  # of which powers seem drawn at random
_BATCH = 128  # records at a time
_MODULO = 1  # word that holds a number modulo the prime


class _Room(NamedTuple):
    """Where a batch of n numbers of w words is mixed."""

    down: NDArray[np.uint32]
    up: NDArray[np.uint32]
    mixed: NDArray[np.uint32]
    change: NDArray[np.float64]
    gap: NDArray[np.uint32]
    carry: NDArray[np.uint64]


@numba.njit(cache=True)
def slopes(steps, chances, free, asked, gain, max_states, room):  # type: ignore[no-untyped-def]
    """Sweep forth and back.

    Notes
    -----
    States that are too improbable for a float are left out, as in the frontier programme, unless a part's
    chance and its derivative are so small that these states may count in it: then all are swept.
    A derivative has nine digits down to 1e-58, and further where the chances ask for it, at most to 1e-76 of
    the less likely outcome; of few records, down to 1e-180 of failure. One without digits is given as 0.
    """
    rows, lean = planned_rows(steps, free), _least(chances, asked) >= _TINY
    asked = _between_live(steps, chances, asked)
    success, failure, peak = _there_and_back((rows, free, lean, max_states), chances, asked, gain, room)
    if lean and peak <= max_states and _underflows(chances, asked, gain, failure):
        gain[:] = 0.0
        return _there_and_back((rows, free, False, max_states), chances, asked, gain, room)
    return success, failure, peak


@numba.njit(cache=True)
def _there_and_back(swept, chances, asked, gain, room):  # type: ignore[no-untyped-def]
    """Sweep forth once, and back until all that is asked for has its digits."""
    segments, records, outcome, peak = _all_forth(swept, chances, room)
    if peak > swept[3]:
        return 0.0, 1.0, peak
    words, drawn = first_words(swept[0], chances, *outcome), False
    _all_back(swept, segments, peak, chances, gain, words)
    while records * words <= _QUICK and words < MOST and missing_words(gain, asked, words) > 0:
        if not drawn:  # 0 may be right, beside what is for certain
            matter, drawn = np.zeros(gain.shape), True
            _all_back(swept, segments, peak, _drawn(chances), matter, _MODULO)
            asked = asked & (matter > 0.0)
            continue
        gain[:], words = 0.0, min(words + max(missing_words(gain, asked, words), words // 2), MOST)
        _all_back(swept, segments, peak, chances, gain, words)
    for row in range(len(gain)):
        for i in range(3):
            if not asked[row, i] or gain[row, i] < _SOME * rounding(gain, words):
                gain[row, i] = 0.0
    return outcome[0], outcome[1], peak


@numba.njit(cache=True)
def _all_forth(swept, chances, room):  # type: ignore[no-untyped-def]
    """Sweep forth through all rows, in segments, each with room for as many records as all before it."""
    rows, free, lean, max_states = swept
    layer, none = np.zeros(2, np.uint64), np.zeros(0, np.int64)
    layer.view(np.float64)[1] = 1.0
    begins, layers, rooms = [0], [layer], [min(_FEW_RECORDS, room)]
    nothing, traces = Trace(np.zeros((0, 2), np.int32), np.zeros(0), none, none, none), []
    records, kept, dropped, peak, sums, space = 0, 0, 0, 1, np.zeros(4), no_space()
    while begins[-1] < len(rows) and peak <= max_states:
        row, layer, trace, most, space = forth(
            rows, chances, free, lean, begins[-1], layers[-1], max_states, rooms[-1], sums, space
        )
        peak = max(peak, most)
        begins.append(row)
        layers.append(layer)
        traces.append(trace)
        records, kept = records + trace.records[-1], kept + trace.records[-1]
        rooms.append(min(records, room // 4))
        while kept > room and dropped < len(traces) - 1:
            kept -= traces[dropped].records[-1]
            space = _with_room_of(traces[dropped], space)
            traces[dropped] = nothing
            dropped += 1
    segments = begins, layers, rooms, traces, dropped, space if dropped else no_space()
    return segments, records, (sums[0] + sums[1], sums[2] + sums[3]), peak


@numba.njit(cache=True)
def _least(chances, asked):  # type: ignore[no-untyped-def]
    """Least chance to be up or down of a part that is asked for."""
    least = 1.0
    for row in range(len(asked)):
        for i in range(3):
            if asked[row, i]:
                least = min(least, chances[row, 2 * i], chances[row, 2 * i + 1])
    return least


@numba.njit(cache=True)
def _underflows(chances, asked, gain, failure):  # type: ignore[no-untyped-def]
    """Whether a derivative may lack states to which its own part's chance let no mass get."""
    for row in range(len(asked)):
        for i in range(3):
            rarest = min(chances[row, 2 * i], chances[row, 2 * i + 1])
            if asked[row, i] and rarest * max(gain[row, i], _SMALLEST * failure) < _TINY:
                return True
    return False


@numba.njit(cache=True)
def _between_live(steps, chances, asked):  # type: ignore[no-untyped-def]
    """What is asked for, but for links of vertices that are always down: they have 0, and no digits."""
    dead, asked = np.zeros(16, np.bool_), asked.copy()
    for row in range(len(steps)):
        for side in range(2):
            if steps[row, side] >= 0:
                dead[steps[row, side]] = chances[row, 2 + 2 * side] == 0.0
        asked[row, 0] &= not (dead[steps[row, 4]] or dead[steps[row, 5]])
    return asked


@numba.njit(cache=True)
def _all_back(swept, segments, peak, chances, gain, words):  # type: ignore[no-untyped-def]
    """Sweep back, and forth once again where a trace is empty."""
    rows, free, lean, max_states = swept
    begins, layers, rooms, traces, dropped, space = segments
    largest, sums = ENDS + peak, np.zeros(4)
    value, other = np.empty((largest, words), np.uint32), np.empty((largest, words), np.uint32)
    value[:ENDS] = 0
    value[FAILURE] = 1 if words == _MODULO else FULL
    for k in range(len(traces) - 1, -1, -1):
        trace = traces[k]
        if k < dropped:
            trace, _, space = forth(
                rows, chances, free, lean, begins[k], layers[k], max_states, rooms[k], sums, space
            )[2:]
        value, other = _back(rows, chances, free, gain, begins[k], trace, value, other)
        if k < dropped:
            space = _with_room_of(trace, space)


@numba.njit(cache=True)
def _with_room_of(trace, space):  # type: ignore[no-untyped-def]
    """What may be overwritten, with what a trace takes."""
    here, there, table, sources, _, _ = space
    return Space(here, there, table, sources, trace.target, trace.mass)


@numba.njit(cache=True)
def _drawn(chances):  # type: ignore[no-untyped-def]
    """Whole numbers up and down that add up to 1 modulo a prime, where neither chance is 0.

    With them the values of two states are equal where they are for all chances, and seldom else.
    """
    drawn, number = chances.copy(), 1
    for row in range(len(drawn)):
        for i in range(0, 6, 2):
            number = (_ROOT * number) % _PRIME
            if drawn[row, i] > 0.0 and drawn[row, i + 1] > 0.0:
                drawn[row, i], drawn[row, i + 1] = number, _PRIME + 1 - number
    return drawn


@numba.njit(cache=True)
def _back(rows, chances, free, gain, begin, trace, after, before):  # type: ignore[no-untyped-def]
    """Failure probability of the states of layer ``begin``, in words, behind those of the ends.

    It comes in one of the two arrays, of room for the largest layer, and the other one is returned as well.
    """
    words = after.shape[1]
    room = _Room(
        np.empty((words, _BATCH), np.uint32), np.empty((words, _BATCH), np.uint32),
        np.empty((8, words, _BATCH), np.uint32), np.empty(_BATCH),
        np.empty((words + 1, _BATCH), np.uint32), np.empty((2, _BATCH), np.uint64),
    )  # fmt: skip
    for i in range(len(trace.first) - 2, -1, -1):
        row = begin + i
        mass = trace.mass[trace.first[i] : trace.first[i + 1]]
        target = trace.target[trace.records[i] : trace.records[i + 1]]
        if rows[row, KIND] >= MERGE:
            gain[row, 0] = _recall_shares(after, chances[row], rows[row, KIND] == SUCCEED, mass, target, room)
            continue
        before[:ENDS] = after[:ENDS]
        _recall_states(chances[row], free[row], gain[row], mass, target, before[ENDS:], after, room)
        after, before = before, after
    return after, before


@njit_borrowing
def _recall_shares(value, chance, succeeds, mass, target, room):  # type: ignore[no-untyped-def]
    """The same for one row in place, whose states keep their places; return what the link gains.

    What a state reads is not yet overwritten: nothing moves on from where a share of another moves to, but
    for what fails, and that comes last.
    """
    total, made = 0.0, room.mixed[0]
    for start in range(0, len(mass), _BATCH):
        places = target[start : start + _BATCH]
        _take(value, places, 1 if succeeds else 0, 0, 1, room.down)
        _take(value, places, 0 if succeeds else 1, 0, 1, room.up)
        _mix(room.down, room.up, chance[0], chance[1], made, room, len(places))
        for n in range(len(places)):
            total += mass[start + n] * room.change[n]
            words = value[np.uint64(places[n, 0])]
            for i in range(len(words)):
                words[i] = made[i, n]
    return total


@njit_borrowing
def _recall_states(chance, free, gain, mass, target, before, after, room):  # type: ignore[no-untyped-def]
    """The same for another row, in which a vertex may enter that may be down.

    The ways in which the vertices can be are the leaves of a binary tree, numbers ``ways`` and on of what is
    mixed; vertex b decides between the two branches of its root, number 1, and vertex a between their leaves.
    """
    ways, mixed = (1 + free[1]) * (1 + free[2]), room.mixed
    for start in range(0, len(mass), _BATCH):
        some = mass[start : start + _BATCH]
        places = target[ways * start : ways * (start + len(some))]
        for way in range(ways):
            dead = way if free[1] else 2 * way  # bits: a, b
            _take(after, places, 0, way, ways, room.down)
            _take(after, places, 1, way, ways, room.up)
            _mix(room.down, room.up, chance[0], chance[1], mixed[ways + way], room, len(some))
            gain[0] += chance[2 + (dead & 1)] * chance[4 + (dead >> 1)] * _gained(some, room.change)
        for node in range(ways - 1, 0, -1):
            vertex = 2 if node == 1 and free[2] else 1
            up, down = chance[2 * vertex], chance[2 * vertex + 1]
            _mix(mixed[2 * node + 1], mixed[2 * node], up, down, mixed[node], room, len(some))
            gain[vertex] += (1.0 if node == 1 else chance[2 + node]) * _gained(some, room.change)
        for n in range(len(some)):
            words = before[np.uint64(start + n)]
            for i in range(len(words)):
                words[i] = mixed[1, i, n]


@njit_borrowing
def _take(value, places, side, first, step, taken):  # type: ignore[no-untyped-def]
    """Values in every so many places of one side of the records."""
    for n in range(len(places) // step):
        words = value[np.uint64(places[first + step * n, side])]
        for i in range(len(words)):
            taken[i, n] = words[i]


@njit_borrowing
def _gained(mass, change):  # type: ignore[no-untyped-def]
    """Sum of what each mass gains."""
    total = 0.0
    for n in range(len(mass)):
        total += mass[n] * change[n]
    return total


@njit_borrowing
def _mix(d, u, up, down, made, room, count):  # type: ignore[no-untyped-def]
    """Mix numbers by their chances, of whatever kind; how much d is above u goes to the room's ``change``."""
    if len(d) == _MODULO:
        _mixed_modulo(d[0], u[0], np.int64(down), made[0], room.change, count)
    else:
        mixed(d, u, up, down, made, room.change, room.gap, room.carry, count)


@njit_borrowing
def _mixed_modulo(d, u, down, made, differs, count):  # type: ignore[no-untyped-def]
    """The same with whole numbers modulo a prime, and whether they differ."""
    for n in range(count):
        base, change = np.int64(u[n]), np.int64(d[n]) - np.int64(u[n])
        total = base + down * (change if change >= 0 else change + _PRIME)
        for _ in range(2):
            total = (total & _PRIME) + (total >> 31)
        made[n] = total if total < _PRIME else total - _PRIME
        differs[n] = 1.0 if change != 0 else 0.0
