"""The command line: ``relparallel plan`` and the others, with those of the checkout around it."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import relparallel as rp
from relparallel.units import GB

_ABOUT = "Performance and reliability of large-model training under parallel strategies."
_EXAMPLES = """examples:
  relparallel plan config.json h100-80gb-dgx --gpus 512
                                                the best strategies of a model on a cluster
  relparallel study gpt3-175b llama3-405b --on h100-80gb-dgx --gpus 1024 4096
                                                the best of each model, cluster and size in one table
  relparallel models                            what can be asked about by name; also clusters, software
"""
_STATUS = """
`python -m relparallel` is the same. exit status: 0 done; 1 a notebook failed or is out of date, or a claim is
out of tolerance; 2 the command or a file was wrong; 130 interrupted
"""
_PLAN = """Find the best parallel strategies of a model on one cluster or several, with intervals and reasons.

MODEL is a published name or a config.json of Hugging Face; CLUSTER a published name (with --gpus) or a CSV,
JSON or YAML file with the fields accelerator, gpus, gpus_per_node, network_gbit."""
_PLAN_EXAMPLES = """examples:
  relparallel plan llama3-405b h100-80gb-dgx --gpus 16384 --batch 2048 --why-not "TP8 PP16 DP128"
  relparallel plan config.json h100-80gb-dgx b200-180gb-dgx --gpus 512 256 --price 2.5 4
  relparallel plan config.json mine.csv --network topology.conf --failures log.csv --watched 64
  relparallel plan config.json mine.csv --save plan.csv --save plan.svg --trace step.json
  relparallel plan config.json mine.csv --save plan.sbatch --why-not train.sh"""
_COMMANDS = {
    "rehearse": (
        "measure the predictions on real processes that are killed",
        "Run pipeline schedules, predict what small jobs keep under failures, then run those and kill "
        "their nodes: 22 minutes, 110 processes, 2 GiB, on the loopback. Needs Linux and the extra "
        "rehearsal; the backend torchft, which knows elastic jobs alone, needs rehearsal-torchft.",
    ),
    "models": (
        "models that have a name",
        "List the published models: sizes, parameters, sequence.",
    ),
    "clusters": (
        "clusters and accelerators that have a name",
        "List the published clusters, and the accelerators that a file of your own cluster may "
        "name.",
    ),
    "software": (
        "training software that has a name",
        "List the generations of software, and the accelerators on which runs of each were "
        "measured.",
    ),
}
# Of a checkout, which tells them itself: an installed package only knows that they are elsewhere.
_OF_A_CHECKOUT = ("figures", "notebook", "ledger", "scoreboard", "derive", "warm")
_BESIDE = Path(__file__).resolve().parents[1] / "notebooks"
_EXTRAS = {"torch": "rehearsal", "torchft": "rehearsal-torchft"}  # by what is missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options, unknown = _parser().parse_known_args(arguments)
    if unknown and options.run is not _absent:
        from relparallel._checks import meant

        known = [name for name in options.parser._option_string_actions if len(name) > 2]
        close = meant(known, unknown[0])
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{close}")
    try:
        status = int(options.run(options) or 0)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except options.refused as error:
        return _said(options, error, 2)
    except RuntimeError as error:  # of numba, where package and home are both read-only
        if "cannot cache function" not in str(error):
            raise
        return _said(
            options, "compiled code finds no folder to stay in; let NUMBA_CACHE_DIR name one", 2
        )
    except ModuleNotFoundError as error:  # of a plain installation
        extra = _EXTRAS.get(str(error.name), "notebooks")
        return _said(options, f"{error.name} is missing: pip install 'relparallel[{extra}]'", 2)
    except KeyboardInterrupt:
        print(
            "\ninterrupted; what was finished is kept and the next run goes on from there",
            file=sys.stderr,
        )
        return 130


def _said(options: argparse.Namespace, error: object, status: int) -> int:
    print(f"relparallel {options.command}: {error}", file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="relparallel", description=_ABOUT, formatter_class=plain)
    parser.add_argument("--version", action="version", version=f"relparallel {rp.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan = commands.add_parser(
        "plan",
        help="the best strategies of a model on a cluster",
        description=_PLAN,
        epilog=_PLAN_EXAMPLES,
        formatter_class=plain,
    )
    _add_plan_options(plan)
    plan.set_defaults(run=_plan)
    study = commands.add_parser(
        "study",
        help="the best strategy of each model, cluster and size in one table",
        description="Plan every model on every cluster, of every size.",
    )
    _add_study_options(study)
    study.set_defaults(run=_study)
    for name, (short, long) in _COMMANDS.items():
        command = commands.add_parser(name, help=short, description=long)
        command.set_defaults(run=globals().get(f"_{name}", _listed))
        add = command.add_argument
        if name == "rehearse":
            add("--seeds", type=int, default=4, metavar="N", help="how often all run; default 4")
            add("--seconds", type=float, default=240.0, metavar="S", help="of a run; default 240")
            add("--backend", choices=("processes", "torchft"), default="processes")
            folder = Path("data/rehearsals")
            add("--output-dir", type=Path, default=folder, metavar="DIR")
    parser.epilog = _EXAMPLES + _add_those_beside(commands) + _STATUS
    for command in commands.choices.values():
        command.set_defaults(parser=command)
        if command.get_default("refused") is None:
            command.set_defaults(refused=(ValueError, OSError))
    return parser


def _add_those_beside(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> str:
    """Add the commands of the checkout around this package, found by its place; return examples."""
    if (_BESIDE / "commands.py").is_file():
        if str(_BESIDE) not in sys.path:  # of an installation older than the folder
            sys.path.append(str(_BESIDE))
        return str(import_module("commands").add_commands(commands))
    for name in _OF_A_CHECKOUT:  # without help: they are not listed
        commands.add_parser(name, add_help=False).set_defaults(run=_absent)
    return ""


def _absent(options: argparse.Namespace) -> None:
    """Say where the command is."""
    raise ValueError(
        "needs a checkout of the repository, whose notebooks it is about; "
        "run it there, after pip install -e ."
    )


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL")
    add("clusters", nargs="+", metavar="CLUSTER")
    add(
        "--gpus",
        type=int,
        nargs="+",
        metavar="N",
        help="GPUs of each cluster that is given by name",
    )
    add("--batch", type=int, metavar="N", help="sequences of a step; default about 4e6 tokens")
    add(
        "--sequence",
        type=int,
        metavar="N",
        help="tokens of a sequence; default as published, of a file at most 8192",
    )
    add("--price", type=float, nargs="+", metavar="X", help="of a GPU-hour, for all or each")
    add("--strategies", type=int, metavar="N", default=5, help="rows for each cluster; default 5")
    add("--network", metavar="NAME", help="whose parts fail too: a file or a name, rail-optimised")
    add("--software", metavar="NAME", help="default the newest measured on the accelerator")
    add(
        "--precision", metavar="FORMAT", help="of products with weights: bf16 (default), fp8 or fp4"
    )
    add(
        "--storage",
        type=float,
        metavar="GB/S",
        help="that checkpoints are written and read with; default Llama 3's, by the GPUs",
    )
    add(
        "--measured",
        type=Path,
        metavar="FILE",
        help="own runs that correct predictions: a CSV file with the columns strategy and tokens/s "
        "or another speed, and where they differ from the plan model, cluster, batch, software; "
        "or the log of a run, as a trainer prints it",
    )
    add("--only-measured", action="store_true", help="choose among the measured strategies only")
    add(
        "--failures",
        metavar="FILE",
        type=Path,
        help="own failure log, a CSV file with one row per failure",
    )
    _add_log_options(parser)
    add(
        "--rank",
        choices=("independent", "events", "replay"),
        help="rows by the formula for independent failures (default), by that for events that nodes "
        "of the log share, or by a replay of the log",
    )
    add(
        "--ignore",
        nargs="+",
        default=[],
        metavar="NAME",
        help="fields of config.json and columns of the log that change nothing",
    )
    _add_answer_options(parser)


def _add_answer_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--why-not",
        metavar="STRATEGY",
        help="why it is not the best: words such as 'TP8 PP16 DP128', arguments of Megatron-LM, or a "
        "file of a launcher",
    )
    add("--wide", action="store_true", help="all strategies beside each other, whatever the width")
    add(
        "--save",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="the table as .csv, .json, .tex or .html, or drawn as .svg, .pdf or .png; the best for a "
        "launcher as .sh, .args, .sbatch, .toml (torchtitan), .yaml or .txt (Megatron-Bridge)",
    )
    add("--form", metavar="NAME", help="of a saved .sh: megatron, nvrx or slurm")
    add("--trace", type=Path, metavar="FILE", help="one step, for chrome://tracing or Perfetto")


def _add_log_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--watched", type=int, metavar="N", help="nodes that the failure log covers")
    add(
        "--dialect",
        metavar="NAME",
        help="of the log, recognised where omitted: csv, slurm, slurmctld, torchelastic, nvrx, "
        "nvrx-cycles or xid",
    )
    add("--since", metavar="TIME", help="when the watch of the log began: a date, or seconds")
    add("--until", metavar="TIME", help="when it ended; default as the log's dated lines say")
    add("--clock", metavar="UNIT", help="of a csv log: iso, s, min, h, d or a format")
    add(
        "--overlaps",
        metavar="HOW",
        help="of failures of one node in the log: refuse, merge or keep",
    )
    add("--delimiter", metavar="SIGN", help="between the fields of a csv or slurm log")
    add(
        "--repair", type=float, metavar="SECONDS", help="of every failure of the log without an end"
    )
    add(
        "--states",
        nargs="+",
        metavar="NAME",
        help="of a slurm, slurmctld or xid log: what counts as a failure",
    )
    add(
        "--silence",
        type=float,
        metavar="SECONDS",
        help="of an xid log: after which another line of a node is another failure; default 180",
    )
    add("--jobs", nargs="+", metavar="NAME", help="of a slurm log: jobs that count; default all")
    add(
        "--levels",
        nargs="+",
        type=_pair,
        default=[],
        metavar="CAUSE=LEVEL",
        help="what fails with a cause of the log: gpu, node (default), switch, rack or job",
    )


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help="as for plan")
    add("--on", nargs="+", required=True, metavar="CLUSTER", help="as for plan")
    add("--gpus", type=int, nargs="+", metavar="N", help="sizes of clusters given by name")
    add("--batch", type=int, metavar="N", help="sequences of a step; default about 4e6 tokens")
    add("--price", type=float, nargs="+", metavar="X", help="of a GPU-hour, for all or each")
    add("--save", type=Path, metavar="FILE", help="the table as .csv")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def _plan(options: argparse.Namespace) -> None:
    from relparallel.planning.inputs import clusters_of, model_of
    from relparallel.planning.launching import EVERY, form_of

    for path in options.save:  # what is asked for afterwards is checked before the search
        _target(path, EVERY)
        if options.form is not None:
            form_of(path.suffix, options.form, standing_by=False)
    _target(options.trace)
    names = ("sequence", "network", "software", "precision", "measured", "rank")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if Path(options.model).suffix == ".json" or options.failures is None:
        given["ignore"] = options.ignore
    given |= {"only_measured": True} if options.only_measured else {}
    if options.storage is not None:
        given["storage_bandwidth"] = options.storage * GB
    for name in ("gpus", "price"):
        value = getattr(options, name)
        given[name] = value[0] if value and len(value) == 1 else value
    if options.why_not is not None:
        sizes = model_of(options.model, options.sequence, given.get("ignore", ()))[1]
        gpus = clusters_of(options.clusters, given["gpus"])[0].gpus
        rp.parallel.read_launch(options.why_not, gpus, sizes.layers)
    found = rp.planning.plan(
        options.model,
        options.clusters,
        global_batch=options.batch,
        strategies=options.strategies,
        rates=_own_rates(options),
        **given,
    )
    print(found.to_text(10**4) if options.wide else found)
    if options.why_not is not None:
        print(f"\n{found.why_not(options.why_not)}")
    for path in options.save:
        for lost in found.save(path, options.form):
            print(f"{path}: {lost}")
    if options.trace:
        found.save_trace(options.trace)


def _target(path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    from relparallel.topology.formats._text import require_target

    if path is not None:
        require_target(path=path, endings=endings)


_LOG: tuple[str, ...] = (
    "dialect",
    "since",
    "until",
    "clock",
    "overlaps",
    "delimiter",
    "repair",
    "states",
    "jobs",
)
_LOG += ("silence",)


def _own_rates(options: argparse.Namespace) -> object:
    """What fails, from a failure log; the table of a published run where none is given."""
    if options.failures is None:
        if named := [
            f"--{name}" for name in ("watched", "levels", *_LOG) if getattr(options, name)
        ]:
            raise ValueError(f"{', '.join(named)} tell of a log: name it with --failures")
        return "llama3"
    if options.watched is None:
        raise ValueError("--watched must say how many nodes the failure log covers, got none")
    from relparallel.training.log_files import dialect_of

    given = {name: value for name in _LOG if (value := getattr(options, name)) is not None}
    if (
        options.ignore
        and "ignore" in dialect_of("failures", options.dialect, options.failures)[1].takes
    ):
        given["ignore"] = options.ignore
    given |= {"levels": dict(options.levels)} if options.levels else {}
    return rp.training.read_failure_log(options.failures, population=options.watched, **given)


def _study(options: argparse.Namespace) -> None:
    _target(options.save, (".csv",))
    price = options.price[0] if options.price and len(options.price) == 1 else options.price
    table = rp.planning.study(
        options.models, options.on, options.gpus, price=price, global_batch=options.batch
    )
    print(table.to_string(index=False))
    if options.save:
        table.to_csv(options.save, index=False)


def _listed(options: argparse.Namespace) -> None:
    from relparallel.planning.table import LISTS

    print(LISTS[options.command]())


def _rehearse(options: argparse.Namespace) -> None:
    from relparallel.rehearsal.recording import rehearse

    for text in rehearse(options.output_dir, options.seeds, options.seconds, options.backend):
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
