"""A tape of reductions: what a chance is combined from, so that new chances need no new structure.

Every independent part has a *slot* that holds its chance (up, down): first the links, then the nodes, then
what the reductions make of them. One row of the tape fills one slot from earlier ones. Some slots are
*required*: the terminals are connected only if all of them are up.

========  ====================================================================================
series    a, b and c are up (-1: a part that never fails)
parallel  a or b is up
both      a and b are up, given that one of them is: the link that a node between two terminals
          leaves behind, after "one of them is up" has been required
========  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel.reliability.frontier.compiling import njit_borrowing
from relparallel.reliability.probability import CERTAIN, Chance, parallel, series

SERIES: Final = np.int64(0)  # plain numbers would compile what is called with them once more
PARALLEL: Final = np.int64(1)
BOTH: Final = np.int64(2)


@njit_borrowing
def play(rows, chances):  # type: ignore[no-untyped-def]
    """Fill the slots that the tape makes, in place."""
    for row in range(len(rows)):
        code, made, a, b, c = rows[row]
        up_a, down_a = chances[a, 0], chances[a, 1]
        up_b, down_b = chances[b, 0], chances[b, 1]
        if code == SERIES:
            up, down = up_a * up_b, down_a + up_a * down_b
            if c >= 0:
                down += up * chances[c, 1]
                up *= chances[c, 0]
        elif code == PARALLEL:
            up, down = up_a + down_a * up_b, down_a * down_b
        else:
            some = up_a + down_a * up_b
            up = up_a * up_b / some if some > 0.0 else 0.0  # down, as it stays if only one of them comes up
            down = (up_a * down_b + down_a * up_b) / some if some > 0.0 else 1.0
        chances[made, 0], chances[made, 1] = up, down


def play_any(rows: NDArray[np.int64], given: Sequence[Chance], slots: int) -> list[Chance]:
    """Fill the slots with chances of any kind of number, such as `fractions.Fraction`."""
    chances: list[Any] = [*given, *[CERTAIN] * (slots - len(given))]
    for code, made, a, b, c in rows.tolist():
        one, two, three = chances[a], chances[b], chances[c] if c >= 0 else CERTAIN
        if code == SERIES:
            chances[made] = series(one, two, three)
            continue
        chances[made] = parallel(one, two)
        if code == BOTH:
            some = chances[made][0]
            (up_a, down_a), (up_b, down_b) = one, two
            mixed = up_a * down_b + down_a * up_b
            chances[made] = (up_a * up_b / some, mixed / some) if some else (0, 1)
    return chances
