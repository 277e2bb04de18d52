"""From when to when a log was watched, and what it costs where that had to be guessed."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = (
    "begin= and finish= say from when to when was watched (since= and until= of a file)"
)
_LITTLE: Final = 1.05  # times too high in one log of twenty: not worth a word


def cost(failures: int, ends: int) -> str:
    """What it may cost that one end of the window, or both, was taken from the failures.

    Of n failures at random in a window of length T the first and the last one are T times a beta
    variable of n - 1 and 2 apart; the last one is T times one of n and 1 from its beginning. ""
    where there are so many that it hardly matters.
    """
    from scipy.special import betaincinv

    half, rare = 1 / betaincinv(failures + 1 - ends, ends, [0.5, 0.05])
    if rare < _LITTLE:
        return ""
    taken = "from the first failure to the last one" if ends > 1 else "to a failure at one end"
    return (
        f"the observation window is a guess, {taken}: of {failures} failures at random the rate is "
        f"{half:.3g} times too high in one log of two, {rare:.3g} times or more in one of twenty; "
        "since= and until= say it"
    )
