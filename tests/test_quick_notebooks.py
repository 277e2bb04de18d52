"""Every notebook runs in quick mode, and its figures can be read."""

from pathlib import Path

import pytest

from notebook_cells import run_quickly
from reproduce.notebook import read

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_in_quick_mode(path, tmp_path, monkeypatch, capsys):
    """In this process, which holds what other tests compiled; the runner has tests of its own."""
    found = run_quickly(read(path), tmp_path, monkeypatch)
    assert {name: flaws for name, flaws in found.items() if flaws} == {}
    assert capsys.readouterr().err == ""
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == {".svg", ".pdf"}
