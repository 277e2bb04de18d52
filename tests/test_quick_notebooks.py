"""Every notebook runs in quick mode, also with half and twice each number; its figures can be read."""

from pathlib import Path

import pytest

from notebook_cells import Cells
from reproduce.notebook import read
from reproduce.parameters import declared, ranges

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def cells(request):
    return Cells(read(request.param))


@pytest.mark.slow
def test_it_runs_in_quick_mode(cells, tmp_path, monkeypatch, capsys):
    """In this process, which holds what other tests compiled; the runner has tests of its own."""
    found = cells.run(tmp_path, monkeypatch).found
    assert {name: flaws for name, flaws in found.items() if flaws} == {}
    assert capsys.readouterr().err == ""
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == {".svg", ".pdf"}


@pytest.mark.slow
def test_it_survives_half_and_twice_each_number(cells, tmp_path, monkeypatch):
    """No error, no warning, nothing that is no number, no panel that collapses, no title cut off."""
    before = cells.run(tmp_path, monkeypatch)
    wrong = {}
    for name, value in second_values(cells.notebook):
        try:
            after = before.run(tmp_path, monkeypatch, **{name: value})
        except Exception as error:
            wrong[name, value] = f"{type(error).__name__}: {error}"
            continue
        cut = [flaw for flaws in after.found.values() for flaw in flaws if " over " not in flaw]
        if said := after.impossible(before) + cut:
            wrong[name, value] = "; ".join(said)
        assert after.said, f"no cell reads {name}"
    assert wrong == {}


def second_values(notebook) -> list[tuple[str, float]]:
    """Half and twice each number, where its range allows."""
    known = declared(notebook)
    return [
        (name, value)
        for name, (low, high) in ranges(notebook).items()
        for value in (
            (known[name] // 2, known[name] * 2)
            if isinstance(known[name], int)
            else (known[name] / 2, known[name] * 2)
        )
        if low <= value <= high and value != known[name]
    ]
