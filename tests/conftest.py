"""What all tests share: the same examples on every run, and figures without a display."""

import os
import sys

import pytest
from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"
# Tests compile for the processor that notebooks compile for: one cache of kernels serves both.
os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _figures_closed():
    """Close what a test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close("all")


@pytest.fixture(scope="session")
def dask_cluster(tmp_path_factory):
    """Two dask workers on this machine, each replaced when it dies."""
    distributed = pytest.importorskip("distributed", reason="the extra distributed is not installed")
    folder = str(tmp_path_factory.mktemp("dask"))
    options = {"dashboard_address": "127.0.0.1:0", "local_directory": folder}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster:
        yield cluster
