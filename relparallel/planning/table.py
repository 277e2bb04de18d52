"""Tables: of plans, and of what can be asked about by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from relparallel._tables import folded, latex_table, terminal_width, text_table
from relparallel.hardware import accelerator, accelerators
from relparallel.optimize.joint_plans import JointPlan
from relparallel.parallel import calibration
from relparallel.planning.doubt import vendors
from relparallel.planning.few_failures import causes, never, unseen
from relparallel.published import shipped_rows
from relparallel.topology.formats._text import require_target, write
from relparallel.training import FailureLog
from relparallel.units import GB, TFLOP
from relparallel.workload import transformer, transformers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS: Final = (".csv", ".json", ".tex", ".svg", ".pdf", ".png")
"""Files that `Plan.save` writes."""
_AROUND: Final[Mapping[str, tuple[str, ...]]] = {
    "checkpoint every [min]": ("checkpoint from", "checkpoint to"),
    "memory [GB]": ("of [GB]",),
    "step [s]": ("step from", "step to"),
    "relative goodput": ("goodput from", "goodput to"),
    "replayed goodput": ("replay from", "replay to"),
    "1e9 tokens a day": ("tokens from", "tokens to"),
    "median day": ("day from", "day to"),
    "cost of 1e9 tokens": ("cost from", "cost to"),
}
_DECIDES: Final = (
    "cluster", "strategy", "reason", "group", "1e9 tokens a day", "cost of 1e9 tokens", "step [s]",
    "memory [GB]", "relative goodput", "replayed goodput", "recovery", "spare nodes",
    "checkpoint every [min]",
)  # fmt: skip
_DOUBT: Final = ("best with probability", "expected loss", "nearest run", "MFU", "median day")
_BEYOND: Final = "nobody has run"
"""How groups of rows beyond all measured runs begin: they stand apart, below a line that says so."""
_SHARES: Final = ("best with probability", "expected loss", "MFU")
_NO_WARNING: Final = ("own runs with ", " was assumed", ": a step of ")


def in_reading_order(table: pd.DataFrame) -> pd.DataFrame:
    """Columns by what a reader asks: first what decides, bounds beside it, then how sure that is."""
    first = [name for one in (*_DECIDES, *_DOUBT) for name in (one, *_AROUND.get(one, ()))]
    return table[sorted(table, key=lambda name: first.index(name) if name in first else len(first))]


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The turned table of a plan, a column per strategy; bounds beside their numbers, as text."""
    inside = {name for names in _AROUND.values() for name in names}
    shown = {
        str(name): [_with_bounds(row, str(name)) for row in table.to_dict("records")]
        for name in table.columns
    }
    kept = pd.DataFrame({name: column for name, column in shown.items() if name not in inside})
    if table["cluster"].nunique() == 1:
        kept = kept.drop(columns="cluster")
    return kept.set_index("strategy").T.rename_axis(columns="strategy")


def _with_bounds(row: Mapping[Any, Any], name: str) -> str:
    """A number to four digits, with its bounds where it has some; a measured one has none."""
    if name in _SHARES and row[name] == row[name]:
        return f"{row[name]:.1%}"
    value = _number(row[name])
    around = [_number(row[other]) for other in _AROUND.get(name, ()) if other in row]
    if not value or set(around) <= {value}:
        return value
    return f"{value} ({' to '.join(around)})" if len(around) == 2 else f"{value} of {around[0]}"


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if value != value else f"{value:.4g}"


def as_latex(table: pd.DataFrame, said: Mapping[str, Sequence[str]]) -> str:
    """The same as LaTeX, notes in a table below."""
    notes = [(head, note) for head, several in said.items() for note in several]
    below = pd.DataFrame(notes, columns=["", "note"]).set_index("")
    return "\n".join([latex_table(compared(table)), *([latex_table(below)] if notes else [])])


