"""What all tests share: the same examples on every run, and figures without a display."""

import os
import sys

import pytest
from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _figures_closed():
    """Close what a test drew."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close("all")
