"""One notebook under several values: what runs, where it lies, and what an interruption leaves."""

import csv
import json
import os
from concurrent.futures import Future

import pytest

from relparallel.__main__ import main
from reproduce import NotebookError
from reproduce.execute import Failure, Outcome
from reproduce.notebook import read
from reproduce.parameters import combinations

CELL = """\
mttr_hours = 24.0
nodes = 2048
others = ""
rates = (1.0,)
quick = False
"""
GIVEN = {"mttr_hours": "1,6", "nodes": "512,2048"}


@pytest.fixture
def sweep(toy, pretend, tmp_path_factory):
    """Run a notebook with values and give the report, the table's rows and the folder."""
    path, out = toy.write("42_example", "print(1)", parameters=CELL), tmp_path_factory.mktemp("out")

    def run(given=GIVEN, **options):
        report = toy.run(parameters=given, output_dir=out, **{"pool": pretend.pool} | options)
        with (out / "sweep.csv").open(newline="") as file:
            return report, {row["run"]: row for row in csv.DictReader(file)}, out

    run.path, run.toy = path, toy
    return run


def folder(mttr, nodes):
    return f"mttr_hours={mttr},nodes={nodes}"


FOUR = [folder(mttr, nodes) for mttr in (1, 6) for nodes in (2048, 512)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("mttr_hours=1,6.0,24", [1.0, 6.0, 24.0]),
        ("mttr_hours=1, 6", [1.0, 6.0]),
        ("others=a,b", ["a", "b"]),
        ("others='a, b'", ["a, b"]),
        ("others='a,b',c", ["a,b", "c"]),
        ("others='1,2','it\\'s'", ["1,2", "it's"]),
        ("rates=(1,2),[3]", [(1.0, 2.0), (3.0,)]),
        ("quick=True,False", [True, False]),
    ],
)
def test_commas_part_values_but_not_inside_quotes_and_brackets(toy, text, values):
    notebook = read(toy.write("42_example", parameters=CELL))
    name, _, written = text.partition("=")
    found = combinations(notebook, {name: written})
    assert [one[name] for one in found.values()] == values
    assert next(iter(found)).startswith(f"{name}=" if len(values) > 1 else "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("others=a, b", "in quotes"),
        ("others='a,b", "in quotes"),
        ("others=a,,b", "single commas"),
        ("mttr_hours=1,6,", "single commas"),
        ("mttr_hours=1,x", "must be a finite number .* got 'x'"),
        ("rates=1,2", "must be a sequence"),
        ("mttr_hours=6,6.0", "would run twice with mttr_hours=6"),
    ],
)
def test_what_may_be_meant_otherwise_is_refused(toy, text, told):
    notebook = read(toy.write("42_example", parameters=CELL))
    name, _, written = text.partition("=")
    with pytest.raises(NotebookError, match=told):
        combinations(notebook, {name: written})


def test_names_of_folders_tell_values_apart_and_lie_in_one_folder(toy):
    notebook = read(toy.write("42_example", parameters=CELL))
    found = combinations(notebook, {"others": f"a/b,a%2Fb,{'x' * 300}1,{'x' * 300}2"})
    assert len(found) == 4
    assert all("/" not in name and len(name) < 255 for name in found)


def test_every_combination_gets_its_notebook_its_figures_and_a_row(sweep, pretend):
    report, table, out = sweep()
    assert report.done == [f"{name}/42_example" for name in FOUR]
    for name in FOUR:
        assert (out / name / "42_example.ipynb").exists()
        assert len(list((out / name / "figures").rglob("*.svg"))) == 1
    row = table[f"{folder(6, 512)}/42_example"]
    assert row == {
        "run": f"{folder(6, 512)}/42_example",
        "mttr_hours": "6.0",
        "nodes": "512",
        "state": "done",
        "seconds": "0.5",
        "problem": "",
    }
    assert list(row)[-3:] == ["state", "seconds", "problem"]


