"""The command line: what it explains, what it refuses, how it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

import relparallel as rp
import reproduce
from evidence.claims import scoreboard
from relparallel.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--help"], ["figures 43 -p mttr_hours=24 --output-dir OUT", "ledger --csv ledger.csv"]),
        (
            ["figures", "--help"],
            [
                "--jobs N",
                "--executor ADDRESS",
                "--force",
                "--quick",
                "NAME=VALUE",
                "--output-dir DIR",
                "130",
            ],
        ),
        (["ledger", "--help"], ["--csv FILE", "held against"]),
        (["--version"], ["relparallel 0."]),
    ],
)
def test_help_explains_the_commands(capsys, arguments, told):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(text in shown for text in told)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["figure"],
        ["figures", "-p", "x"],
        ["figures", "-p", "1x=2"],
        ["figures", "-p", "=2"],
        ["figures", "--jobs", "two"],
    ],
)
def test_a_wrong_command_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_refusals_of_the_runner_end_with_2(toy, capsys):
    toy.write("42_second")
    for arguments, told in [
        (["43"], "no notebook '43'"),
        (["--quick"], "need --output-dir"),
        (["--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["-p", "mttr=1", "--output-dir", str(toy.root / "out")], "no parameter mttr"),
    ]:
        assert main(["figures", "--root", str(toy.root), *arguments]) == 2
        assert told in capsys.readouterr().err


def test_options_reach_the_runner(monkeypatch, tmp_path):
    seen = {}

    class Report:
        exit_code = 1

    def run(names, **options):
        seen.update(options, names=names)
        return Report

    monkeypatch.setattr(reproduce, "run_figures", run)
    line = (
        "figures 42 21 --jobs 3 --executor tcp://a:1 --force --stale --dry-run --quick -p a=1 "
        "-p b=x=y"
    )
    line += f" --output-dir {tmp_path} --root {tmp_path}"
    assert main(line.split()) == 1
    assert seen == {
        "names": ["42", "21"],
        "jobs": 3,
        "executor": "tcp://a:1",
        "force": True,
        "stale": True,
        "dry_run": True,
        "quick": True,
        "parameters": {"a": "1", "b": "x=y"},
        "output_dir": tmp_path,
        "root": tmp_path,
    }


def test_an_interruption_ends_with_130(monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run_figures", interrupted)
    assert main(["figures"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_the_ledger_is_written_on_request(monkeypatch, tmp_path):
    import evidence.computed

    asked = []
    monkeypatch.setattr(evidence.computed, "print_ledger", lambda *, csv: asked.append(csv) or 0)
    assert main(["ledger", "--csv", str(tmp_path / "l.csv")]) == 0
    assert main(["ledger"]) == 0
    assert asked == [tmp_path / "l.csv", None]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("plan a b --bacth 3", "unrecognized arguments: --bacth 3; did you mean '--batch'"),
        ("plan a b --gpsu 3", "did you mean '--gpus'"),
        ("figures --qick", "did you mean '--quick'"),
        ("ledger --cvs x", "did you mean '--csv'"),
    ],
)
def test_a_misspelt_option_is_refused_with_what_may_have_been_meant(capsys, line, told):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_value_that_an_option_cannot_have_is_refused(capsys):
    assert main(["plan", "a", "b", "--levels", "software"]) == 2
    assert "levels: must be NAME=VALUE, got 'software'" in capsys.readouterr().err


def test_without_a_checkout_the_remedy_is_named(capsys, tmp_path):
    assert main(["notebook", "44_mine", "--root", str(tmp_path)]) == 2
    assert f"must be a checkout with a folder notebooks, got {tmp_path}; name it with --root" in (
        capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            RuntimeError("cannot cache function '_f': no locator available for file"),
            "let NUMBA_CACHE_DIR name",
        ),
        (
            ModuleNotFoundError("No module named 'papermill'", name="papermill"),
            "pip install 'relparallel[note",
        ),
    ],
)
def test_what_an_installation_lacks_is_said_in_a_sentence(monkeypatch, capsys, error, told):
    def run(*names, **options):
        raise error

    monkeypatch.setattr(reproduce, "run_figures", run)
    assert main(["figures"]) == 2
    shown = capsys.readouterr().err
    assert told in shown
    assert shown.count("\n") == 1


def test_other_errors_are_not_hidden(monkeypatch):
    def run(*names, **options):
        raise RuntimeError("a fault")

    monkeypatch.setattr(reproduce, "run_figures", run)
    with pytest.raises(RuntimeError, match="a fault"):
        main(["figures"])


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m relparallel models | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("models", ["llama3-70b 80 8192"]),
        ("clusters", ["h100-80gb-dgx h100-80gb 8 3200", "h100-80gb bf16"]),
        ("software", ["megatron-2021 2021 unfused 4 a100"]),
    ],
)
def test_what_has_a_name_is_listed(monkeypatch, capsys, command, rows):
    monkeypatch.setenv("COLUMNS", "100")
    assert main([command]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert all(any(line.startswith(row) for line in lines) for row in rows)


@pytest.mark.parametrize("width", [80, 160])
def test_the_scoreboard_begins_with_a_sentence_and_fits(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["scoreboard"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    table = scoreboard.scoreboard().query(
        "source == 'all' and used == 'source left out' and family == 'a100'"
    )
    said = " ".join(shown.partition("\n\n")[0].split())
    assert f"a100 {table['mean'].item():.1f} % of {table['rows'].item()} runs" in said


@pytest.mark.parametrize("command", ["ledger", "scoreboard"])
def test_the_file_of_a_table_is_checked_before_it_is_computed(
    monkeypatch, capsys, tmp_path, command
):
    monkeypatch.setattr(scoreboard, "scoreboard", None)
    assert main([command, "--csv", str(tmp_path / "nodir/t.csv")]) == 2
    assert "path must lie in a folder that exists" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["figures 43 --force", "ledger --csv x.csv", "derive", "warm"])
def test_a_command_of_a_checkout_says_that_it_needs_one(line, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("relparallel.__main__._BESIDE", tmp_path)
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"relparallel {line.split()[0]}: needs a checkout of the repository")
    assert said.count("\n") == 1


def test_a_chapter_under_another_name_says_how_it_is_imported():
    code = "import notebooks.chapters"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "must be imported as chapters: install the checkout with pip install -e ." in done.stderr


def test_the_study_of_the_command_line_is_that_of_the_library(tmp_path, capsys):
    target = tmp_path / "study.csv"
    line = "study gpt3-6.7b --on a100-80gb-selene --gpus 64 128 --batch 512 --save"
    assert main([*line.split(), str(target)]) == 0
    expected = rp.study("gpt3-6.7b", "a100-80gb-selene", [64, 128], global_batch=512)
    expected.to_csv(tmp_path / "expected.csv", index=False)
    assert target.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert "gpt3-6.7b" in capsys.readouterr().out
