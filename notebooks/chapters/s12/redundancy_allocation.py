"""Redundancy allocation: which parts, and how many, make a series of subsystems most reliable."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from chapters.s12._multiple_choice import Options, by_programme, by_table, multisets
from relparallel._checks import Result, require_choice, require_probability, require_real


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RedundancyAllocation(Result):
    """The most reliable system within the limits, proven so."""

    # rows of the table for each subsystem, as often as they are bought
    parts: tuple[tuple[int, ...], ...]
    reliability: float
    unreliability: float  # its own sum
    used: Mapping[str, float]  # amount of every resource
    limits: Mapping[str, float]
    # multisets that no other of the subsystem dominates: binary variables of the programme
    options: int
    method: str
    subsystems: tuple[Hashable, ...] = ()  # their names; 1, 2, ... where omitted

    @property
    def formulation(self) -> str:
        """The programme that was solved."""
        rows = "\n".join(
            f"            sum_io a_io,{r} x_io <= {b:g}" for r, b in self.limits.items()
        )
        return (
            "maximise    sum_io log(1 - q_io) x_io\n"
            f"subject to  sum_o x_io = 1           for each of the {len(self.parts)} subsystems i\n"
            f"{rows}\n            x_io in {{0, 1}}           ({self.options} undominated multisets o)"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row per subsystem: how many parts, and which rows of the component table."""
        counts = [len(bought) for bought in self.parts]
        index = pd.Index(self.subsystems or range(1, len(counts) + 1), name="subsystem")
        return pd.DataFrame(
            {"parts": counts, "rows": [list(bought) for bought in self.parts]}, index=index
        )

    def _said(self) -> str:
        spent = ", ".join(
            f"{resource} {amount:g} of {self.limits[resource]:g}"
            for resource, amount in self.used.items()
        )
        return f"U = {self.unreliability:.6g}, proven by {self.method}; {spent}"


def redundancy_allocation(
    components: pd.DataFrame,
    cost_limit: float | None = None,
    weight_limit: float | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    needed: int | Sequence[int] = 1,
    most: int = 8,
    method: str = "table",
) -> RedundancyAllocation:
    """Parts, freely mixed, for the most reliable series of k-out-of-n subsystems within the limits.

    ``components`` has a row per part that can be bought, with columns subsystem, reliability and
    one per resource; ``limits`` are of any resource by column. A subsystem needs ``needed`` working
    parts k, of all or of each in the order of the table, and holds at ``most`` so many parts; where
    one has as many, a larger number may find better. ``method``: dynamic programme over whole
    amounts ("table"), or mixed-integer programme over any amounts ("milp").

    Parts are active and fail independently, so log R = sum_i log(1 - q_i): one multiple choice with
    as many knapsack rows as resources. q of a k-out-of-n multiset is a lower tail of a Poisson
    binomial distribution, a sum of positive terms. Multisets that cost at least as much of
    everything as a better one are left out. Table: O(cells x multisets). HiGHS runs to gap 0 as the
    second route to every answer.

    Fyffe, Hines and Lee, "System reliability allocation and a computational algorithm", IEEE
    Transactions on Reliability 17, 1968. Nakagawa and Miyazaki, IEEE Transactions on Reliability
    30, 1981. Coit and Smith, "Reliability optimization of series-parallel systems using a genetic
    algorithm", same 45, 1996.

    >>> from chapters.s12 import component_table
    >>> table = component_table("fyffe")
    >>> best = redundancy_allocation(table, cost_limit=130, weight_limit=191)
    >>> print(f"{best.reliability:.9f}")
    0.986811016
    """
    (answer,) = redundancy_allocations(
        components, cost_limit, weight_limit, limits=limits, needed=needed, most=most, method=method
    )
    return answer


