"""The cheapest fabric of a catalogue whose hosts reach an availability, and why others fail it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from chapters.s12._fabric_index import REQUIREMENTS, index_bracket
from chapters.s12.equipment import equipped
from relparallel._checks import Result, require_choice, require_number
from relparallel.topology import as_topology, bill_of_materials, unit_prices

FORMULATION: Final = """minimise    cost(f)                      over the {designs} fabrics f of the catalogue
subject to  hosts(f) >= {hosts},  u(f) <= {unavailability:g}
where       u(f) is the probability that {meaning}"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FabricChoice(Result):
    """Every fabric with its price and bracket, and the cheapest that is good enough for certain.

    ``table`` has a row per fabric by cost: hosts, cost [USD], cost per host, lower, upper (bracket
    of u; NaN where a fabric is too small).
    """

    table: pd.DataFrame
    hosts: int
    unavailability: float
    requirement: str = "pair"

    @property
    def verdicts(self) -> pd.Series[str]:
        """What is said of every fabric, in the order of cost."""
        large = (self.table["hosts"] >= self.hosts).to_numpy()
        good = large & (self.table["upper"] <= self.unavailability).to_numpy()
        bad = (self.table["lower"] > self.unavailability).to_numpy()
        words = ["too few hosts", "good enough, more expensive", "fails too often"]
        said = np.select([~large, good, bad], words, "not decided").astype(object)
        said[np.flatnonzero(good)[:1]] = "chosen"
        return pd.Series(said, index=self.table.index, name="verdict", dtype=object)

    @property
    def name(self) -> str | None:
        """The cheapest fabric that is good enough; None where none is."""
        said = self.verdicts
        return next((str(name) for name in said.index[said == "chosen"]), None)

    @property
    def proven(self) -> bool:
        """Whether every cheaper fabric is certain to be too small or too bad."""
        said = self.verdicts.tolist()
        before = said[: said.index("chosen")] if "chosen" in said else said
        return "not decided" not in before

    @property
    def formulation(self) -> str:
        """The programme that was solved by enumeration."""
        return FORMULATION.format(
            designs=len(self.table),
            hosts=self.hosts,
            unavailability=self.unavailability,
            meaning=REQUIREMENTS[self.requirement].format(hosts=self.hosts),
        )

    def at(self, unavailability: float) -> FabricChoice:
        """Choose again for another requirement, without computing anything again."""
        return replace(self, unavailability=unavailability)

    def to_frame(self) -> pd.DataFrame:
        """Return the table with the verdicts."""
        return self.table.assign(verdict=self.verdicts)

    def _said(self) -> str:
        chosen = (
            f"{self.name}, {'proven' if self.proven else 'not proven'}"
            if self.name
            else "no fabric"
        )
        return f"u of {self.requirement} at most {self.unavailability:g}: {chosen}"


def cheapest_fabric(
    catalogue: Mapping[str, Any],
    hosts: int,
    unavailability: float,
    requirement: str = "pair",
    *,
    mttr: float | Mapping[str, float] | None = None,
) -> FabricChoice:
    """The cheapest of some fabrics in which ``hosts`` hosts can reach each other often enough.

    ``unavailability`` is the largest admitted u: by ``requirement`` the probability that the worst
    "pair" of hosts cannot communicate; that the first N hosts cannot all do ("job"); that "all"
    hosts of the fabric cannot; or the expected "share" of the other hosts that a host cannot reach.
    The hosts in question are up; switches, cables and other hosts fail, and are repaired after
    ``mttr`` as in `equipped`.

    Enumeration. u lies in a certified bracket: what stands in series with the hosts is exact, the
    rest is a union of likely cuts (see `relparallel.reliability.bounds`), usually known to 1 % or
    better. Pairs are looked at once per class of proved symmetry. Any path counts, but hosts
    forward only where the design says so: hosts with a cable in each of two planes cannot join one
    host that lost the first plane and one that lost the second. Where brackets do not decide, the
    verdict is "not decided" and ``proven`` is False.

    >>> import relparallel as rp
    >>> catalogue = {f"{s} spines": rp.topology.leaf_spine(4, s, 4) for s in (1, 2)}
    >>> choice = cheapest_fabric(catalogue, hosts=16, unavailability=2e-5)
    >>> choice.name, choice.proven
    ('2 spines', True)
    """
    require_number(unavailability=unavailability, above=0, below=1)
    require_choice(tuple(REQUIREMENTS), requirement=requirement)
    rows = {name: _row(given, hosts, requirement, mttr) for name, given in catalogue.items()}
    columns = ["hosts", "cost", "cost per host", "lower", "upper"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("fabric")
    table = table.sort_values("cost", kind="stable")
    return FabricChoice(
        table=table, hosts=hosts, unavailability=unavailability, requirement=requirement
    )


def _row(given: Any, hosts: int, requirement: str, mttr: Any) -> tuple[float, ...]:
    """Hosts, cost, cost per host and bracket of one fabric."""
    fabric = as_topology(given, name="catalogue")
    cost = bill_of_materials(fabric, prices=unit_prices("ndr2024")).cost
    bracket = (np.nan, np.nan)
    if fabric.num_hosts >= hosts:
        bracket = index_bracket(equipped(fabric, mttr=mttr), requirement, hosts)
    return fabric.num_hosts, cost, cost / fabric.num_hosts, *bracket
