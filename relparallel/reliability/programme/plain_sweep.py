"""The frontier programme in plain Python: any kind of number, any width, and shared risks.

It sweeps as `frontier` does and shares no code with it: each is the other's check. A
state is a string of bytes, one per slot: 0 where the vertex is dead or the slot empty, else 1 + the first
slot of its block, plus 128 if the block holds a terminal. Behind the slots of vertices come those of shared
risks, which are live from their first to their last member. Masses are added and multiplied, nothing else:
floats, fractions and whole polynomials packed into one integer all do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.chances import CERTAIN, Chance
from relparallel.reliability.programme.frontier import NotExactError

MAX_SLOTS: Final = 120  # bytes below 127 name the first slot of a block

JOINED: Final = b""  # for a state in which the terminals are
_FLAG: Final = 128
_DOWN: Final = 127  # in the slot of a shared risk
_PLAIN: Final = bytes(range(_FLAG))

Masses = dict[bytes, Any]


@dataclass(frozen=True, slots=True)
class Risks:
    """What one row of the programme has to do with shared risks; slots are positions in the state."""

    enter: tuple[tuple[int, Any, Any], ...] = ()
    needs: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = ((), (), ())
    leave: tuple[int, ...] = ()


SAFE: Final = Risks()


def weigh_states(
    steps: NDArray[np.int64],
    chances: Sequence[tuple[Chance, Chance, Chance]],
    slots: int,
    max_states: int,
    risks: Sequence[Risks] | None = None,
) -> tuple[Any, Any]:
    """Decide all links; return the mass of success and the mass of failure."""
    layer: Masses = {bytes(slots): 1}
    success, failure = 0, 0
    for row, (step, factors) in enumerate(zip(steps.tolist(), chances, strict=True)):
        risk = SAFE if risks is None else risks[row]
        rest = prod(up + down for up, down in factors)  # decided cases do not ask for this row's parts
        success, failure = success * rest, failure * rest
        after: Masses = {}
        for state, mass in layer.items():
            for outcome, weight in ways_on(state, mass, step, factors, risk):
                if outcome == JOINED:
                    success += weight
                elif outcome is None:
                    failure += weight
                elif outcome in after:
                    after[outcome] += weight
                else:
                    after[outcome] = weight
        layer = after
        if len(layer) > max_states:
            raise too_many_states(max_states)
    return success, failure


def ways_on(
    state: bytes, mass: Any, step: list[int], factors: Sequence[tuple[Any, Any]], risk: Risks
) -> Iterator[tuple[bytes | None, Any]]:
    """What becomes of a state in one row, `JOINED` or None if that decides it, and the mass of each way."""
    for begun, share in _begin(state, mass, step, factors, risk):
        for joined, weight in _decide(begun, share, step, factors[0], risk.needs[0]):
            left = JOINED if joined is None else _leave(joined, step)
            if left:
                for slot in risk.leave:  # states that differ in risks without further members only are one
                    left = _put(left, slot, 0)
            yield left, weight


def keep_heaviest(layer: dict[Any, float], count: int) -> float:
    """Drop the lightest states of a layer but for ``count``; their mass."""
    lightest = sorted(layer, key=layer.__getitem__)[: len(layer) - count]
    return sum(layer.pop(state) for state in lightest)


def too_many_states(max_states: int) -> NotExactError:
    """Say that a layer is larger than there is room for."""
    return NotExactError(f"graph must need at most {max_states} states in a layer of this programme")


def _begin(
    state: bytes, mass: Any, step: list[int], factors: Sequence[tuple[Any, Any]], risk: Risks
) -> Iterator[tuple[bytes, Any]]:
    """Let shared risks and vertices enter: every way they can be."""
    found = [(state, mass)]
    for slot, up, down in risk.enter:
        found = [
            way for now, m in found for way in ((now, m * up), (_put(now, slot, _DOWN), m * down)) if way[1]
        ]
    for side in (0, 1):
        slot = step[side]
        if slot < 0:
            continue
        (up, down), label = factors[1 + side], slot + 1 + _FLAG * step[2 + side]
        ways = []
        for now, m in found:
            if any(now[need] for need in risk.needs[1 + side]):
                ways.append((now, m * (up + down)))
                continue
            ways.append((_put(now, slot, label), m * up))
            if down:
                ways.append((now, m * down))
        found = ways
    yield from found


def _decide(
    state: bytes, mass: Any, step: list[int], link: tuple[Any, Any], needs: tuple[int, ...]
) -> Iterator[tuple[bytes | None, Any]]:
    """Let the link be up or down; None stands for success."""
    x, y = state[step[4]], state[step[5]]
    up, down = link
    if x == y or not x or not y or any(state[need] for need in needs):
        yield state, mass * (up + down)
        return
    if down:
        yield state, mass * down
    if up:
        label = bytes((min(x & _DOWN, y & _DOWN) | ((x | y) & _FLAG),))
        joined = state.replace(bytes((x,)), label).replace(bytes((y,)), label)
        ended = not step[8] and x & y & _FLAG and len(set(joined.translate(None, _PLAIN))) == 1
        yield (None if ended else joined), mass * up


def _leave(state: bytes, step: list[int]) -> bytes | None:
    """Let vertices leave; None if that closes a block that holds a terminal."""
    for side in (0, 1):
        slot = step[6 + side]
        if slot < 0 or not state[slot]:
            continue
        label = state[slot]
        state = _put(state, slot, 0)
        first = state.find(label)
        if first >= 0:
            state = state.replace(bytes((label,)), bytes(((label & _FLAG) | (first + 1),)))
        elif label & _FLAG:
            return None
    return state


def _put(state: bytes, slot: int, value: int) -> bytes:
    return state[:slot] + bytes((value,)) + state[slot + 1 :]


def factors_of(parts: NDArray[np.int64], slots: Sequence[Chance]) -> list[tuple[Chance, Chance, Chance]]:
    """Masses of the three parts of every row; -1 never fails."""
    rows = ([CERTAIN if i < 0 else slots[i] for i in row] for row in parts.tolist())
    return [(link, a, b) for link, a, b in rows]
