"""Stragglers, optical switching and degraded networks: rows of ``training-reliability``."""

from relparallel.book import s44
from relparallel.book.s44.stragglers import expected_maximum
from relparallel.claims.registry import reproduces
from relparallel.published import Fact


@reproduces("STR-*", system="straggler, *")
def largest_of_draws(fact: Fact, n: int) -> float:
    """Expected largest of n standard normal draws, or of n exponential ones of mean 1."""
    return expected_maximum(n, "exponential" if "exponential" in fact.system else "normal")


@reproduces("OCS-001", "OCS-002")
def usable_share_of_a_pod(n: int, h: float) -> float:
    """Share of the cubes of a pod in whole slices, any cubes joined by optical switches."""
    return s44.usable_fraction(n, h)
