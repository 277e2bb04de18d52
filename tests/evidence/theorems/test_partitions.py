"""Theorems on pipelines of operator graphs."""

from itertools import permutations

import numpy as np
from theorem_table import theorem

from chapters.s35.stage_order import DGX1_NVLINKS, stage_order


@theorem("THM-stage-order", system="stage order on NVLink and PCIe")
def test_stage_order_on_dgx1():
    """No order of 8 stages on a DGX-1 sends a sample in less time than that by sets of devices."""
    sizes, links = (
        np.array([8e6, 100e6, 30e6, 60e6, 10e6, 90e6, 20e6]),
        25e9 * np.array(DGX1_NVLINKS),
    )
    found = stage_order(links, sizes, pcie=12e9, latency=5e-6, pcie_latency=2e-5).value
    with np.errstate(divide="ignore"):
        one = 5e-6 + sizes[:, None, None] / links
    many = one
    for _ in range(2):
        many = np.minimum(many, (many[:, :, :, None] + one[:, None, :, :]).min(axis=2))
    times = np.minimum(many, 2e-5 + sizes[:, None, None] / 12e9)
    orders = np.array(list(permutations(range(8))))
    return found, float(times[np.arange(7), orders[:, :-1], orders[:, 1:]].sum(axis=1).min())