def as_text(
    table: pd.DataFrame,
    said: Mapping[str, Sequence[str]],
    width: int | None = None,
    log: FailureLog | None = None,
) -> str:
    """Blocks with as many strategies beside each other as a width takes, then notes by heading.

    The causes of a log stand in a table of their own.
    """
    turned, room = compared(table), terminal_width() if width is None else width
    labels = max(len(str(label)) for label in turned.index)
    wide = max(len(cell) for cell in turned.to_numpy().ravel().tolist())
    many = max((room - labels) // (wide + 3), 1)
    sure = sum(name in _DECIDES for name in turned.index)  # rows above those of doubt
    beyond = table["group"].str.startswith(_BEYOND).to_numpy()
    shown = list[str]()
    for far in (False, True):
        group = turned.loc[:, beyond == far]
        shown += [f"{_BEYOND} these:"] * (far and group.shape[1] > 0)
        for place in range(0, group.shape[1], many):
            one = group.iloc[:, place : place + many]
            rows = one.reset_index().to_numpy().tolist()
            rows.insert(sure, [""] * len(rows[0]))
            shown.append(text_table(["", *one.columns], rows, room))
    found = [] if log is None or not log.incidents else [causes(log)]
    apart = (text_table(one.columns, one.to_numpy().tolist(), room) for one in found)
    return "\n\n".join([*shown, *apart, "\n".join(as_lines(said, room))])


def as_lines(said: Mapping[str, Sequence[str]], width: int) -> list[str]:
    """Notes below their headings, in lines of a width."""
    return [
        line
        for head, notes in said.items()
        for line in (f"{head}:", *(folded(note, width, "  ") for note in notes))
    ]


def as_html(table: pd.DataFrame, said: Mapping[str, Sequence[str]], log: FailureLog | None) -> str:
    """The table, the causes of a log, and notes as lists below their headings."""
    notes = "".join(
        f"<p>{head}</p><ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"
        for head, notes in said.items()
    )
    found = "" if log is None else causes(log).to_html(index=False)
    return f"{compared(table).to_html()}{found}{notes}"


def drawn(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Tokens a day of every row with its interval."""
    from relparallel.plotting import PALETTE, figure

    table, names = table.iloc[::-1], list(dict.fromkeys(table["cluster"]))
    ax = figure(width="double", height=0.5 + 0.28 * len(table))[1] if ax is None else ax
    colors = [list(PALETTE.values())[names.index(name) % len(PALETTE)] for name in table["cluster"]]
    tokens = table["1e9 tokens a day"].to_numpy()
    around = np.abs(table[["tokens from", "tokens to"]].to_numpy().T - tokens)
    ax.barh(range(len(table)), tokens, color=colors, height=0.7)
    ax.errorbar(
        tokens,
        range(len(table)),
        xerr=around,
        fmt="none",
        ecolor="0.25",
        elinewidth=1,
        capsize=2,
    )
    labels = table["strategy"] + ", " + table["recovery"]
    ax.set_yticks(
        range(len(table)), labels if len(names) == 1 else table["cluster"] + "\n" + labels
    )
    ax.set_xlabel("progress [$10^9$ tokens a day], 90 % interval")
    return ax


def save_table(
    path: str | PathLike[str], table: pd.DataFrame, said: Mapping[str, Sequence[str]]
) -> None:
    """Write the table of a plan, or draw it, by the ending of a path."""
    where = require_target(path=path, endings=ENDINGS)
    if where.suffix in (".svg", ".pdf", ".png"):
        held = BytesIO()
        figure = drawn(table).get_figure(root=True)
        assert figure is not None
        figure.savefig(held, format=where.suffix[1:])
        write(where, held.getvalue())
    elif where.suffix == ".csv":
        write(where, table.to_csv(index=False, lineterminator="\n"))
    elif where.suffix == ".json":
        # JSON has neither
        plain = table.astype(object).replace({np.nan: None, np.inf: None})
        notes = [note for each in said.values() for note in each]
        write(where, json.dumps({"notes": notes, "rows": plain.to_dict("records")}, indent=1))
    else:
        write(where, as_latex(table, said))


def warned(
    found: Sequence[JointPlan], notes: Sequence[str], log: Any
) -> tuple[list[str], list[str]]:
    """What may change a decision, and what was assumed."""
    steps = dict.fromkeys(note for one in found if one.step for note in one.step.notes)
    wired = [one.network.graph_attributes for one in found if one.network is not None]
    guessed = [note for note in notes if "is a guess" in note]
    rare = never(found[0]) if log is None else unseen(log.log, found[0])
    plain = [note for note in steps if any(words in note for words in _NO_WARNING)]
    doubted = [note for note in steps if note not in plain]
    warnings = [note for note in (vendors(found)[1], *guessed, *doubted, *rare) if note]
    assumed = [*notes, *dict.fromkeys(note for one in wired for note in one.get("notes", ()))]
    assumed += [*(log.facts(found[0]) if log else ()), *plain]
    return warnings, [note for note in assumed if note not in guessed]


def notes_of(plan: Any) -> dict[str, list[str]]:
    """Warnings, what was assumed, how sure days and orders are, and what to measure next."""
    best, several = plan.best, len(plan.found) > 1
    doubt = [f"on {best.cluster.name}, " * several + plan.day.said()]
    doubt += in_order(plan.clusters()) if several else []
    doubt += [] if plan.log is None else plan.log.said(best, plan.strategies, plan.rank)
    doubt += filter(None, dict.fromkeys(one.ranking() for one in plan.doubts))
    said = {
        "Warnings": [*plan.warnings],
        "Assumed": [note for note in plan.notes if note not in plan.warnings],
        "Doubt": doubt,
        "To measure next": [
            said
            for one, doubt in zip(plan.found, plan.doubts, strict=True)
            for said in doubt.said(f"on {one.cluster.name}, " * several)
        ],
    }
    return {head: notes for head, notes in said.items() if notes}


def in_order(table: pd.DataFrame) -> list[str]:
    """Say how sure the order of clusters is, the best of them first, apart for vendors without one."""
    by = "tokens for the money" if "cost of 1e9 tokens" in table else "tokens a day"
    groups: list[list[str]] = []
    before, chance = "", np.nan
    for name, row in table.iterrows():
        if chance == chance:  # a number
            groups[-1].append(f"{name} (after {before} with {chance:.0%})")
        else:
            best = row["best cluster with probability"]
            groups.append([f"{name} (the best with probability {best:.0%})"])
        before, chance = str(name), row["before the next with probability"]
    return [f"most {by}: {', '.join(said)}" for said in groups if len(said) > 1]


def _models() -> str:
    heads = ("model", "layers", "hidden", "heads", "parameters [1e9]", "active [1e9]", "sequence")
    rows = []
    for name in transformers():
        m = transformer(name)
        sizes = (f"{m.parameters / 1e9:.4g}", f"{m.active_parameters / 1e9:.4g}")
        rows.append((name, m.layers, m.hidden, m.heads, *sizes, m.sequence))
    return text_table(heads, rows)


def _clusters() -> str:
    fields = ("cluster", "accelerator", "gpus_per_node", "network_gbit")
    rows = [[row[name] for name in fields] for row in shipped_rows("clusters.csv")]
    chips = []
    for name in accelerators():
        chip = accelerator(name)
        peaks = ", ".join(f"{number} {rate / TFLOP:.4g}" for number, rate in chip.peak.items())
        chips.append((name, peaks, f"{chip.memory / GB:.4g}", f"{chip.node_link / GB:g}"))
    first = text_table(
        ("cluster", "accelerator", "GPUs of a node", "network of a node [Gbit/s]"), rows
    )
    heads = ("accelerator", "peak [TFLOP/s]", "memory [GB]", "link inside a node [GB/s]")
    return f"{first}\n\n{text_table(heads, chips)}"


def _software() -> str:
    fields = ("software", "year", "attention", "gradient_bytes")
    rows = {
        row["software"]: [*(row[name] for name in fields), ""]
        for row in shipped_rows("software.csv")
    }
    for name in accelerators():
        known = calibration(name)
        for measured in () if known.borrowed else rows.keys() & set(known.factors):
            if known.family not in rows[measured][-1].split(", "):
                rows[measured][-1] = ", ".join(filter(None, (rows[measured][-1], known.family)))
    return text_table(
        ("software", "year", "attention", "gradients sent [bytes]", "measured on"), rows.values()
    )


LISTS: Final[Mapping[str, Callable[[], str]]] = {
    "models": _models,
    "clusters": _clusters,
    "software": _software,
}
"""By the command that prints them."""
