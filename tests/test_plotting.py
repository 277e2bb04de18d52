"""Figures have the asked size and the same bytes on every run, and go where they belong."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from relparallel import plotting


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RELPARALLEL_FIGURES", str(tmp_path))
    return tmp_path


def drawn(noise: float = 0.0):
    fig, ax = plotting.figure(width="single", height=2.0)
    x = np.linspace(0.1, 3, 50)
    (line,) = ax.plot(x, np.sin(x) * (1 + noise))
    ax.fill_between(x, np.sin(x) * (1 + noise), alpha=0.2)
    ax.scatter(x[::10], np.cos(x[::10]) * (1 + noise))
    plotting.label_line(ax, line, r"$\sin x$")
    plotting.mark(ax, np.pi / 2, 1.0, "maximum")
    return fig


def saved(folder, noise: float = 0.0) -> dict[str, bytes]:
    plotting.save(drawn(noise), "11-sine")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_save_writes_svg_and_pdf_and_nothing_else(folder):
    assert set(saved(folder)) == {"11-sine.svg", "11-sine.pdf"}


def test_two_runs_write_the_same_bytes(folder):
    assert saved(folder) == saved(folder)


def test_last_bits_of_the_data_do_not_reach_the_file(folder):
    assert saved(folder) == saved(folder, noise=2e-15)


def test_a_visible_change_of_the_data_reaches_the_file(folder):
    assert saved(folder)["11-sine.svg"] != saved(folder, noise=1e-3)["11-sine.svg"]


def test_sizes_are_those_of_paper_columns():
    fig, axes = plotting.figure(width="double", height=3.0, rows=2, columns=3)
    assert fig.get_size_inches().tolist() == [7.0, 3.0]
    assert axes.shape == (2, 3)


def test_colours_are_distinct_also_in_grey():
    def luminance(c):
        return float(np.dot([0.2126, 0.7152, 0.0722], to_rgb(c)))

    values = sorted(luminance(c) for c in plotting.PALETTE.values())
    assert len(set(plotting.PALETTE.values())) == len(plotting.PALETTE)
    assert max(values) - min(values) > 0.6


@pytest.mark.parametrize("name", ["Sine", "a b", "../a", "a.svg", "", "-a"])
def test_a_name_that_is_no_plain_file_name_is_refused(folder, name):
    with pytest.raises(ValueError, match="name must be lower-case letters"):
        plotting.save(drawn(), name)


def test_sizes_and_types_are_checked():
    with pytest.raises(ValueError, match="width must be one of 'single', 'double', got 'wide'"):
        plotting.figure(width="wide")
    with pytest.raises(ValueError, match="height must be a number > 0, got -1"):
        plotting.figure(height=-1)
    with pytest.raises(TypeError, match="fig must be Figure, got None"):
        plotting.save(None, "a")


ROOT = Path(plotting.__file__).resolve().parents[1]
NOTEBOOK = ROOT / "notebooks" / "43_reliability_of_strategies.ipynb"


@pytest.fixture
def by_hand(monkeypatch):
    monkeypatch.delenv("RELPARALLEL_FIGURES", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


@pytest.mark.slow
def test_papermill_on_a_copy_elsewhere_leaves_the_figures_of_the_collection_alone(
    tmp_path, by_hand
):
    import papermill

    cells = [
        "days = 1.0",
        "from relparallel.plotting import figure, save\n"
        "for name in ('99-elsewhere', '99-again'):\n"
        "    fig, ax = figure()\n"
        "    ax.plot([0, days], [0, 1])\n"
        "    save(fig, name)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(book, tmp_path / "in.ipynb")
    done = papermill.execute_notebook(
        str(tmp_path / "in.ipynb"),
        str(tmp_path / "out.ipynb"),
        parameters={"days": 3.0},
        kernel_name="python3",
        language="python",
        progress_bar=False,
        cwd=str(tmp_path),
    )
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {f"99-{n}.{end}" for n in ("elsewhere", "again") for end in ("svg", "pdf")}
    assert not list((ROOT / "figures").glob("99-*"))
    said = [out["text"] for out in done.cells[-1].outputs if out.get("name") == "stderr"]
    assert "".join(said).count(f"figures of this run go to {tmp_path / 'figures'}") == 1


@pytest.mark.parametrize("folder", ["", "notebooks"])
def test_a_run_by_hand_inside_the_checkout_writes_where_git_does_not_look(
    folder, by_hand, monkeypatch
):
    monkeypatch.chdir(ROOT / folder)
    with pytest.warns(UserWarning, match="figures of this run go to .*relparallel.figures"):
        assert plotting._figures_folder() == ROOT / ".relparallel" / "figures"
    assert ".relparallel/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def source(book: dict, count: int) -> list[str]:
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    return ["", *("".join(cell["source"]) for cell in code[:count])]


@pytest.mark.parametrize(
    ("session", "change", "collection"),
    [
        (NOTEBOOK, (), True),
        (NOTEBOOK, ("mttr_hours = 6.0",), False),
        ("copy.ipynb", (), False),
        ("gone.ipynb", (), False),
    ],
)
def test_jupyterlab_writes_those_of_the_collection_from_a_notebook_as_it_is_stored(
    session, change, collection, by_hand, monkeypatch, tmp_path
):
    (tmp_path / "copy.ipynb").write_text(NOTEBOOK.read_text("utf-8"), "utf-8")
    ran = [*source(json.loads(NOTEBOOK.read_text("utf-8")), 3), *change]
    shell = SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=ran))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / session))
    monkeypatch.chdir(tmp_path)
    if collection:
        assert plotting._figures_folder() == ROOT / "figures"
    else:
        with pytest.warns(UserWarning, match="relparallel figures"):
            assert plotting._figures_folder() == tmp_path / "figures"