def redundancy_allocations(
    components: pd.DataFrame,
    cost_limit: ArrayLike | None = None,
    weight_limit: ArrayLike | None = None,
    *,
    limits: Mapping[str, ArrayLike] | None = None,
    needed: int | Sequence[int] = 1,
    most: int = 8,
    method: str = "table",
) -> tuple[RedundancyAllocation, ...]:
    """Many limits, which broadcast, from one table: the frontier of reliability against budget.

    As `redundancy_allocation`, which answers one; "milp" solves each limit alone.

    >>> from chapters.s12 import component_table
    >>> table = component_table("fyffe")
    >>> found = redundancy_allocations(table, cost_limit=130, weight_limit=[159, 170, 191])
    >>> [f"{best.reliability:.5f}" for best in found]
    ['0.95456', '0.97076', '0.98681']
    """
    bounds = _limits(cost_limit, weight_limit, limits)
    require_choice(("table", "milp"), method=method)
    subsystems = _subsystems(components, tuple(bounds))
    every = [needed] * len(subsystems) if isinstance(needed, int) else needed
    choices = [
        multisets(parts, k, most) for parts, k in zip(subsystems.values(), every, strict=True)
    ]
    amounts = np.stack(list(bounds.values()), axis=1)
    options = [options for options, _ in choices]
    solve = by_table if method == "table" else by_programme
    picks = solve(options, amounts, tuple(bounds))
    return tuple(
        _answer(subsystems, choices, pick, dict(zip(bounds, row, strict=True)), method)
        for pick, row in zip(picks, amounts.tolist(), strict=True)
    )


def _limits(cost: Any, weight: Any, others: Any) -> dict[str, NDArray[np.float64]]:
    """All limits by resource, as arrays of one length."""
    given = {r: value for r, value in (("cost", cost), ("weight", weight)) if value is not None}
    if twice := set(given) & set(others or {}):
        raise ValueError(f"limits must not limit {twice.pop()} twice")
    given |= others or {}
    checked = [np.atleast_1d(require_real(limits=value, at_least=0)) for value in given.values()]
    return dict(zip(given, np.broadcast_arrays(*checked), strict=True))


def _subsystems(
    components: Any, resources: tuple[str, ...]
) -> dict[Any, tuple[tuple[float, ...], ...]]:
    """Parts of every subsystem in table order: row, reliability, and amount of each resource."""
    numbers = components[["reliability", *resources]].to_numpy()
    require_probability(components=numbers[:, 0])
    require_real(components=numbers[:, 1:], at_least=0)
    found: dict[Any, list[tuple[float, ...]]] = {}
    for row, (label, values) in enumerate(
        zip(components["subsystem"], numbers.tolist(), strict=True)
    ):
        found.setdefault(label, []).append((row, *values))
    return {label: tuple(parts) for label, parts in found.items()}


def _answer(
    subsystems: Mapping[Any, tuple[tuple[float, ...], ...]],
    choices: Sequence[tuple[Options, NDArray[np.int64]]],
    pick: Sequence[int],
    limits: Mapping[str, float],
    method: str,
) -> RedundancyAllocation:
    """What was chosen, and what it is worth."""
    counts = [held[o] for (_, held), o in zip(choices, pick, strict=True)]
    parts = tuple(
        tuple(
            int(part[0])
            for part, times in zip(of, held.tolist(), strict=True)
            for _ in range(times)
        )
        for of, held in zip(subsystems.values(), counts, strict=True)
    )
    used = sum(options.use[o] for (options, _), o in zip(choices, pick, strict=True))
    log_up = math.fsum(
        float(options.gain[o]) for (options, _), o in zip(choices, pick, strict=True)
    )
    return RedundancyAllocation(
        parts=parts,
        reliability=math.exp(log_up),
        unreliability=-math.expm1(log_up),
        used=dict(zip(limits, np.asarray(used).tolist(), strict=True)),
        limits=limits,
        options=sum(options.gain.size for options, _ in choices),
        method=method,
        subsystems=tuple(subsystems),
    )
