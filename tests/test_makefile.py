"""The two commands of the README, without building anything."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OLD_PYTHON = f"""\
#!{sys.executable}
import sys
sys.version_info, sys.version = (3, 10, 4), "3.10.4 (an old one)"
exec(sys.argv[2])
"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path):
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("tables.py", "whatif.html"):
        (tmp_path / "docs" / name).touch()
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, env=quiet
    )


def test_an_old_python_is_refused_before_anything_is_built(checkout):
    old = checkout / "python3.10"
    old.write_text(OLD_PYTHON)
    old.chmod(0o755)
    done = make(checkout, "figures", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or later" in done.stderr
    assert "is 3.10.4" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("figures", "-m relparallel figures"),
        ("check", "--stale --dry-run"),
        ("test", '-m pytest --numprocesses 2 --dist worksteal -m "not slow"'),
        ("test-all", "--hypothesis-profile=ci"),
        ("mutants", "tests/mutants/run.py"),
        ("lab", "-m jupyterlab"),
        ("paper", "-m sphinx -W --keep-going -q -b latex"),
        ("bench", "tests/benchmarks/strategies.py"),
        ("site", "-m sphinx -W"),
    ],
)
def test_the_environment_is_built_once(checkout, target, told):
    planned = make(checkout, "--dry-run", target).stdout
    assert planned.index("-m venv") < planned.index("-r requirements.lock") < planned.index("-e .")
    assert told in planned
    assert ("-r requirements-dev.lock" in planned) == (target not in ("figures", "lab"))
    (checkout / ".venv").mkdir()
    for stamp in (".ready", ".tools"):
        (checkout / ".venv" / stamp).touch()
    assert "venv .venv" not in make(checkout, "--dry-run", target).stdout
    os.utime(checkout / "requirements.lock", (2e9, 2e9))
    assert "-r requirements.lock" in make(checkout, "--dry-run", target).stdout
