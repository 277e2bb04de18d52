"""States of the frontier DP and their layers: what is connected, and which blocks hold a terminal.

A state is two integers. Every live vertex owns a slot; nibble s of ``labels`` is 0 when slot s is
empty or its vertex dead, else 1 + the first slot of its block. The low bit of nibble s of ``flags``
says that the block led by slot s holds a terminal. Four bits per slot leave room for 15 live
vertices: wider frontiers have too many states, with rare exceptions, and another word per state
would slow down all that fit.

The first slot of a block knows its own label, so in memory its nibble is free to say that the block
is flagged: see `pack`. A layer is an array of pairs, state and mass, and a hash table that says
where each is.
"""

from functools import partial
from typing import Any, Final

import numba
import numpy as np

# : For functions that make no arrays and are called often: numba counts no references to the arrays
# that they
# : are given, with which a grid of 8 x 8 takes 1.6 to 1.7 times as long, and ten to twenty nodes
# 1.1 times.
njit_borrowing: Final[Any] = partial(numba.njit, cache=True, _nrt=False)

MAX_LIVE: Final = 15  # live vertices that four-bit labels can tell apart

_ONES = np.uint64(0x0111_1111_1111_1111)  # the low bit of each of the 15 nibbles
# of the first 14, where a label of 15 cannot be the slot's own
_MOST = np.uint64(0x0011_1111_1111_1111)
_OWN = np.uint64(0x0FED_CBA9_8765_4321)  # nibble s: the label of a block that slot s leads
_LAST, _TOP = np.uint64(1 << 56), np.uint64(1 << 60)  # slot 14, and where memory keeps its flag
_NIBBLE = np.uint64(15)
_U0, _U1, _U2, _U4 = (np.uint64(i) for i in (0, 1, 2, 4))
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


@numba.njit(cache=True)
def _place(bits):  # type: ignore[no-untyped-def]
    """Place of the lowest bit that is set."""
    place = _U0
    while not bits & _U1:
        bits >>= _U1
        place += _U1
    return place


@numba.njit(cache=True)
def _same_label(labels, label):  # type: ignore[no-untyped-def]
    """Mark, in the low bit of its nibble, every slot that carries ``label``."""
    # a nibble without a difference stays 0; any other gets its low bit set by the bits above it
    x = labels ^ (label * _ONES)
    x |= x >> _U1
    x |= x >> _U2
    return ~x & _ONES


@numba.njit(cache=True)
def merge(labels, flags, x, y):  # type: ignore[no-untyped-def]
    """Join the blocks labelled x and y: the smaller label, which is the first slot's, survives."""
    low, high = min(x, y), max(x, y)
    labels -= _same_label(labels, high) * (high - low)  # of ``high`` each: no nibble borrows
    old = _U1 << ((high - _U1) * _U4)
    if flags & old:
        flags = (flags ^ old) | (_U1 << ((low - _U1) * _U4))
    return labels, flags


@numba.njit(cache=True)
def together(flags):  # type: ignore[no-untyped-def]
    """Whether one block holds all terminals that have entered."""
    return flags != _U0 and flags & (flags - _U1) == _U0  # one bit: without its lowest, nothing


@numba.njit(cache=True)
def depart(labels, flags, step):  # type: ignore[no-untyped-def]
    """Take out vertices that leave with a row; also return whether a terminal's block is closed."""
    closed = False
    if step[6] >= 0:
        labels, flags, closed = _leave(labels, flags, np.uint64(4 * step[6]))
    if step[7] >= 0 and not closed:
        labels, flags, closed = _leave(labels, flags, np.uint64(4 * step[7]))
    return labels, flags, closed


@numba.njit(cache=True)
def _leave(labels, flags, shift):  # type: ignore[no-untyped-def]
    """Empty the slot at this bit; where the first slot of a block leaves, the next one leads it."""
    label = (labels >> shift) & _NIBBLE
    if label == _U0:
        return labels, flags, False
    own = _U1 << shift
    others = _same_label(labels, label) & ~own
    labels &= ~(_NIBBLE << shift)
    if others == _U0:
        return labels, flags & ~own, flags & own != _U0
    if label << _U2 == shift + _U4:  # 4 label = 4 slot + 4: the slot leads its block
        first = _place(others)
        labels += others * ((first >> _U2) + _U1 - label)
        flag = (flags >> shift) & _U1
        flags = (flags & ~own) | flag << first
    return labels, flags, False


@numba.njit(cache=True)
def pack(labels, flags):  # type: ignore[no-untyped-def]
    """One integer for both: the leader of a flagged block is 15, for slot 14 with a bit on top.

    No other slot than 14 can lead a block with label 15, and followers of slot 14 there are none.
    """
    return labels | flags * _NIBBLE | (flags & _LAST) << _U4


@numba.njit(cache=True)
def unpack(state):  # type: ignore[no-untyped-def]
    """Labels and flags of a packed state."""
    x = state & (state >> _U1)  # and two places on: the low bit of a nibble of 15
    flags = (x & (x >> _U2) & _MOST) | (state & _TOP) >> _U4
    leaders = flags * _NIBBLE
    return (state & ~leaders & ~_TOP) | (_OWN & leaders), flags


@numba.njit(cache=True)
def indexed(table, layer, found, room):  # type: ignore[no-untyped-def]
    """Where a layer's first states are, with at least so many places; reuse a table if it fits."""
    bits = 5
    while (1 << bits) < room:
        bits += 1
    if len(table) < 1 << bits:
        table = np.empty(1 << bits, np.int32)
    for i in range(1 << bits):
        table[i] = -1
    # The high bits of the product depend on all nibbles, the low ones on the first slots alone.
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    for entry in range(found):
        place = (layer[2 * entry] * _MIX) >> shift
        while table[place] >= 0:
            place = (place + _U1) & mask
        table[place] = entry
    return table, bits


@numba.njit(cache=True)
def add_states(part, layer, table, bits, found):  # type: ignore[no-untyped-def]
    """Add (state, mass) pairs to a layer of so many states; ``part`` then has places for states."""
    room = len(part) // 2
    if len(layer) < 2 * (found + room):
        larger = np.empty(4 * (found + room), np.uint64)
        # an assignment of slices would compile texts of what may go wrong
        for i in range(2 * found):
            larger[i] = layer[i]
        layer = larger
    if 2 * (found + room) > 1 << bits:
        table, bits = indexed(table, layer, found, 3 * found + 2 * room)
    return layer, table, bits, _insert(part, layer, table, bits, found)


@njit_borrowing
def _insert(part, layer, table, bits, found):  # type: ignore[no-untyped-def]
    """Add the masses where there is room; return how many states there are."""
    share, mass, shift = part.view(np.float64), layer.view(np.float64), np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    for i in range(0, len(part), 2):
        state = part[i]
        place = (state * _MIX) >> shift
        while True:
            entry = np.int64(table[place])
            if entry < 0:
                table[place] = entry = found
                layer[2 * found], mass[2 * found + 1] = state, share[i + 1]
                found += 1
                break
            if layer[2 * entry] == state:
                mass[2 * entry + 1] += share[i + 1]
                break
            place = (place + _U1) & mask
        part[i] = entry
    return found


@numba.njit(cache=True)
def two_sum(total, rest, term):  # type: ignore[no-untyped-def]
    """Add a term to a running sum and what rounding lost to ``rest`` (Knuth's two-sum)."""
    new = total + term
    back = new - total
    return new, rest + ((total - (new - back)) + (term - back))
