"""A state of the frontier DP: which live vertices are connected, and which blocks hold a terminal.

A state is two integers. Every live vertex owns a slot; nibble s of ``labels`` is 0 when slot s is empty or
its vertex dead, else 1 + the first slot of its block. The low bit of nibble s of ``flags`` says that the
block led by slot s holds a terminal. Four bits per slot leave room for 15 live vertices: wider frontiers have
too many states, with rare exceptions, and another word per state would slow down all that fit.

The first slot of a block knows its own label, so in memory its nibble is free to say that the block is
flagged: see `pack`. As long as no terminal has entered, or nothing but terminals that never fail, no block or
every block holds one: then memory keeps labels alone.
"""

from functools import partial
from typing import Any, Final

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

#: For functions that make no arrays and are called often: numba counts no references to the arrays that they
#: are given, which took half the time of small networks.
njit_borrowing: Final[Any] = partial(numba.njit, cache=True, _nrt=False)

MAX_LIVE: Final = 15  # live vertices that four-bit labels can tell apart
NONE, SOME, ALL = 0, 1, 2  # which blocks hold a terminal, with the vertices that have entered so far

_ONES = np.uint64(0x0111_1111_1111_1111)  # the low bit of each of the 15 nibbles
_MOST = np.uint64(0x0011_1111_1111_1111)  # of the first 14, where a label of 15 cannot be the slot's own
_OWN = np.uint64(0x0FED_CBA9_8765_4321)  # nibble s: the label of a block that slot s leads
_LAST, _TOP = np.uint64(1 << 56), np.uint64(1 << 60)  # slot 14, and where memory keeps its flag
_NIBBLE = np.uint64(15)
_U0, _U1, _U2, _U4 = (np.uint64(i) for i in (0, 1, 2, 4))


@numba.njit(cache=True)
def same_label(labels, label):  # type: ignore[no-untyped-def]
    """Mark, in the low bit of its nibble, every slot that carries ``label``."""
    x = labels ^ (label * _ONES)
    x |= x >> _U1
    x |= x >> _U2
    return ~x & _ONES


@numba.njit(cache=True)
def merge(labels, flags, x, y):  # type: ignore[no-untyped-def]
    """Join the blocks with labels x and y: the smaller label, which is the first slot's, survives."""
    low, high = min(x, y), max(x, y)
    labels -= same_label(labels, high) * (high - low)
    old = _U1 << ((high - _U1) * _U4)
    if flags & old:
        flags = (flags ^ old) | (_U1 << ((low - _U1) * _U4))
    return labels, flags


@numba.njit(cache=True)
def together(labels, flags, holds):  # type: ignore[no-untyped-def]
    """Whether one block holds all terminals that have entered."""
    if holds == ALL:
        occupied = labels | labels >> _U1
        occupied = (occupied | occupied >> _U2) & _ONES
        return labels == occupied * (labels >> np.uint64(trailing_zeros(labels) & ~3) & _NIBBLE)  # type: ignore[call-arg]
    return flags != _U0 and flags & (flags - _U1) == _U0


@numba.njit(cache=True)
def regroup(labels, flags, members, kept):  # type: ignore[no-untyped-def]
    """Make one block of ``kept``; empty the other slots of ``members``, which are one or two whole blocks."""
    first = np.uint64(trailing_zeros(kept))  # type: ignore[call-arg]
    labels = (labels & ~(members * _NIBBLE)) | kept * ((first >> _U2) + _U1)
    if flags & members:
        flags = (flags & ~members) | _U1 << first
    return labels, flags


@numba.njit(cache=True)
def depart(labels, flags, row, holds):  # type: ignore[no-untyped-def]
    """Take out the vertices that leave with a row; also return whether a block with a terminal is closed."""
    closed = False
    if row[6] >= 0:
        labels, flags, closed = leave(labels, flags, np.uint64(4 * row[6]), holds)
    if row[7] >= 0 and not closed:
        labels, flags, closed = leave(labels, flags, np.uint64(4 * row[7]), holds)
    return labels, flags, closed


@numba.njit(cache=True)
def leave(labels, flags, shift, holds):  # type: ignore[no-untyped-def]
    """Empty the slot at this bit; also return whether this closed a block that holds a terminal.

    Where the first slot of a block leaves, the next one leads it.
    """
    label = (labels >> shift) & _NIBBLE
    if label == _U0:
        return labels, flags, False
    own = _U1 << shift
    others = same_label(labels, label) & ~own
    labels &= ~(_NIBBLE << shift)
    if others == _U0:
        return labels, flags & ~own, flags & own != _U0 or holds == ALL
    if label << _U2 == shift + _U4:
        first = np.uint64(trailing_zeros(others))  # type: ignore[call-arg]
        labels += others * ((first >> _U2) + _U1 - label)
        flag = (flags >> shift) & _U1
        flags = (flags & ~own) | flag << first
    return labels, flags, False


@numba.njit(cache=True)
def pack(labels, flags):  # type: ignore[no-untyped-def]
    """One integer for both: the leader of a flagged block is written as 15, for slot 14 with a bit on top.

    No other slot than 14 can lead a block with label 15, and followers of slot 14 there are none.
    """
    return labels | flags * _NIBBLE | (flags & _LAST) << _U4


@numba.njit(cache=True)
def unpack(state, holds):  # type: ignore[no-untyped-def]
    """Labels and flags of a packed state; no flags unless ``holds`` is SOME."""
    if holds != SOME:
        return state, _U0
    x = state & (state >> _U1)
    flags = (x & (x >> _U2) & _MOST) | (state & _TOP) >> _U4
    leaders = flags * _NIBBLE
    return (state & ~leaders & ~_TOP) | (_OWN & leaders), flags


@numba.njit(cache=True)
def flagged(labels):  # type: ignore[no-untyped-def]
    """The packed state in which every block holds a terminal."""
    x = labels ^ _OWN
    x |= x >> _U1
    x |= x >> _U2
    return pack(labels, ~x & _ONES)
