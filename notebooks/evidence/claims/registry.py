"""Claims: small functions that compute a number of the ledger again from its inputs.

Every module of this package has a table ``ROWS``: under patterns of row ids, separated by spaces,
stands the function that computes these rows. ``" | "`` and a pattern of the quantity may follow the
ids, and another of the system. A pair of function and mapping adds the rows that do not reproduce,
with the reason.

A function names its parameters after the keys of a row's inputs; `compute` binds them. It never
sees the published value unless it asks for the row itself through a parameter called ``fact``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from typing import Any, Final

from relparallel.published import Fact, Number

Function = Callable[..., Any]
Rows = Mapping[str, Function | tuple[Function, Mapping[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A function bound to the published rows whose id, system and quantity match its patterns."""

    # from inputs of a row to its value (or its tuple of values) in the row's unit
    function: Function
    ids: tuple[str, ...]  # patterns; one has to match
    system: str = "*"
    quantity: str = "*"
    # ids that do not reproduce, and why
    discrepancies: Mapping[str, str] = field(default_factory=dict)

    def covers(self, fact: Fact) -> bool:
        """Whether the row is one of this claim's."""
        named = any(fnmatchcase(fact.id, pattern) for pattern in self.ids)
        return (
            named
            and fnmatchcase(fact.system, self.system)
            and fnmatchcase(fact.quantity, self.quantity)
        )


_MODULES: Final[Mapping[str, str]] = {
    "comm-systems": "ordering parallelism partitions planners rounds schedules sharing transport",
    "models": "models",
    "network-reliability": "network_reliability",
    "parallelism-cost": "memory parallelism schedules",
    "topologies": "networks",
    "training-algos": "communication models sharing staleness transport",
    "training-reliability": "training_real training_reliability",
}
"""Which modules compute the rows of a table, so that whoever asks for a row loads no others."""


@cache
def claims(topic: str | None = None) -> tuple[Claim, ...]:
    """All claims, or those that compute rows of one table."""
    modules = " ".join(_MODULES.values()) if topic is None else _MODULES.get(topic, "")
    return tuple(claim for name in sorted(set(modules.split())) for claim in _read(name))


@cache
def _read(module: str) -> tuple[Claim, ...]:
    """The claims of one module, from its ``ROWS``."""
    rows: Rows = import_module(f"evidence.claims.{module}").ROWS
    return tuple(_claim(key, entry) for key, entry in rows.items())


def _claim(key: str, entry: Function | tuple[Function, Mapping[str, str]]) -> Claim:
    ids, quantity, system, *_ = [*key.split(" | "), "*", "*"]
    function, known = entry if isinstance(entry, tuple) else (entry, {})
    return Claim(
        function=function,
        ids=tuple(ids.split()),
        system=system,
        quantity=quantity,
        discrepancies=known,
    )


def find_claim(fact: Fact) -> Claim | None:
    """The claim that computes a row, if there is one.

    Parameters
    ----------
    fact : Fact
        The published row.

    Returns
    -------
    Claim or None
        None while no model computes the row.

    Examples
    --------
    >>> from relparallel.published import facts
    >>> find_claim(facts()["TOPO-001"]).covers(facts()["TOPO-001"])
    True
    """
    found = [claim for claim in claims(fact.topic) if claim.covers(fact)]
    if len(found) > 1:
        names = ", ".join(" ".join(claim.ids) for claim in found)
        raise ValueError(f"fact {fact.id} must have one claim, got {names}")
    return found[0] if found else None


def compute(claim: Claim, fact: Fact) -> tuple[Number | None, ...]:
    """Compute a row's values by its claim.

    Parameters
    ----------
    claim : Claim
        The claim that covers the row.
    fact : Fact
        The published row; its inputs give the arguments.

    Returns
    -------
    tuple
        Python numbers in the row's unit, None where the row is blank.

    Examples
    --------
    >>> from relparallel.published import facts
    >>> compute(find_claim(facts()["TOPO-001"]), facts()["TOPO-001"])
    (16,)
    """
    result = claim.function(**_arguments(claim.function, fact))
    values = result if isinstance(result, tuple) else (result,)
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def _arguments(function: Function, fact: Fact) -> dict[str, Any]:
    """The row's inputs under the names that the function asks for."""
    given: dict[str, Any] = {**fact.inputs, "fact": fact}
    bound = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in given:
            bound[name] = given[name]
        elif parameter.default is inspect.Parameter.empty:
            raise ValueError(
                f"fact {fact.id} must give the input {name!r}, got {fact.inputs_text!r}"
            )
    return bound
