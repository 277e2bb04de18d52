"""Published loads of pipelines of operator graphs, from ``data/derived/partitions.csv``."""

from itertools import permutations
from typing import Final

import numpy as np
import pandas as pd

from relparallel.claims.registry import reproduces, theorem
from relparallel.optimize import DGX1_NVLINKS, stage_order
from relparallel.published import data_folder
from relparallel.units import MILLISECOND

_SYSTEM: Final = "Tarnawski*"
_WRONG_SOURCES: Final = (
    "The published program leaves out edges from sources that it lists by number, to do as PipeDream does; "
    "after colours are merged its numbers mean others: backward operator 37, the mask, has become 36. With "
    "37 left out 187.914 comes out; with the mask, 41.7458."
)
_ORDER: Final = (
    "The published program takes sources in the order of a hash table. Branches from the lowest number up "
    "give 414.740, from the highest down 416.204."
)


def _derived(graph: str, quantity: str) -> float:
    """A number of a graph, which must come from a proven plan where it is an optimum."""
    row = pd.read_csv(data_folder() / "derived" / "partitions.csv").set_index("graph").loc[graph]
    if quantity == "max_load" and str(row["proven"]) != "True":
        raise ValueError(f"graph must have a proven plan, got {graph!r}")
    return float(str(row[quantity]))


@reproduces("tar_dp_*", system=_SYSTEM)
def exact_load(graph: str) -> float:
    """Least largest load [ms], proven."""
    return _derived(graph, "max_load") / MILLISECOND


@reproduces("tar_ideals_*", system=_SYSTEM)
def number_of_ideals(graph: str) -> float:
    """Counted by the search."""
    return _derived(graph, "ideals")


@reproduces("tar_dpl_*", system=_SYSTEM)
def load_of_line(graph: str) -> float:
    """Largest load with the operators in one line [ms]."""
    return _derived(graph, "line") / MILLISECOND


@reproduces("tar_pd_*", system=_SYSTEM, discrepancies={"tar_pd_bert24_trn": _WRONG_SOURCES})
def load_of_blocks(graph: str) -> float:
    """Largest load where branches stay together [ms]."""
    return _derived(graph, "blocks") / MILLISECOND


@reproduces("tar_expert_*", system=_SYSTEM)
def load_of_experts(graph: str) -> float:
    """Largest load of a split by hand, priced again [ms]."""
    return _derived(graph, "experts") / MILLISECOND


@reproduces("tar_latgreedy_*", system=_SYSTEM, discrepancies={"tar_latgreedy_bert3op": _ORDER})
def greedy_latency(graph: str) -> float:
    """Time of a sample with accelerators filled one after the other [ms]."""
    return _derived(graph, "greedy_latency") / MILLISECOND


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
