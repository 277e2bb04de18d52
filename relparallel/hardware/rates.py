"""How often each kind of part interrupts a job: the failure table of one published run.

What broke, how often, how many such parts there were, and how long they were watched. Counts are
kept, never printed percentages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from relparallel._checks import (
    choice,
    each,
    instance,
    real,
    record,
    require_choice,
    whole,
)
from relparallel.hardware.machines import LEVELS, Cluster
from relparallel.published import Fact, facts
from relparallel.units import DAY

if TYPE_CHECKING:
    import pandas as pd

# The published table names a category for every cause; this is the part that has to be repaired.
_LEVEL_OF: Final = {
    "GPU": "gpu",
    "host": "node",
    "maintenance": "node",
    "network": "switch",
    "dependency": "job",
    "unknown": "job",
}


@record
class ComponentRate:
    """How often one cause interrupted a run.

    Parameters
    ----------
    cause, category : str
        As the table names them.
    level : {"gpu", "tray", "node", "nvlink", "switch", "rack", "job"}
        The part that failed.
    events, components : int
        Interruptions counted, and parts of that level in the run.
    duration : float
        Length of the run [s].
    """

    cause: str = instance(str)
    category: str = instance(str)
    level: str = choice(LEVELS)
    events: int = whole(at_least=0, at_most=10**15)
    components: int = whole(at_least=1, at_most=10**15)
    duration: float = real(at_least=1e-9, at_most=1e18)

    @property
    def rate(self) -> float:
        """Interruptions per part and second: the likeliest rate of exponential lives."""
        return self.events / (self.components * self.duration)


@record
class ComponentRates:
    """The failure table of one run.

    Parameters
    ----------
    source : str
        Where the table is published.
    causes : tuple of ComponentRate
        One entry for each cause.
    gpus_per_node, gpus : int, optional
        Of the run: GPUs of a node, which is a host, and of the whole job. With them the rates are
        carried over per GPU (`carried`); where omitted, those of nodes and of the job stay as they
        are given.

    Examples
    --------
    >>> from dataclasses import replace
    >>> table = llama3_interruptions()
    >>> table.events, round(table.share(category="GPU"), 4)
    (419, 0.6396)
    >>> tray = ComponentRate(  # own counts: no rate of NVLink switch trays is published
    ...     cause="NVLink switch tray", category="NVLink", level="nvlink",
    ...     events=3, components=576, duration=8e6,
    ... )
    >>> replace(table, causes=(*table.causes, tray)).events
    422
    """

    source: str = instance(str)
    causes: tuple[ComponentRate, ...] = each(ComponentRate)
    gpus_per_node: int | None = whole(at_least=1, at_most=10**4, default=None)
    gpus: int | None = whole(at_least=1, at_most=10**10, default=None)

    def carried(self, row: ComponentRate, cluster: Cluster) -> tuple[str, float]:
        """Return a cause's level on another cluster, its rate per part [1/s]; per GPU it is kept.

        A part with twice the GPUs behind it fails twice as often: a host (tray or node), what a
        node has of the network and the rack, and the job as a whole. Where the run's GPUs are not
        known, and for GPUs and NVLink switch trays, the rate stays.
        """
        level, width, known = row.level, 1, self.gpus if row.level == "job" else self.gpus_per_node
        if row.level == "node" and cluster.tray < cluster.gpus_per_node:
            level = "tray"
        if row.level not in ("gpu", "nvlink") and known:
            width = {"tray": cluster.tray, "job": cluster.gpus}.get(level, cluster.gpus_per_node)
            return level, row.rate * (width / known)
        return level, row.rate

    @property
    def events(self) -> int:
        """Interruptions of all causes."""
        return sum(cause.events for cause in self.causes)

    def share(self, *, category: str | None = None, cause: str | None = None) -> float:
        """Return the share of all interruptions that a category or a single cause accounts for."""
        if (category is None) == (cause is None):
            raise ValueError(
                f"category or cause must be given, got category={category!r}, cause={cause!r}"
            )
        if cause is not None:
            require_choice(tuple(row.cause for row in self.causes), cause=cause)
            return sum(row.events for row in self.causes if row.cause == cause) / self.events
        require_choice(tuple(row.category for row in self.causes), category=category)
        return sum(row.events for row in self.causes if row.category == category) / self.events

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cause: category, level, count, share, and rate per part and year."""
        import pandas as pd

        return pd.DataFrame(
            {
                "cause": [row.cause for row in self.causes],
                "category": [row.category for row in self.causes],
                "part": [row.level for row in self.causes],
                "events": [row.events for row in self.causes],
                "share": [row.events / self.events for row in self.causes],
                "per part-year": [row.rate * 365 * DAY for row in self.causes],
            }
        )


def llama3_interruptions(nodes_per_switch: int = 1) -> ComponentRates:
    """Unexpected interruptions of Llama-3 405B's run: 18 causes, 419 events, 54 days, 2,048 nodes.

    Parameters
    ----------
    nodes_per_switch : int
        Nodes that one "network switch/cable" event stops; the table does not say. Divides 2,048.

    Returns
    -------
    ComponentRates
        Causes filed under "dependency" and "unknown" are those of the job itself. Llama Team, "The
        Llama 3 Herd of Models", arXiv:2407.21783, table 5.

    Examples
    --------
    >>> [(row.cause, row.events) for row in llama3_interruptions().causes[:2]]
    [('Faulty GPU', 148), ('GPU HBM3 memory', 72)]
    """
    rows = facts("training-reliability")
    run = rows["L3-001"].inputs
    cluster = Cluster(nodes=int(run["nodes"]), nodes_per_switch=nodes_per_switch)
    causes = tuple(
        _cause(rows[f"L3-{number:03d}"], cluster, float(run["time"])) for number in range(10, 28)
    )
    return ComponentRates(
        source=rows["L3-010"].source,
        causes=causes,
        gpus_per_node=cluster.gpus_per_node,
        gpus=cluster.gpus,
    )


def _cause(fact: Fact, cluster: Cluster, duration: float) -> ComponentRate:
    """One row of the table; its quantity ends in "cause (category)"."""
    cause, _, category = fact.quantity.removeprefix("unexpected interruptions: ").rpartition(" ")
    level = _LEVEL_OF[category.strip("()")]
    return ComponentRate(
        cause=cause,
        category=category.strip("()"),
        level=level,
        events=int(fact.value_text),
        components=cluster.parts(level),
        duration=duration,
    )
