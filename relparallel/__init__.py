"""Performance and reliability of large-model training under parallel strategies.

``import relparallel as rp`` is cheap: each subpackage loads when it is first used, as ``rp.topology``,
``rp.reliability`` and so on. From the lowest floor to the highest: `units`, `published`, `hardware`;
`topology`, `workload`; `metrics`, `parallel`; `reliability`, `communication`; `training`; `optimize`;
`claims`, `ledger`, `plotting`, `atlas`, `reproduce`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

_SUBPACKAGES = (
    "atlas",
    "claims",
    "communication",
    "derive",
    "drawing",
    "gantt",
    "hardware",
    "ledger",
    "metrics",
    "optimize",
    "parallel",
    "plotting",
    "published",
    "reliability",
    "reproduce",
    "sweep",
    "topology",
    "training",
    "units",
    "workload",
)

__all__ = ["__version__", *_SUBPACKAGES]


def __getattr__(name: str) -> ModuleType:
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
