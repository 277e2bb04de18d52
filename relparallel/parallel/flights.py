"""Micro-batches in flight: how many the stages of a pipeline hold at once, by schedule.

p stages, m micro-batches, v chunks per stage, i the stage, counted from 0; numbers or columns.
"""

from typing import Final, NamedTuple

import numpy as np

from relparallel.parallel.columns import Numbers, some, where
from relparallel.parallel.schedules import FLIGHTS, TABLE

FLIGHT_RULES: Final = {name: FLIGHTS.index(known.flight) for name, known in TABLE.items()}
"""Schedule: how many micro-batches stages hold; each part of a split backward pass frees half."""

RULES: Final = np.array(list(FLIGHT_RULES.values()))  # in the order of `SCHEDULES`
INTERLEAVED: Final = FLIGHT_RULES["interleaved_1f1b"]
_EAGER: Final = FLIGHT_RULES["eager_1f1b"]
PIPEDREAM: Final = FLIGHT_RULES["pipedream"]
TWO_VERSIONS: Final = FLIGHT_RULES["pipedream_2bw"]
_SPLIT: Final = FLIGHT_RULES["zb_h1"]
_SPLIT_EAGER: Final = FLIGHT_RULES["zb_2p"]
CHIMERA: Final = FLIGHT_RULES["chimera"]
# from here on, the path through the stages goes down and up again
_FOLDED: Final = FLIGHT_RULES["zb_v"]
_FOLDED_HALF: Final = FLIGHT_RULES["v_half"]


class Flight(NamedTuple):
    """Micro-batches in flight: of the stage (a chunk counts 1/v), its first chunk, its last one."""

    held: Numbers
    first: Numbers
    last: Numbers


def flight(rule: Numbers, p: Numbers, m: Numbers, v: Numbers, i: Numbers) -> Flight:
    """Micro-batches in flight on a stage by one of `FLIGHTS`."""
    behind = p - 1.0 - i
    held = where(rule == _EAGER, 2 * behind + 1, behind + 1)
    held = where(rule == _SPLIT, p - i / 2, where(rule == _SPLIT_EAGER, 2.0 * p - 1 - i, held))
    held = np.minimum(m, held)
    last = where(rule >= _SPLIT, held, 1.0)
    found = Flight(*(where(rule == 0, m, one) for one in (held, held, last)))
    chunks = (rule == INTERLEAVED) & (v > 1)
    if some(chunks):
        ahead = np.minimum(m, (2 * behind + (v - 1) * p + 1) / v)
        found = _among(chunks, Flight(ahead, np.minimum(m, 2.0 * p), 1.0), found)
    if some(rule == CHIMERA):  # half of the micro-batches come from the other end
        half = np.maximum(np.ceil(np.minimum(m, 1.0 * p) / 2), 1.0)
        both = np.minimum(m, np.minimum(half, behind + 1) + np.minimum(half, i + 1.0))
        found = _among(rule == CHIMERA, Flight(both, half, 1.0), found)
    if some(rule >= _FOLDED):
        third = where(rule > _FOLDED_HALF, np.floor(2 * p / 3 + 2) / 2, 1.0 * p)
        most = where(rule == _FOLDED_HALF, p // 2 + 1.5, third)
        last = where(rule == _FOLDED_HALF, 2.0, 1.0)
        found = _among(
            rule >= _FOLDED, Flight(np.minimum(m, most), np.minimum(m, 2 * most), last), found
        )
    return found


def _among(condition: Numbers, yes: Flight, no: Flight) -> Flight:
    return Flight(*(where(condition, one, other) for one, other in zip(yes, no, strict=True)))


def waiting(rule: Numbers, m: Numbers, i: Numbers) -> Numbers:
    """Micro-batches of a stage that have gone back but wait for the gradients of the weights."""
    if not some((rule == _SPLIT) | (rule == _SPLIT_EAGER) | (rule >= _FOLDED)):
        return 0.0
    most = where(rule > _FOLDED, where(rule == _FOLDED_HALF, 2.0, 1.0), 0.0)
    most = where(rule == _FOLDED, i + 0.5, most)
    most = where(rule == _SPLIT, i + 1.0, where(rule == _SPLIT_EAGER, 2.0 * i + 1, most))
    return np.minimum(m, most)
