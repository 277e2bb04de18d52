"""What all tests share: the same examples on every run, and figures without a display."""

import gc
import os
import sys
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import settings

os.environ |= {"MPLBACKEND": "Agg", "RELPARALLEL_QUIET": "1"}
# As in notebooks: kernels for any processor, so that one cache serves both, and one thread in a
# process.
os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
os.environ |= {f"{library}_NUM_THREADS": "1" for library in ("MKL", "NUMBA", "OMP", "OPENBLAS")}
if not os.environ.get("RELPARALLEL_DATA"):
    os.environ.pop("RELPARALLEL_DATA", None)  # an empty name is no folder
# Where a test names no number, a property is tried on 25 examples; `make test-all` (profile ci)
# takes 100.
REPEATABLE = {"deadline": None, "derandomize": True, "print_blob": False}
settings.register_profile("dev", max_examples=25, **REPEATABLE)
settings.register_profile("ci", **REPEATABLE)
settings.load_profile("dev")

# Two workers begin with one half of the tests each. In the order of the files both would compile
# the same loops at the same time; so one begins with network reliability and the ledger, which
# compile most, the other with what takes longest of the rest. What compiles little ends both
# halves: idle workers take from there.
ROOT = Path(__file__).resolve().parents[1]
# Tests that read the whole ledger stand together: a process computes it once.
ONE = (
    "tests/reliability",
    "tests/evidence/test_ledger.py",
    "tests/evidence/theorems",
    "tests/evidence/test_systems.py",
    "tests/test_readme.py",
    "tests/test_atlas.py",
)
OTHER = (
    "tests/test_quick_notebooks.py",
    "tests/training",
    "tests/parallel",
    "tests/metrics",
    "tests/optimize",
    "tests/test_executors.py",
    "tests/reproduce",
    "tests/browser",
    "tests/benchmarks",
    "tests/evidence/test_derive.py",
)


def pytest_configure(config):
    """Forget kernels that were compiled from what has changed since."""
    if not hasattr(config, "workerinput"):
        from reproduce.compiling import drop_outdated

        drop_outdated()


gc.disable()  # while ten thousand tests are collected there is nothing to throw away


def pytest_collection_finish():
    """Search for garbage again, but not among the tests themselves."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    """Put the tests into an order that two workers can halve."""
    groups = [[] for _ in (*ONE, *OTHER, "others")]
    for item in items:
        path = item.path.relative_to(ROOT).as_posix()
        groups[
            next((i for i, start in enumerate(ONE + OTHER) if path.startswith(start)), -1)
        ].append(item)
    one, other = (list(chain(*part)) for part in (groups[: len(ONE)], groups[len(ONE) : -1]))
    filled = max((len(items) + 1) // 2 - len(one), 0)
    items[:] = one + groups[-1][:filled] + other + groups[-1][filled:]


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
    distributed = pytest.importorskip(
        "distributed", reason="the extra distributed is not installed"
    )
    folder = str(tmp_path_factory.mktemp("dask"))
    options = {"dashboard_address": "127.0.0.1:0", "local_directory": folder}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, **options
    ) as cluster:
        yield cluster
