"""Commands of a checkout: notebooks run again, and what they are held against.

``relparallel figures`` and the others: the command line of the package finds this file by its place
and adds what it tells.
"""

import argparse
import sys
from pathlib import Path

from relparallel._notices import told

_EXAMPLES = """  relparallel figures                           run what is out of date and draw its figures
  relparallel figures 43                        the same for one notebook
  relparallel figures 43 -p mttr_hours=24 --output-dir OUT
                                                run it with another value and write to OUT instead
  relparallel ledger --csv ledger.csv           every claim beside the number it is held against
  relparallel warm                              compile ahead what the main functions need
  relparallel notebook 49_my_question           a new notebook that runs as it is
  RELPARALLEL_DATA=FOLDER relparallel derive    results on large data anew, into data/derived/
"""
_FIGURES = """Execute notebooks through papermill, in place, and regenerate figures/.

A notebook is skipped when it was run here and all is as that run left it: its code, the values of its
parameters, the modules and data that it read, the tested versions, and its results. --stale also trusts runs
elsewhere, whose records lie in the notebooks. The others run in processes of their own; each result takes
its place in one step, so the run may be stopped, or killed, at any moment and the next one goes on from
there. A notebook that fails is reported with the failing cell and kept; the others still run. Results are
the same bytes on every run, however many workers there are."""
_FIGURES_EXAMPLES = """examples:
  relparallel figures --jobs 2
  relparallel figures --stale --dry-run
  relparallel figures 21 43_reliability_of_strategies notebooks/45_joint_optimum.ipynb --force
  relparallel figures --quick --output-dir OUT
  relparallel figures 43 -p mttr_hours=1,6,24 -p nodes=512,2048 --output-dir OUT
  relparallel figures --executor tcp://HOST:8786

exit status: 0 when every chosen notebook is up to date, 1 when one failed (with --dry-run: is not),
2 when the command was wrong, 130 when interrupted"""
_COMMANDS = {
    "ledger": (
        "compute every claim beside the number it is held against",
        "Compute every claim, print how many agree with what they are held against and why others do "
        "not, and fail if one is out of tolerance. --csv has every row.",
    ),
    "scoreboard": (
        "how far predictions of measured runs are off",
        "Print the errors of predicted step times and memory: in the fit, left out, and blind. --csv "
        "has every source.",
    ),
    "derive": (
        "results on data that are too large to ship",
        "Compute the tables of data/derived/ anew from the folder that RELPARALLEL_DATA names.",
    ),
    "warm": (
        "compile what the main functions need",
        "Compile the kernels of the main functions and keep them; may be stopped and called again "
        "any time.",
    ),
    "notebook": (
        "begin a notebook of your own",
        "Write notebooks/NAME.ipynb with the cells that all notebooks have; it runs as it is.",
    ),
}


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> str:
    """Add the commands to those of the package, and return examples of them."""
    from reproduce import NotebookError

    plain = argparse.RawDescriptionHelpFormatter
    figures = commands.add_parser(
        "figures",
        help="run stale notebooks and regenerate their figures",
        description=_FIGURES,
        epilog=_FIGURES_EXAMPLES,
        formatter_class=plain,
    )
    _add_figures_options(figures)
    figures.set_defaults(run=_figures, refused=NotebookError)
    for name, (short, long) in _COMMANDS.items():
        command = commands.add_parser(name, help=short, description=long)
        command.set_defaults(run=globals()[f"_{name}"])
        add = command.add_argument
        if name in ("ledger", "scoreboard"):
            add("--csv", metavar="FILE", type=Path, help="also write the rows to FILE")
        if name == "notebook":
            add("name", metavar="NAME", help="number and words, such as 49_my_question")
            add("--root", type=Path, metavar="DIR", help="the checkout, as for figures")
            command.set_defaults(refused=NotebookError)
    return _EXAMPLES


def _add_figures_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="a notebook's number (42), name or path; default all",
    )
    add(
        "--jobs",
        type=int,
        metavar="N",
        help="notebooks at a time; default the processors, at most 8, or the threads of the "
        "cluster",
    )
    add(
        "--executor",
        metavar="ADDRESS",
        help="the workers of the dask cluster at ADDRESS execute, such as tcp://HOST:8786; "
        "needs the extra distributed, and the same versions there; files are sent",
    )
    add("--force", action="store_true", help="run also what is up to date")
    add(
        "--stale",
        action="store_true",
        help="run only what is out of date by the records in the notebooks",
    )
    add("--dry-run", action="store_true", help="run nothing; tell what is out of date, and why")
    add("--quick", action="store_true", help="short for -p quick=True; needs --output-dir")
    add(
        "-p",
        dest="parameters",
        action="append",
        default=[],
        type=_assignment,
        metavar="NAME=VALUE[,VALUE...]",
        help="a value in place of a default of the parameters cell, of the same type, or several "
        "between commas: each combination runs, in DIR/NAME=VALUE,.../, listed in DIR/sweep.csv; "
        "text with a comma needs quotes, -p \"NAME='a, b'\"; needs --output-dir",
    )
    add("--output-dir", type=Path, metavar="DIR", help="write DIR/NAME.ipynb and DIR/figures/")
    add("--root", type=Path, metavar="DIR", help="the checkout; default that of this package")


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _figures(options: argparse.Namespace) -> int:
    from reproduce import RunnerBusyError, run_figures

    names = ("root", "jobs", "executor", "force", "stale", "dry_run", "quick", "output_dir")
    given = {name: getattr(options, name) for name in names}
    values = dict(options.parameters)
    if len(values) < len(options.parameters):
        options.parser.error("-p must give every NAME once, its values between commas")
    try:
        return run_figures(options.names, parameters=values, **given).exit_code
    except RunnerBusyError as error:
        print(f"relparallel figures: {error}", file=sys.stderr)
        return 1


def _ledger(options: argparse.Namespace) -> int:
    from evidence.computed import print_ledger

    _require_target(options.csv)
    return print_ledger(csv=options.csv)


@told
def _scoreboard(options: argparse.Namespace) -> None:
    from evidence.claims.scoreboard import report, scoreboard

    _require_target(options.csv)
    print(report())
    if options.csv:
        scoreboard().to_csv(options.csv, index=False, float_format="%.4g")


def _derive(options: argparse.Namespace) -> None:
    from evidence.derive.tables import derive

    print("\n".join(map(str, derive())))


def _warm(options: argparse.Namespace) -> None:
    from reproduce.compiling import warm

    warm()


def _notebook(options: argparse.Namespace) -> None:
    from reproduce.template import new_notebook

    path = new_notebook(options.name, options.root)
    print(f"{path}\nnext: edit it, then relparallel figures {path.stem.partition('_')[0]}")


def _require_target(path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    from relparallel.topology.formats._text import require_target

    if path is not None:
        require_target(path=path)
