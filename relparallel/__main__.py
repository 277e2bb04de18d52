"""The command line: ``python -m relparallel plan``, ``figures``, ``ledger``, ``warm`` and the others."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relparallel import __version__
from relparallel.reproduce import NotebookError, RunnerBusyError, run_figures

_ABOUT = "Performance and reliability of large-model training under parallel strategies."
_EXAMPLES = """examples:
  python -m relparallel plan config.json h100-80gb-dgx --gpus 512
                                                the best strategies of a model on a cluster
  python -m relparallel figures                 run every notebook that is out of date and draw its figures
  python -m relparallel figures 42              the same for one notebook
  python -m relparallel figures 42 -p mttr_hours=24 --output-dir OUT
                                                run it with another value and write to OUT instead
  python -m relparallel ledger --csv ledger.csv
                                                every claim beside the number it is held against
  python -m relparallel warm                    compile ahead what the main functions need
  python -m relparallel notebook 44_my_question a new notebook that runs as it is
  RELPARALLEL_DATA=FOLDER python -m relparallel derive
                                                results on large data anew, into data/derived/
"""
_FIGURES = """Execute notebooks through papermill, in place, and regenerate figures/.

A notebook is skipped when it was run here and all is as that run left it: its code, the modules and data
that it read, the tested versions, and its results. --stale also trusts runs elsewhere, whose records lie in
the notebooks. The others run in processes of their own; each result takes its place in one step, so the run
may be stopped, or killed, at any moment and the next one goes on from there. A notebook that fails is
reported with the failing cell and kept for inspection; the others still run. Results are the same bytes on
every run, however many workers there are."""
_FIGURES_EXAMPLES = """examples:
  python -m relparallel figures --jobs 2
  python -m relparallel figures --stale --dry-run
  python -m relparallel figures 21 42_reliability_of_strategies notebooks/43_joint_optimum.ipynb --force
  python -m relparallel figures --quick --output-dir OUT
  python -m relparallel figures 42 -p mttr_hours=24 -p nodes=2048 --output-dir OUT
  python -m relparallel figures --executor tcp://HOST:8786

exit status: 0 when every chosen notebook is up to date, 1 when one failed (with --dry-run: is not),
2 when the command was wrong, 130 when interrupted"""
_PLAN = """Find the best parallel strategies of a model on one cluster or several, with intervals and reasons.

