"""Every number of the ledger that the models compute again, one module for each topic.

`registry` holds the decorators; the other modules hold claims only, 1–5 lines each.
"""

from relparallel.claims.registry import compute, find_claim, reproduces

__all__ = ["compute", "find_claim", "reproduces"]
