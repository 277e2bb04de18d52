"""Frontier dynamic programme in plain Python: any kind of state and number, forth layer by layer.

A question is a start state and one `Move` per step. Masses are added and multiplied, nothing else:
floats, fractions and whole polynomials packed into one integer all do. `moves` are those of
undirected networks, with or without groups of shared risk. They share no code with the compiled
sweep: each is the other's check. A state is a string of bytes, one per slot: 0 where the vertex is
dead or the slot empty, else 1 + the first slot of its block, plus 128 if the block holds a
terminal. Behind the slots of vertices come those of groups, which are live from their first to
their last member.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.probability import CERTAIN, Chance

MAX_SLOTS: Final = 120  # bytes below 127 name the first slot of a block

WORKS: Final = b""  # the state in which the terminals are connected, whatever comes
FAILS: Final = None  # the state in which they are apart for good
_FLAG: Final = 128
_DOWN: Final = 127  # in the slot of a group of shared risk
_PLAIN: Final = bytes(range(_FLAG))


class Move(NamedTuple):
    """One step: what becomes of a state and its mass, and the mass of all the step decides."""

    outcomes: Callable[[Any, Any], Iterable[tuple[Hashable, Any]]]
    total: Any = 1


class Swept(NamedTuple):
    """Masses of success, of failure and of states that were left out; states of all layers."""

    up: Any
    down: Any
    dropped: Any
    visited: int


def sweep(
    start: Hashable, moves: Iterable[Move], max_states: float, truncate: bool = False
) -> Swept:
    """Decide all steps; a layer too large is refused, or only its heaviest states are kept."""
    layer: dict[Any, Any] = {start: 1}
    up, down, dropped, visited = 0, 0, 0, 0
    for move in moves:
        # decided states do not ask for this step's parts
        up, down = up * move.total, down * move.total
        after: dict[Any, Any] = {}
        for state, mass in layer.items():
            for outcome, share in move.outcomes(state, mass):
                if outcome == WORKS:
                    up += share
                elif outcome is FAILS:
                    down += share
                elif outcome in after:
                    after[outcome] += share
                else:
                    after[outcome] = share
            if len(after) > max_states:
                if not truncate:
                    raise too_many_states(max_states)
                lightest = sorted(after, key=after.__getitem__)[: len(after) - int(max_states) // 2]
                dropped += sum(after.pop(state) for state in lightest)
        layer = after
        visited += len(layer)
    return Swept(up, down, dropped, visited)


def too_many_states(max_states: float) -> NotExactError:
    """Say that a layer is larger than there is room for."""
    return NotExactError(
        f"graph must need at most {int(max_states)} states in a layer of this sweep"
    )


@dataclass(frozen=True, slots=True)
class Risks:
    """What one sweep row has to do with groups of shared risk; slots are places in the state."""

    enter: tuple[tuple[int, Any, Any], ...] = ()
    needs: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = ((), (), ())
    leave: tuple[int, ...] = ()


def moves(
    steps: NDArray[np.int64],
    parts: NDArray[np.int64],
    slots: Sequence[Chance],
    risks: Sequence[Risks] | None = None,
) -> Iterator[Move]:
    """Moves of the rows of a sweep with the chances of its parts; -1 never fails."""
    for row, (step, factors) in enumerate(
        zip(steps.tolist(), factors_of(parts, slots), strict=True)
    ):
        risk = Risks() if risks is None else risks[row]
        total = prod(up + down for up, down in factors)
        yield Move(partial(ways_on, step=step, factors=factors, risk=risk), total)


def factors_of(parts: NDArray[np.int64], slots: Sequence[Chance]) -> list[list[Chance]]:
    """Chances of the three parts of every row."""
    return [[CERTAIN if i < 0 else slots[i] for i in row] for row in parts.tolist()]


def ways_on(
    state: bytes, mass: Any, step: list[int], factors: Sequence[tuple[Any, Any]], risk: Risks
) -> Iterator[tuple[bytes | None, Any]]:
    """What becomes of a state in one row, and the mass of each way."""
    for begun, share in _begin(state, mass, step, factors, risk):
        for joined, weight in _decide(begun, share, step, factors[0], risk.needs[0]):
            left = WORKS if joined is None else _leave(joined, step)
            if left:
                # states that differ in risks without further members only are one
                for slot in risk.leave:
                    left = _put(left, slot, 0)
            yield left, weight


def _begin(
    state: bytes, mass: Any, step: list[int], factors: Sequence[tuple[Any, Any]], risk: Risks
) -> Iterator[tuple[bytes, Any]]:
    """Let groups of shared risk and vertices enter: every way they can be."""
    found = [(state, mass)]
    for slot, up, down in risk.enter:
        found = [
            way
            for now, m in found
            for way in ((now, m * up), (_put(now, slot, _DOWN), m * down))
            if way[1]
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
        # without plain labels those of blocks with terminals are left: if all are one, it holds all
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
