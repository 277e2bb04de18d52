"""The probability that a network works: exact, sampled or in closed form, and always beside its complement.

Names load when they are first used: the closed forms need neither the compiler nor networkx.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relparallel.reliability.closed_forms import fat_tree_edge_pair_connected, fat_tree_pods_connected
    from relparallel.reliability.exact import evaluate
    from relparallel.reliability.result import Reliability
    from relparallel.reliability.steady_state import availability, unavailability

__all__ = [
    "Reliability",
    "availability",
    "evaluate",
    "fat_tree_edge_pair_connected",
    "fat_tree_pods_connected",
    "unavailability",
]

_MODULES = {
    "Reliability": "result",
    "availability": "steady_state",
    "evaluate": "exact",
    "fat_tree_edge_pair_connected": "closed_forms",
    "fat_tree_pods_connected": "closed_forms",
    "unavailability": "steady_state",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
