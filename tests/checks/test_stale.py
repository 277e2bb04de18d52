"""A change makes stale the notebooks that read what was changed, and no others."""

from pathlib import Path

from reproduce.notebook import read
from reproduce.record import Project, Record

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
FILES = Project(root=ROOT).hashed()
WRONG = "see what notebooks/reproduce/record.py hashes, and noting.py notes as read"
CHANGED = "a module or a data file that it read has changed"


def reasons(changed: str = "") -> dict[str, str]:
    """Why notebooks are stale when one file is another or new."""
    project = Project(root=ROOT, sources=FILES | ({changed: "other"} if changed else {}))
    found = {notebook.name: project.reason(notebook, elsewhere=True) for notebook in NOTEBOOKS}
    return {name: reason for name, reason in found.items() if reason}


def newly_stale(changed: str) -> set[str]:
    return {name for name, reason in reasons(changed).items() if reason == CHANGED} - set(reasons())


def readers(path: str) -> set[str]:
    folder, _, name = path.rpartition("/")
    return {n.name for n in NOTEBOOKS if name in Record.of(n).read.get(folder, "").split()} - set(
        reasons()
    )


def test_every_notebook_has_a_record():
    assert [notebook.name for notebook in NOTEBOOKS if Record.of(notebook) is None] == [], (
        "run them: make figures ARGS=NN"
    )


def test_an_edit_of_a_leaf_makes_only_the_notebooks_stale_that_load_it():
    leaf = "notebooks/chapters/s36/compression.py"
    assert newly_stale(leaf) == readers(leaf), WRONG
    assert "36_communicating_less" in newly_stale(leaf) | set(reasons()), WRONG
    assert len(newly_stale(leaf)) < len(NOTEBOOKS) / 2, "a leaf is loaded by half of the notebooks"


def test_an_edit_of_what_all_load_makes_all_stale():
    for path in ("relparallel/__init__.py", "requirements.lock", "notebooks/reproduce/pins.py"):
        fresh = {n.name for n in NOTEBOOKS} - newly_stale(path) - set(reasons())
        assert fresh == set(), f"they do not see an edit of {path}: {WRONG}"


def test_data_that_nothing_read_make_nothing_stale():
    for path in ("data/new.csv", "notebooks/reproduce/runner.py", "requirements-dev.lock"):
        assert newly_stale(path) == set(), f"they need no run after an edit of {path}: {WRONG}"
    growth = newly_stale("data/growth.csv") | set(reasons())
    assert growth - set(reasons()) == readers("data/growth.csv"), WRONG


def test_a_new_table_makes_those_stale_that_list_its_folder():
    listing = {
        n.name for n in NOTEBOOKS if "*" in Record.of(n).read.get("data/published", "").split()
    }
    assert newly_stale("data/published/new.csv") == listing - set(reasons()), WRONG
