"""The command line: ``relparallel plan`` and the others, with those of the checkout around it."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import relparallel as rp
from relparallel._notices import told
from relparallel.planning import cluster_fields
from relparallel.planning.cluster_fields import EACH, FIELDS

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

MODEL is a published name or a config.json of Hugging Face; CLUSTER a published name (with --gpus) or a YAML,
JSON or CSV file whose fields have the names of the options down to --levels ("network_gbit: 3200"), or "own"
where options say all. An option wins over a field. A later plan from the same YAML file says what has changed
since the last; --init writes such a file."""
_PLAN_EXAMPLES = """examples:
  relparallel plan llama3-405b h100-80gb-dgx --gpus 16384 --batch 2048 --why-not "TP8 PP16 DP128"
  relparallel plan config.json h100-80gb-dgx b200-180gb-dgx --gpus 512 256 --price 2.5 4
  relparallel plan config.json mine.csv --network topology.conf --failures log.csv --watched 64
  relparallel plan config.json mine.csv --failures log.csv --watched 64 --price 2.5 --init hall.yaml
  relparallel plan config.json hall.yaml --save plan.csv --save plan.svg --trace step.json
  relparallel plan config.json mine.csv --save plan.sbatch --why-not train.sh"""
_COMMANDS = {
    "rehearse": (
        "measure the predictions on real processes that are killed",
        "Predict what small jobs keep under failures, then run those and kill their nodes. "
        "recoveries: six ways to recover on twelve nodes, 45 minutes, 200 processes; edge: 24 pairs of "
        "jobs near their break-even on 64 to 128 nodes, 40 minutes, 1000 processes; bursts: a public "
        "trace and racks, 40 minutes; pipelines: schedules of PyTorch; learning: a small GPT that "
        "loses replicas, 25 minutes. Needs Linux; the last two need the extra rehearsal, the backend "
        "torchft, which knows elastic jobs alone, rehearsal-torchft. A "
        "rehearsal that was interrupted goes on.",
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
_REHEARSED = ("recoveries", "edge", "bursts", "pipelines", "learning")
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
            add("what", nargs="?", choices=_REHEARSED, default=_REHEARSED[0])
            add("--seeds", type=int, default=5, metavar="N", help="of recoveries; default 5")
            add("--seconds", type=float, default=240.0, metavar="S", help="of them; default 240")
            add("--backend", choices=("sockets", "torchft"), default="sockets")
            add("--output-dir", type=Path, metavar="DIR", help="default data/rehearsals/WHAT")
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
    _add_fields(parser, [name for name in FIELDS if name != "cluster"])
    add("--init", type=Path, metavar="FILE", help="write these options as a cluster file, in YAML")
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


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help="as for plan")
    add("--on", nargs="+", required=True, metavar="CLUSTER", help="as for plan")
    _add_fields(parser, ["gpus", "batch", "price"])
    add("--save", type=Path, metavar="FILE", help="the table as .csv")


def _add_fields(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Add options of the names of fields of a cluster file."""
    for name in names:
        field, flag = FIELDS[name], f"--{name.replace('_', '-')}"
        if field.read is cluster_fields.flag:
            parser.add_argument(flag, action="store_true", default=None, help=field.about)
            continue
        several = name in EACH or field.read in cluster_fields.SEVERAL
        parser.add_argument(
            flag, metavar=field.unit, help=field.about, nargs="+" if several else None
        )


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Fields that options say; those of each cluster are lists."""
    from relparallel.planning.cluster_files import read_fields

    said = {name: value for name in FIELDS if (value := getattr(options, name, None)) is not None}
    each = {name: said.pop(name) for name in EACH if name in said}
    listed = {name: [read_fields({name: one})[name] for one in each[name]] for name in each}
    return read_fields(said) | listed


def _plan(options: argparse.Namespace) -> None:
    from relparallel.planning.cluster_files import cluster_files, require_new
    from relparallel.planning.inputs import model_of
    from relparallel.planning.last_run import since_last
    from relparallel.planning.launching import EVERY, form_of

    for path in options.save:  # what is asked for afterwards is checked before the search
        _target(path, EVERY)
        if options.form is not None:
            form_of(path.suffix, options.form, standing_by=False)
    if options.form is not None and not options.save:
        raise ValueError(f"form must come with --save, which names the file, got {options.form}")
    _target(options.trace)
    given = _given(options)
    files: Any = cluster_files(options.clusters, given)
    if options.init is not None:
        require_new(options.init, len(files))
    if options.why_not is not None:
        asked = files[0].fields
        ignore = asked.get("ignore", ()) if Path(options.model).suffix == ".json" else ()
        sizes = model_of(options.model, asked.get("sequence"), ignore)[1]
        rp.parallel.read_launch(options.why_not, files[0].cluster.gpus, sizes.layers)
    found = rp.planning.plan(options.model, files)
    print(found.to_text(10**4) if options.wide else found)
    if options.why_not is not None:
        print(f"\n{found.why_not(options.why_not)}")
    for path in options.save:
        for lost in found.save(path, options.form):
            print(f"{path}: {lost}")
    if options.trace:
        found.save_trace(options.trace)
    if options.init is not None:
        files[0].save(options.init)
        print(f"\nwritten: {options.init}, for relparallel plan {options.model} {options.init}")
    elif len(files) == 1 and (path := files[0].path) is not None and path.suffix != ".csv":
        print(f"\n{since_last(found, path, options.model, given)}")


def _target(path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    from relparallel.topology.formats._text import require_target

    if path is not None:
        require_target(path=path, endings=endings)


def _study(options: argparse.Namespace) -> None:
    _target(options.save, (".csv",))
    given = _given(options)
    price = given.pop("price", [None])
    asked = {"global_batch": given["batch"]} if "batch" in given else {}
    table = rp.planning.study(
        options.models,
        options.on,
        given.get("gpus"),
        price=price[0] if len(price) == 1 else price,
        **asked,
    )
    print("\n".join([table.to_string(index=False), *table.attrs["notes"]]))
    if options.save:
        table.to_csv(options.save, index=False)


def _listed(options: argparse.Namespace) -> None:
    from relparallel.planning.table import LISTS

    print(LISTS[options.command]())


@told
def _rehearse(options: argparse.Namespace) -> None:
    from relparallel.rehearsal import bursts, edge, learning, recording

    folder = options.output_dir or Path("data/rehearsals", options.what)
    told = {
        "recoveries": lambda: recording.rehearse(
            folder, options.seeds, options.seconds, options.backend
        ),
        "edge": lambda: edge.rehearse_edge(folder, 24, 270.0, 5),
        "bursts": lambda: bursts.rehearse_bursts(folder, 2, 1),
        "pipelines": lambda: recording.rehearse_pipelines(folder),
        "learning": lambda: learning.learn(folder, 3),
    }[options.what]()
    for text in told:
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
