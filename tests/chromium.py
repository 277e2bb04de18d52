"""What drives a browser: Chromium, node and playwright-core, where this machine has them."""

import os
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "browser"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found(*names: str) -> str | None:
    return next((path for path in map(shutil.which, names) if path), None)


def missing() -> str | None:
    """What this machine lacks, or None."""
    if not found(*CHROMIUM):
        return "Chromium is not installed (apt-get install chromium)"
    if not found("node"):
        return "node is not installed (apt-get install nodejs npm)"
    if not (HERE / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not installed (npm install --prefix tests/browser)"
    return None


def browser() -> str:
    """Path of Chromium; skips where it cannot be driven, unless it is required to be."""
    if reason := missing():
        if os.environ.get("RELPARALLEL_BROWSER") == "required":
            pytest.fail(f"RELPARALLEL_BROWSER=required, but {reason}")
        pytest.skip(reason)
    return found(*CHROMIUM)
