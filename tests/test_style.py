"""Lint, format and types, as the configuration in pyproject.toml asks."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECKS = {
    "lint": ["ruff", "check", "--output-format=concise", "relparallel", "tests"],
    "format": ["ruff", "format", "--check", "relparallel", "tests"],
    "types": ["mypy", "--no-error-summary"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_style(check):
    done = subprocess.run([sys.executable, "-m", *CHECKS[check]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