MODEL is a published name or a config.json of Hugging Face; CLUSTER a published name (with --gpus) or a CSV,
JSON or YAML file with the fields accelerator, gpus, gpus_per_node, network_gbit."""
_PLAN_EXAMPLES = """examples:
  python -m relparallel plan llama3-405b h100-80gb-dgx --gpus 16384 --batch 2048 --why-not "TP8 PP16 DP128"
  python -m relparallel plan config.json h100-80gb-dgx b200-180gb-dgx --gpus 512 256 --price 2.5
  python -m relparallel plan config.json mine.csv --save plan.csv --save plan.svg --trace step.json"""
_COMMANDS = {
    "ledger": (
        "compute every claim beside the number it is held against",
        "Compute every claim, print it beside what it is held against, and fail if one is out of tolerance.",
    ),
    "scoreboard": (
        "how far predictions of measured runs are off",
        "Print the errors of predicted step times and memory by source: in the fit, left out, and blind.",
    ),
    "derive": (
        "results on data that are too large to ship",
        "Compute the tables of data/derived/ anew from the folder that RELPARALLEL_DATA names.",
    ),
    "warm": (
        "compile what the main functions need",
        "Compile the kernels of the main functions and keep them; may be stopped and called again any time.",
    ),
    "site": (
        "the collection as static pages",
        "Write every notebook, every claim and every public name as pages that need no network.",
    ),
    "notebook": (
        "begin a notebook of your own",
        "Write notebooks/NAME.ipynb with the cells that all notebooks have; it runs as it is.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = _parser().parse_args(arguments)
    refused = (ValueError, OSError) if options.command in ("plan", "derive", "site") else (NotebookError,)
    try:
        return int(options.run(options) or 0)
    except (RunnerBusyError, *refused) as error:
        print(f"relparallel {options.command}: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunnerBusyError) else 2
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept and the next run goes on from there", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m relparallel", description=_ABOUT, epilog=_EXAMPLES, formatter_class=plain
    )
    parser.add_argument("--version", action="version", version=f"relparallel {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    figures = commands.add_parser(
        "figures",
        help="run stale notebooks and regenerate their figures",
        description=_FIGURES,
        epilog=_FIGURES_EXAMPLES,
        formatter_class=plain,
    )
    _add_figures_options(figures)
    figures.set_defaults(run=_figures)
    plan = commands.add_parser(
        "plan", help="the best strategies of a model on a cluster", description=_PLAN, epilog=_PLAN_EXAMPLES,
        formatter_class=plain,
    )  # fmt: skip
    _add_plan_options(plan)
    plan.set_defaults(run=_plan)
    for name, (short, long) in _COMMANDS.items():
        command = commands.add_parser(name, help=short, description=long)
        command.set_defaults(run=globals()[f"_{name}"])
        if name in ("ledger", "scoreboard"):
            command.add_argument("--csv", metavar="FILE", type=Path, help="also write the rows to FILE")
        if name == "site":
            command.add_argument("--output-dir", type=Path, default=Path("site"), metavar="DIR")
            command.add_argument("--root", type=Path, metavar="DIR", help="the checkout, as for figures")
        if name == "notebook":
            command.add_argument("name", metavar="NAME", help="number and words, such as 44_my_question")
            command.add_argument("--root", type=Path, metavar="DIR", help="the checkout, as for figures")
    return parser


def _add_figures_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a notebook's number (42), name or path; default all")
    add(
        "--jobs",
        type=int,
        metavar="N",
        help="notebooks at a time; default the processors, at most 8, or the threads of the cluster",
    )
    add(
        "--executor",
        metavar="ADDRESS",
        help="the workers of the dask cluster at ADDRESS execute, such as tcp://HOST:8786; "
        "needs the extra distributed, and the same files and versions on every worker",
    )
    add("--force", action="store_true", help="run also what is up to date")
    add("--stale", action="store_true", help="run only what is out of date by the records in the notebooks")
    add("--dry-run", action="store_true", help="run nothing; tell what is out of date, and why")
    add("--quick", action="store_true", help="short for -p quick=True; needs --output-dir")
    add(
        "-p",
        dest="parameters",
        action="append",
        default=[],
        type=_assignment,
        metavar="NAME=VALUE",
        help="a value in place of a default of the parameters cell, of the same type; needs --output-dir",
    )
    add(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="write DIR/NAME.ipynb and DIR/figures/, not the repository",
    )
    add("--root", type=Path, metavar="DIR", help="the checkout; default the one that holds this package")


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL")
    add("clusters", nargs="+", metavar="CLUSTER")
    add("--gpus", type=int, nargs="+", metavar="N", help="GPUs of each cluster that is given by name")
    add("--batch", type=int, metavar="N", help="sequences of a step; default about 4e6 tokens")
    add("--sequence", type=int, metavar="N", help="tokens of a sequence; default that of the model")
    add("--price", type=float, metavar="X", help="of a GPU-hour")
    add("--fabric", metavar="NAME", help="a network whose parts fail too, such as rail-optimised")
    add("--software", metavar="NAME", help="default the newest that was measured on the accelerator")
    add("--failures", metavar="FILE", type=Path, help="own failure log, a CSV file with one row per failure")
    add("--watched", type=int, metavar="N", help="nodes that the failure log covers")
    add("--why-not", metavar="STRATEGY", help="why this strategy is not the best, such as 'TP8 PP16 DP128'")
    add("--save", type=Path, action="append", default=[], metavar="FILE",
        help="the table as .csv, .json or .tex, or drawn as .svg, .pdf or .png")  # fmt: skip
    add("--trace", type=Path, metavar="FILE", help="one step, for chrome://tracing or Perfetto")


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _figures(options: argparse.Namespace) -> int:
    names = ("root", "jobs", "executor", "force", "stale", "dry_run", "quick", "output_dir")
    given = {name: getattr(options, name) for name in names}
    return run_figures(options.names, parameters=dict(options.parameters), **given).exit_code


def _plan(options: argparse.Namespace) -> None:
    from relparallel.planning import plan

    sizes = options.gpus[0] if options.gpus and len(options.gpus) == 1 else options.gpus
    found = plan(
        options.model, options.clusters, gpus=sizes, global_batch=options.batch,
        sequence=options.sequence, price=options.price, fabric=options.fabric,
        rates=_own_rates(options.failures, options.watched), software=options.software,
    )  # fmt: skip
    print(found)
    if options.why_not:
        print(f"\n{found.why_not(options.why_not)}")
    for path in options.save:
        found.save(path)
    if options.trace:
        found.save_trace(options.trace)


def _own_rates(path: Path | None, watched: int | None) -> object:
    """What fails, from a failure log; the table of a published run where none is given."""
    if path is None:
        return "llama3"
    if watched is None:
        raise ValueError("--watched must say how many nodes the failure log covers, got none")
    from relparallel.training import read_failure_log

    return read_failure_log(path, population=watched, clock="iso")


def _ledger(options: argparse.Namespace) -> int:
    from relparallel.ledger import print_ledger

    return print_ledger(csv=options.csv)


def _scoreboard(options: argparse.Namespace) -> None:
    from relparallel.claims.scoreboard import report, scoreboard

    print(report())
    if options.csv:
        scoreboard().to_csv(options.csv, index=False, float_format="%.4g")


def _derive(options: argparse.Namespace) -> None:
    from relparallel.derive import derive

    print("\n".join(map(str, derive())))


def _site(options: argparse.Namespace) -> None:
    from relparallel.reproduce.site import build_site

    root = options.root or Path(__file__).resolve().parents[1]
    print("\n".join(map(str, build_site(options.output_dir, root))))


def _warm(options: argparse.Namespace) -> None:
    from relparallel.reproduce.compiling import warm

    warm()


def _notebook(options: argparse.Namespace) -> None:
    from relparallel.reproduce.template import new_notebook

    path = new_notebook(options.name, options.root)
    print(f"{path}\nnext: edit it, then python -m relparallel figures {path.stem.partition('_')[0]}")


if __name__ == "__main__":
    sys.exit(main())
