"""Strategies and their costs in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from relparallel.parallel._kernel import PARTS
from relparallel.parallel.grid import AXES
from relparallel.units import GB

if TYPE_CHECKING:
    import pandas as pd

PART_TIMES: Final = tuple(f"{part}_time" for part in PARTS)
"""Columns of tables with the parts of a step [s]; axes have some of the names of the parts."""

_SHOWN: Final = 4  # parts that a sentence names
_WORTH_TELLING: Final = 0.001  # of the step


def _fault(reason: str) -> str:
    """How a reason is told of a number of rows."""
    return {"feasible": "are feasible", "memory": "exceed the memory"}.get(reason, f"break '{reason}'")


def listed(counts: pd.Series, separator: str) -> str:
    """Numbers of rows by reason."""
    return separator.join(f"{number:,} {_fault(str(reason))}" for reason, number in counts.items())


def named(row: pd.Series, axes: Sequence[str]) -> str:
    """Values of some axes."""
    return ", ".join(f"{axis} {row[axis]}" for axis in axes)


def _largest(parts: pd.Series, step: float) -> list[tuple[str, float]]:
    """Parts of a step that are worth telling, the largest first."""
    told = parts[parts > _WORTH_TELLING * step].sort_values(ascending=False, kind="stable")
    return [(str(name).removesuffix("_time"), float(seconds)) for name, seconds in told.items()]


def broken_down(row: pd.Series) -> str:
    """What a step is made of."""
    parts = _largest(row[list(PART_TIMES)].astype(float), row["time"])
    return ", ".join(f"{name} {seconds:.3g} s ({seconds / row['time']:.1%})" for name, seconds in parts)


def compared(row: pd.Series, winner: pd.Series) -> str:
    """A strategy beside the winner: its costs, what it changes, and which parts of the step grow by it."""
    changed = [axis for axis in AXES if row[axis] != winner[axis]]
    if not changed:
        return "the best strategy has it"
    more = row[list(PART_TIMES)].astype(float) - winner[list(PART_TIMES)].astype(float)
    lost = [f"{seconds:+.3g} s {name}" for name, seconds in _largest(more, winner["time"])[:_SHOWN]]
    slower = row["time"] / winner["time"] - 1
    costs = f"{row['time']:.4g} s ({slower:+.1%}) and {row['memory'] / GB:.1f} GB"
    return f"{costs} with {named(row, changed)}" + (f"; {', '.join(lost)}" if lost else "")
