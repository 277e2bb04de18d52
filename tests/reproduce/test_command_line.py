"""The command line: what it explains, what it refuses, how it ends."""

import pytest

from relparallel import __main__
from relparallel.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--help"], ["figures 42 -p mttr_hours=24 --output-dir OUT", "ledger --csv ledger.csv"]),
        (
            ["figures", "--help"],
            ["--jobs N", "--executor ADDRESS", "--force", "--quick", "NAME=VALUE", "--output-dir DIR", "130"],
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

    monkeypatch.setattr(__main__, "run_figures", run)
    line = "figures 42 21 --jobs 3 --executor tcp://a:1 --force --stale --dry-run --quick -p a=1 -p b=x=y"
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

    monkeypatch.setattr(__main__, "run_figures", interrupted)
    assert main(["figures"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_the_ledger_is_written_on_request(monkeypatch, tmp_path):
    import relparallel.ledger

    asked = []
    monkeypatch.setattr(relparallel.ledger, "print_ledger", lambda *, csv: asked.append(csv) or 0)
    assert main(["ledger", "--csv", str(tmp_path / "l.csv")]) == 0
    assert main(["ledger"]) == 0
    assert asked == [tmp_path / "l.csv", None]
