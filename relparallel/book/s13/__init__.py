"""Notebook 13: systems with spares and repairmen as Markov chains, and parts that fail together."""

from relparallel.book.s13.markov_availability import (
    RepairedParts as RepairedParts,
    repair_chain as repair_chain,
)
