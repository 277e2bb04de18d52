"""Valid calls of repaired parts, common causes and performability; see `valid_calls`."""

from collections.abc import Callable

from scipy.sparse import csr_array

import relparallel as rp
from valid_workload import Arguments

R = rp.reliability


CALLS: dict[str, Callable[[], Arguments]] = {
    "reliability.stationary_distribution": lambda: {
        "generator": csr_array([[0.0, 1.0], [3.0, 0.0]])
    },
}
MEANINGFUL: dict[str, dict[str, set[str]]] = {}
