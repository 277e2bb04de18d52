"""What is run, what is skipped, and what is stored; without kernels."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relparallel.__main__ import main
from reproduce import NotebookError, RunnerBusyError, record, run_figures
from reproduce.notebook import read

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def two(toy):
    toy.write("41_first", "print(1)")
    toy.write("42_second", "print(2)", parameters="mttr_hours = 24.0\nquick = False")
    return toy


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_what_is_unchanged_is_skipped(two, pretend):
    assert two.run(pool=pretend.pool).done == ["41_first", "42_second"]
    before = two.files()
    report = two.run(pool=pretend.pool)
    assert (report.done, report.current, report.exit_code) == ([], ("41_first", "42_second"), 0)
    assert two.files() == before
    assert two.lines.startswith("notebooks: 2 up to date")


CHANGES = {
    "code": lambda root: edit(root / "notebooks/42_second.ipynb", "print(2)", "print(3)"),
    "a default": lambda root: edit(root / "notebooks/42_second.ipynb", "24.0", "12.0"),
    "an output": lambda root: edit(root / "notebooks/42_second.ipynb", '"42"', '"41"'),
    "the stored form": lambda root: edit(
        root / "notebooks/42_second.ipynb", '"nbformat": 4,\n', '"nbformat": 4,'
    ),
    "a figure": lambda root: (root / "figures/42_second.svg").write_text("41"),
    "a figure's loss": lambda root: (root / "figures/42_second.svg").unlink(),
    "the record's loss": lambda root: edit(
        root / "notebooks/42_second.ipynb", '"relparallel": {', '"other": {'
    ),
    "half a record": lambda root: edit(
        root / "notebooks/42_second.ipynb", '"figures": [', '"figure": ['
    ),
    "a record of nonsense": lambda root: edit(
        root / "notebooks/42_second.ipynb", '"facts.csv"', '["facts.csv"]'
    ),
    "a record of another version": lambda root: edit(
        root / "notebooks/42_second.ipynb", '"version": 1', '"version": 0'
    ),
    "a run elsewhere": lambda root: (root / ".relparallel/records/42_second.json").unlink(),
    "half a note of the run here": lambda root: (
        root / ".relparallel/records/42_second.json"
    ).write_text('{"record":'),
    "a module that only this one read": lambda root: (root / "relparallel/second.py").write_text(
        "y = 2\n"
    ),
    "a new file in a folder that it lists": lambda root: (root / "data/listed/new.csv").write_text(
        "a\n"
    ),
}
HERE = ("a run elsewhere", "half a note of the run here")


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_one_notebook_makes_that_one_stale(two, pretend, change):
    (two.root / "data/listed").mkdir()
    (two.root / "relparallel/second.py").write_text("y = 1\n")
    pretend.read["42_second"] = ("relparallel/second.py", "data/listed/")
    two.run(pool=pretend.pool)
    CHANGES[change](two.root)
    assert list(two.run(stale=True, dry_run=True).stale) == ["42_second"] * (change not in HERE)
    assert two.run(pool=pretend.pool).done == ["42_second"]
    assert two.run(pool=pretend.pool).done == []
    assert (two.root / "figures/42_second.svg").read_text() == "42"


@pytest.mark.parametrize("file", ["relparallel/module.py", "data/facts.csv", "requirements.lock"])
def test_a_change_of_what_all_read_or_of_versions_makes_all_stale(two, pretend, file):
    two.run(pool=pretend.pool)
    (two.root / file).write_text("changed\n")
    assert list(two.run(stale=True, dry_run=True).stale) == ["41_first", "42_second"]
    assert two.run(pool=pretend.pool).done == ["41_first", "42_second"]


@pytest.mark.parametrize(
    "file", ["relparallel/deep/new.py", "data/new.csv", "notebooks/reproduce/runner.py"]
)
def test_what_no_notebook_read_makes_none_stale(two, pretend, file):
    two.run(pool=pretend.pool)
    (two.root / file).parent.mkdir(exist_ok=True)
    (two.root / file).write_text("changed\n")
    assert two.run(pool=pretend.pool).done == []


def test_a_clone_runs_everything_unless_it_trusts_the_records(two, pretend):
    two.run(pool=pretend.pool)
    shutil.rmtree(two.root / ".relparallel")
    before = two.files()
    assert two.run(pool=pretend.pool, stale=True).current == ("41_first", "42_second")
    assert two.run(pool=pretend.pool).done == ["41_first", "42_second"]
    assert two.results() == {name: data for name, data in before.items() if name in two.results()}


def test_a_copy_under_another_name_was_never_run(two, pretend):
    two.run(pool=pretend.pool)
    shutil.copy(two.root / "notebooks/42_second.ipynb", two.root / "notebooks/43_copy.ipynb")
    assert two.run(stale=True, dry_run=True).stale == {"43_copy": "its code is not what was run"}
    figure = two.files("figures")["figures/42_second.svg"]
    assert two.run(pool=pretend.pool).done == ["43_copy"]
    assert two.files("figures")["figures/42_second.svg"] == figure, "it is not the copy's to remove"


def test_a_dry_run_says_what_is_stale_and_why_and_runs_nothing(two, pretend):
    two.run("41", pool=pretend.pool)
    before = two.files()
    report = two.run(pool=pretend.pool, stale=True, dry_run=True)
    assert (report.current, report.exit_code) == (("41_first",), 1)
    assert "42_second is stale: it has no record of a run\n" in two.lines
    assert "1 up to date, 1 stale" in two.lines
    assert pretend.ran == ["41_first"]
    assert two.files() == before


def test_prose_may_change_without_a_run(two, pretend):
    two.run(pool=pretend.pool)
    edit(two.root / "notebooks/41_first.ipynb", "# 41_first", "# Another title")
    assert two.run(pool=pretend.pool).done == []


def test_force_runs_what_is_current(two, pretend):
    two.run(pool=pretend.pool)
    assert two.run("42", pool=pretend.pool, force=True).done == ["42_second"]


def test_the_longest_goes_first(two, pretend):
    two.run(pool=pretend.pool)
    path = two.root / ".relparallel/records/42_second.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 9.0}))
    two.run(pool=pretend.pool, force=True)
    assert pretend.ran[2:] == ["42_second", "41_first"]


@pytest.mark.parametrize("name", ["42", "42_second", "notebooks/42_second.ipynb"])
def test_a_notebook_has_a_number_a_name_and_a_path(two, pretend, monkeypatch, name):
    monkeypatch.chdir(two.root)
    assert two.run(name, pool=pretend.pool).done == ["42_second"]


@pytest.mark.parametrize("name", ["43", "4", "second", "42_second.ipynb", "data/facts.csv", ""])
def test_an_unknown_notebook_is_refused_with_the_known_ones(two, pretend, name):
    with pytest.raises(
        NotebookError, match=rf"no notebook {re.escape(repr(name))}.*41_first, 42_second"
    ):
        two.run("41", name, pool=pretend.pool)
    assert pretend.ran == []


def test_a_parameter_must_be_known_to_every_chosen_notebook(two, pretend, tmp_path):
    with pytest.raises(NotebookError, match="41_first has no parameter mttr_hours"):
        two.run(parameters={"mttr_hours": "6"}, output_dir=tmp_path / "out", pool=pretend.pool)
    assert pretend.ran == []


@pytest.mark.parametrize("options", [{"quick": True}, {"parameters": {"mttr_hours": "6"}}])
def test_other_parameters_never_replace_the_stored_results(two, pretend, options):
    with pytest.raises(NotebookError, match="need --output-dir: the repository's"):
        two.run("42", pool=pretend.pool, **options)
    for folder in (two.root, two.root / "notebooks", two.root / "figures"):
        with pytest.raises(NotebookError, match="output_dir must lie apart"):
            two.run("42", pool=pretend.pool, output_dir=folder, **options)
    assert pretend.ran == []


def test_output_dir_receives_everything_and_the_checkout_nothing(two, pretend, tmp_path_factory):
    edit(
        two.root / "notebooks/42_second.ipynb", "# 42_second", "![shown](../figures/42_second.svg)"
    )
    before, out = two.files(), tmp_path_factory.mktemp("out")
    assert two.run(
        "42", parameters={"mttr_hours": "6"}, output_dir=out, pool=pretend.pool
    ).done == ["42_second"]
    assert two.files() == before
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == {
        "42_second.ipynb",
        "figures/42_second.svg",
    }
    assert "](figures/42_second.svg)" in (out / "42_second.ipynb").read_text()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("jobs", 0),
        ("jobs", -1),
        ("jobs", 1.5),
        ("jobs", True),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("cell_timeout", "1"),
        ("cell_timeout", None),
    ],
)
def test_bad_options_are_refused_by_name_and_value(two, pretend, option, value):
    with pytest.raises(NotebookError, match=rf"{option} must be .*got {re.escape(repr(value))}"):
        two.run(pool=pretend.pool, **{option: value})


def test_an_edit_during_the_run_wins(two, pretend):
    path = two.root / "notebooks/42_second.ipynb"
    pretend.meanwhile = lambda task: task.name == "42_second" and edit(path, "print(2)", "print(3)")
    report = two.run(pool=pretend.pool)
    assert (report.done, report.exit_code) == (["41_first"], 1)
    assert "edited during the run" in report.failed["42_second"]
    assert read(path).content["cells"][2]["source"] == ["print(3)"]
    assert not (two.root / "figures/42_second.svg").exists()
    pretend.meanwhile = lambda task: None
    assert two.run(pool=pretend.pool).done == ["42_second"]


def test_results_of_two_states_of_the_package_are_not_stored(two, pretend):
    pretend.meanwhile = lambda task: (two.root / "relparallel/module.py").write_text("x = 2\n")
    before = two.results()
    assert "package or data changed" in two.run("41", pool=pretend.pool).failed["41_first"]
    assert two.results() == before
    pretend.meanwhile = lambda task: (two.root / "relparallel/other.py").write_text("x = 2\n")
    assert two.run("41", pool=pretend.pool).done == ["41_first"]


def test_a_figure_that_is_no_longer_written_goes(two, pretend):
    (two.root / "figures").mkdir()
    (two.root / "figures/by-hand.svg").write_text("kept")
    pretend.figures = {"a.svg": b"a", "deep/b.svg": b"b"}
    two.run("42", pool=pretend.pool)
    pretend.figures = {"a.svg": b"a2"}
    two.run("42", pool=pretend.pool, force=True)
    assert two.files("figures") == {"figures/a.svg": b"a2", "figures/by-hand.svg": b"kept"}


def test_pdfs_are_asked_for_only_where_they_were_made(two, pretend):
    """They lie beside the SVGs, not in the repository: a fresh clone without them is not stale."""
    pretend.figures = {
        "a.svg": b"a",
        "a.pdf": b"%PDF a",
        "deep/b.svg": b"b",
        "deep/b.pdf": b"%PDF b",
    }
    two.run("42", pool=pretend.pool)
    drawn = two.files("figures")
    assert set(drawn) == {f"figures/{name}" for name in pretend.figures}
    (notebook,) = (one for one in map(read, (two.root / "notebooks").glob("42*")))
    assert record.Record.of(notebook).figures == ["a.svg", "deep/b.svg"]
    project = record.Project(root=two.root, sources=record.Project(root=two.root).hashed())
    assert project.reason(notebook) == ""
    (two.root / "figures/deep/b.pdf").unlink()
    assert project.reason(notebook) == "a PDF of its figures is gone"
    assert project.reason(notebook, elsewhere=True) == ""
    assert two.run("42", pool=pretend.pool).done == ["42_second"]
    assert two.files("figures") == drawn
    shutil.rmtree(two.root / ".relparallel")
    (two.root / "figures/a.pdf").unlink()
    assert project.reason(notebook) == "it was not run here"
    assert two.run("42", pool=pretend.pool, stale=True).done == []
    pretend.figures = {"a.svg": b"a2", "a.pdf": b"%PDF a2"}
    two.run("42", pool=pretend.pool, force=True)
    assert two.files("figures") == {"figures/a.svg": b"a2", "figures/a.pdf": b"%PDF a2"}


def test_two_notebooks_may_not_write_one_figure(two, pretend):
    pretend.figures = {"same.svg": b"x"}
    report = two.run(pool=pretend.pool, jobs=1)
    assert report.done == ["41_first"]
    assert "figure same.svg is also written by 41_first" in report.failed["42_second"]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("step", range(13))
def test_an_end_at_any_step_leaves_whole_files_and_the_next_run_goes_on(
    two, pretend, monkeypatch, step
):
    """Every file is the old or the new one, whichever file operation is the last."""
    pretend.figures = {"a.svg": b"old a", "b.svg": b"old b", "gone.svg": b"old"}
    two.run("42", pool=pretend.pool)
    old = two.results()
    (two.root / "data/facts.csv").write_text("new")
    pretend.answer, pretend.figures = (
        "43",
        {"a.svg": b"new a", "b.svg": b"new b", "c.svg": b"new c"},
    )
    operations, write = iter(range(100)), Path.write_bytes

    def mortal(function):
        def called(path, *data, **options):
            if next(operations) < step:
                return function(path, *data, **options)
            if function is write:
                write(path, data[0][:3])
            raise Killed

        return called

    with monkeypatch.context() as patch:
        for name in ("write_bytes", "replace", "unlink"):
            patch.setattr(Path, name, mortal(getattr(Path, name)))
        with pytest.raises(Killed):
            two.run("42", pool=pretend.pool)
    torn = two.results()
    two.run("42", pool=pretend.pool)
    new = two.results()
    assert all(data in (old.get(name), new.get(name)) for name, data in torn.items())
    assert two.files("figures") == {
        "figures/a.svg": b"new a",
        "figures/b.svg": b"new b",
        "figures/c.svg": b"new c",
    }
    assert two.run("42", pool=pretend.pool).done == []


def test_a_second_runner_is_refused(two, pretend):
    project = record.Project(root=two.root)
    with (
        project.locked(),
        pytest.raises(RunnerBusyError, match=rf"another run .*process {os.getpid()}"),
    ):
        two.run(pool=pretend.pool)
    assert two.run(pool=pretend.pool).exit_code == 0


def test_the_lock_of_a_dead_runner_holds_nobody(two, pretend):
    hold = (
        "import sys, time; from pathlib import Path; from reproduce.record import "
        "Project\n"
        "with Project(root=Path(sys.argv[1])).locked(): print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, two.root], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        assert main(["figures", "--root", str(two.root)]) == 1
        other.kill()
    assert two.run(pool=pretend.pool).exit_code == 0


def test_the_stale_check_is_quick_and_imports_the_standard_library_only(two, pretend):
    two.run(pool=pretend.pool)
    check = (
        f"import sys; before = set(sys.modules); sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from relparallel.__main__ import main\n"
        f"code = main(['figures', '--root', {str(two.root)!r}])\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before} - {'lazy_loader'}\n"
        "own = {'__main__', 'relparallel', 'commands', 'reproduce'}\n"
        "print(code, sorted(tops - sys.stdlib_module_names - own))"
    )
    start = time.monotonic()
    isolated = [sys.executable, "-I", "-c", check]
    told = subprocess.run(isolated, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[-1] == "0 []"
    assert "2 up to date" in told
    assert time.monotonic() - start < 2


def test_the_default_checkout_is_the_one_of_this_package(monkeypatch, two, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert record.checkout() == (CHECKOUT if (CHECKOUT / "notebooks").is_dir() else tmp_path)
    assert record.checkout(two.root) == two.root


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(NotebookError, match="no notebooks in"):
        run_figures(root=tmp_path)


def test_failures_of_the_disk_are_reported(two, pretend, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "replace_file", full)
    assert "No space left" in two.run("41", pool=pretend.pool).failed["41_first"]
