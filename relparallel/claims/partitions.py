"""Published loads of pipelines of operator graphs, from ``data/derived/partitions.csv``."""

from itertools import permutations
from typing import Final

import numpy as np

from relparallel.book.s35.stage_order import DGX1_NVLINKS, stage_order
from relparallel.claims._rows import derived
from relparallel.claims.registry import reproduces, theorem
from relparallel.published import Fact
from relparallel.units import MILLISECOND

_COLUMNS: Final = {
    "dp": "max_load", "ideals": "ideals", "dpl": "line", "pd": "blocks", "expert": "experts",
    "latgreedy": "greedy_latency",
}  # fmt: skip
_WRONG_SOURCES: Final = (
    "The published program leaves out edges from sources that it lists by number, to do as PipeDream does; "
    "after colours are merged its numbers mean others: backward operator 37, the mask, has become 36. With "
    "37 left out 187.914 comes out; with the mask, 41.7458."
)
_ORDER: Final = (
    "The published program takes sources in the order of a hash table. Branches from the lowest number up "
    "give 414.740, from the highest down 416.204."
)


@reproduces(
    *(f"tar_{kind}_*" for kind in _COLUMNS),
    system="Tarnawski*",
    discrepancies={"tar_pd_bert24_trn": _WRONG_SOURCES, "tar_latgreedy_bert3op": _ORDER},
)
def plan_of_graph(graph: str, fact: Fact) -> float:
    """Number of ideals, or time [ms] of the plan that the row speaks of; an optimum must be proven."""
    row = derived("partitions").set_index("graph").loc[graph]
    column = _COLUMNS[fact.id.split("_")[1]]
    if column == "max_load" and str(row["proven"]) != "True":
        raise ValueError(f"graph must have a proven plan, got {graph!r}")
    value = float(str(row[column]))
    return value if column == "ideals" else value / MILLISECOND


@reproduces("chain_ilp_*")
def plan_of_chain(graph: str, fact: Fact) -> float:
    """Time [ms] of the proven plan by chains of ideals, with a stage on processors or without one."""
    row = derived("partitions").set_index("graph").loc[graph]
    return float(str(row["max_load" if "_cpu_" in fact.id else "no_cpu"])) / MILLISECOND


@theorem("THM-stage-order", system="stage order on NVLink and PCIe")
def stage_order_on_dgx1() -> tuple[float, float]:
    """No order of 8 stages on a DGX-1 sends a sample in less time than that by sets of devices."""
    sizes, links = np.array([8e6, 100e6, 30e6, 60e6, 10e6, 90e6, 20e6]), 25e9 * np.array(DGX1_NVLINKS)
    found = stage_order(links, sizes, pcie=12e9, latency=5e-6, pcie_latency=2e-5).value
    with np.errstate(divide="ignore"):
        one = 5e-6 + sizes[:, None, None] / links
    many = one
    for _ in range(2):
        many = np.minimum(many, (many[:, :, :, None] + one[:, None, :, :]).min(axis=2))
    times = np.minimum(many, 2e-5 + sizes[:, None, None] / 12e9)
    orders = np.array(list(permutations(range(8))))
    return found, float(times[np.arange(7), orders[:, :-1], orders[:, 1:]].sum(axis=1).min())