def test_what_is_done_is_not_done_again_until_something_changes(sweep, pretend):
    sweep()
    assert sweep()[0].current == tuple(
        f"{folder(*of)}/42_example" for of in [(1, 512), (1, 2048), (6, 512), (6, 2048)]
    )
    report, table, out = sweep({"mttr_hours": "6,24", "nodes": "512,2048"})
    assert report.done == [f"{folder(24, nodes)}/42_example" for nodes in (2048, 512)]
    assert len(table) == 6
    assert {row["state"] for row in table.values()} == {"done"}
    assert {row["seconds"] for row in table.values()} == {"0.5"}
    (out / folder(1, 512) / "42_example.ipynb").unlink()
    assert sweep()[0].done == [f"{folder(1, 512)}/42_example"]
    (sweep.toy.root / "relparallel/module.py").write_text("x = 2\n")
    assert len(sweep(dry_run=True)[0].stale) == 4
    assert len(sweep()[0].done) == 4
    assert len(sweep(force=True)[0].done) == 4


def test_what_cells_with_the_tag_print_are_columns(sweep, pretend):
    """Also of runs that were done before, where the table is gone."""
    notebook = json.loads(sweep.path.read_text())
    notebook["cells"][2]["metadata"]["tags"] = ["result"]
    sweep.path.write_text(json.dumps(notebook))
    pretend.answer = "kept = 95.7\n"
    _, table, out = sweep()
    (out / "sweep.csv").unlink()
    for rows in (table, sweep()[1]):
        assert [row["kept"] for row in rows.values()] == ["95.7"] * 4
        assert list(rows[f"{folder(6, 512)}/42_example"])[-4] == "kept"


def test_one_failure_stops_no_other_and_is_told_at_the_end(sweep, pretend):
    class Fails:
        def submit(self, function, task):
            if task.parameters["mttr_hours"] == 6.0:
                future = Future()
                future.set_result(Outcome(failure=Failure(error="ValueError: 6 h"), seconds=2.0))
                return future
            return pretend.submit(function, task)

        __enter__, __exit__ = lambda self: self, lambda self, *error: None

    report, table, _ = sweep(pool=lambda workers: Fails())
    assert report.exit_code == 1
    assert len(report.done) == 2
    failed = [name for name, row in table.items() if row["state"] == "failed"]
    assert failed == [f"{folder(6, n)}/42_example" for n in (512, 2048)]
    assert set(report.failed) == set(failed)
    assert table[failed[0]]["problem"] == "failed: ValueError: 6 h"
    assert "2 executed, 2 failed" in sweep.toy.lines.splitlines()[-1]
    assert sweep()[0].done == sorted(failed)


def test_a_notebook_that_is_lost_with_its_workers_says_so_in_a_sentence(toy):
    """dask gives up a task when four workers have died with it."""

    class Deadly:
        def submit(self, function, task):
            future = Future()
            future.set_exception(type("KilledWorker", (Exception,), {})("a long story"))
            return future

        __enter__, __exit__ = lambda self: self, lambda self, *error: None

    toy.write("42_example")
    report = toy.run(pool=lambda workers: Deadly())
    told = "failed: the cluster lost it: every worker that took it died (out of memory, or killed)"
    assert report.failed["42_example"].startswith(f"{told}; give workers more memory")


def test_an_interrupted_sweep_goes_on_from_there(sweep, pretend):
    def stop(task):
        if len(pretend.ran) == 3:
            raise KeyboardInterrupt

    pretend.meanwhile = stop
    with pytest.raises(KeyboardInterrupt):
        sweep(jobs=1)
    pretend.meanwhile = lambda task: None
    report, table, _ = sweep(jobs=1)
    assert (len(report.current), len(report.done)) == (2, 2)
    assert {row["state"] for row in table.values()} == {"done"}


def test_a_name_is_given_once(toy, tmp_path, capsys):
    toy.write("42_example", parameters=CELL)
    line = ["figures", "--root", str(toy.root), "--output-dir", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main([*line, "-p", "nodes=1", "-p", "nodes=2"])
    assert "-p must give every NAME once" in capsys.readouterr().err


def test_a_dry_run_lists_the_combinations_and_writes_nothing(toy, pretend, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    toy.write("42_example", parameters=CELL)
    report = toy.run(parameters=GIVEN, output_dir=out, dry_run=True)
    assert sorted(report.stale) == [f"{name}/42_example" for name in FOUR]
    assert os.listdir(out) == []
