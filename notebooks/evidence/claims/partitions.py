"""Published loads of pipelines of operator graphs, from ``data/derived/partitions.csv``."""

from typing import Final

from evidence.claims._rows import derived
from evidence.claims.registry import Rows
from relparallel.published import Fact
from relparallel.units import MILLISECOND

_COLUMNS: Final = {
    "dp": "max_load",
    "ideals": "ideals",
    "dpl": "line",
    "pd": "blocks",
    "expert": "experts",
    "latgreedy": "greedy_latency",
}
_WRONG_SOURCES: Final = (
    "The published program leaves out edges from sources that it lists by number, to do as "
    "PipeDream does; "
    "after colours are merged its numbers mean others: backward operator 37, the mask, has become "
    "36. With "
    "37 left out 187.914 comes out; with the mask, 41.7458."
)
_ORDER: Final = (
    "The published program takes sources in the order of a hash table. Branches from the lowest "
    "number up "
    "give 414.740, from the highest down 416.204."
)


def plan_of_graph(graph: str, fact: Fact) -> float:
    """Number of ideals, or time [ms] of the plan the row speaks of; an optimum must be proven."""
    row = derived("partitions").set_index("graph").loc[graph]
    column = _COLUMNS[fact.id.split("_")[1]]
    if column == "max_load" and str(row["proven"]) != "True":
        raise ValueError(f"graph must have a proven plan, got {graph!r}")
    value = float(str(row[column]))
    return value if column == "ideals" else value / MILLISECOND


def plan_of_chain(graph: str, fact: Fact) -> float:
    """Time [ms] of the proven plan by chains of ideals, with or without a stage on processors."""
    row = derived("partitions").set_index("graph").loc[graph]
    return float(str(row["max_load" if "_cpu_" in fact.id else "no_cpu"])) / MILLISECOND


ROWS: Final[Rows] = {
    " ".join(f"tar_{kind}_*" for kind in _COLUMNS) + " | * | Tarnawski*": (
        plan_of_graph,
        {"tar_pd_bert24_trn": _WRONG_SOURCES, "tar_latgreedy_bert3op": _ORDER},
    ),
    "chain_ilp_*": plan_of_chain,
}
