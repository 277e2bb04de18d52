"""The ledger: every claim of the project beside the number it is held against and its source.

`ledger` computes all rows; ``python -m relparallel ledger`` prints them. A row is *reproduced*
inside its tolerance, *printed* or *ours* (see `relparallel.published`), a declared *discrepancy*
with its reason, *failed*, or *open* while no model computes it. Its origin says whose number it is:
only *printed* and *artefact* (authors' code or data) are published. Published numbers are computed
when they are asked for. Both sides of a theorem are read from ``data/derived/theorems.csv``, which
the tests of a checkout verify: an installed package shows them only.
"""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import pandas as pd

from evidence.claims.registry import Claim, compute, find_claim
from evidence.claims.theorems import Theorem, theorems
from relparallel._checks import require_instance
from relparallel._notices import doing, told
from relparallel._tables import folded, terminal_width, text_table
from relparallel.published import PUBLISHED, Fact, Number, Origin, data_folder, facts

__all__ = ["COLUMNS", "check", "ledger", "summary", "systems"]

COLUMNS: Final = (
    "id",
    "system",
    "topic",
    "role",
    "origin",
    "value",
    "computed",
    "error",
    "tolerance",
    "status",
    "reason",
)
STATUSES: Final = ("reproduced", "discrepancy", "failed", "open")
ORIGINS: Final = (*get_args(Origin), "theorem")
_ROOM: Final = 80  # columns of what is printed
_UNCOMPUTED: Final = {
    "check": "no model computes it yet",
    "input": "an observation that models start from",
    "quoted": "a headline whose inputs are not public",
}

Row = dict[str, object]


def check(row: str | Fact | Theorem) -> Row:
    """A number of the ledger beside the one computed here, or a theorem with its two sides.

    Parameters
    ----------
    row : str, Fact or Theorem
        Id of a row or of a theorem, or the row itself.

    Returns
    -------
    dict
        One entry for each of `COLUMNS`: ``value`` is the row's (``origin`` says whose),
        ``computed`` is ours, ``status`` compares them by the row's own tolerance. Of a theorem,
        whose ``role`` and ``origin`` say so, two independent computations agree to a relative
        1e-12, and the reason is the statement. Both are read from a table of this package, which
        its tests hold to what they compute.

    Notes
    -----
    A declared discrepancy that agrees after all is *failed*: the declaration is out of date.

    Examples
    --------
    >>> row = check("TOPO-001")
    >>> row["value"], row["computed"], row["status"]
    ('16', '16', 'reproduced')
    """
    if isinstance(row, str):
        row = _named(row)
    require_instance((Fact, Theorem), row=row)
    return _theorem(row) if isinstance(row, Theorem) else _fact(row)


def _named(identity: str) -> Fact | Theorem:
    """The row or the theorem of this id."""
    if identity in facts():
        return facts()[identity]
    for theorem in theorems():
        if theorem.id == identity:
            return theorem
    raise ValueError(f"row={identity!r} names no row and no theorem; ledger()['id'] lists them")


def _fact(fact: Fact) -> Row:
    """Ledger row of a number: computed by its claim and compared by its own tolerance."""
    claim = find_claim(fact)
    row: Row = {
        **dict.fromkeys(COLUMNS, ""),
        "id": fact.id,
        "system": fact.system,
        "topic": fact.topic,
        "role": fact.role,
        "origin": fact.origin,
        "value": fact.value_text,
        "tolerance": fact.tolerance,
    }
    if claim is None:
        return row | {"status": "open", "reason": _UNCOMPUTED[fact.role]}
    return row | _verdict(claim, fact)


def _verdict(claim: Claim, fact: Fact) -> Row:
    """Computed values, error, status and reason of a row that has a claim."""
    declared = claim.discrepancies.get(fact.id)
    try:
        computed = _computed(claim.function, fact)
        agreement = agrees(fact, computed)
    except (ValueError, TypeError, ArithmeticError) as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    if declared:
        status = "failed" if agreement.within else "discrepancy"
        reason = "declared as a discrepancy, but it agrees" if agreement.within else declared
    else:
        status = "reproduced" if agreement.within else "failed"
        reason = "" if agreement.within else "outside its tolerance, or the tolerance is no number"
    return {
        "computed": _text(computed),
        "error": agreement.error,
        "status": status,
        "reason": reason,
    }


class Agreement(NamedTuple):
    """How far a computed value lies from a published one, and whether the tolerance admits it."""

    # : largest relative error for relative tolerances, else absolute, in the row's unit
    error: float
    within: bool | None  #: None where the tolerance is no number: a bound, a headline, a run time


def agrees(fact: Fact, computed: Sequence[Number | None]) -> Agreement:
    """Compare computed values, None where the row is blank, with a row by its own tolerance.

    By its ``rtol``, ``atol`` or ``digits``. With 0 digits integers are equal, and decimals to the
    last digit printed; with n both are equal after rounding to n. A row without any of the three
    has no verdict.

    >>> agrees(facts()["TOPO-022"], [5.466667])
    Agreement(error=0.0, within=True)
    """
    if len(computed) != len(fact.values):
        raise ValueError(
            f"computed must hold {len(fact.values)} values for {fact.id}, got {len(computed)}"
        )
    verdicts = []
    for token, published, value in zip(fact.tokens, fact.values, computed, strict=True):
        if published is None and value is None:
            continue
        if not isinstance(published, int | float) or not isinstance(value, int | float):
            raise ValueError(f"computed must match {fact.value_text!r} of {fact.id}, got {value!r}")
        verdicts.append(_compare(fact, token, published, value))
    error = max((v.error for v in verdicts), default=0.0)
    stated = (fact.rtol, fact.atol, fact.digits) != (None, None, None)
    return Agreement(error=error, within=all(v.within for v in verdicts) if stated else None)


def _compare(fact: Fact, token: str, published: Number, value: Number) -> Agreement:
    """Error and verdict for one number."""
    absolute = abs(value - published)
    relative = absolute / abs(published) if published else float(absolute > 0)
    slack = 1 + 1e-9  # of the comparison itself: a difference equal to the tolerance is inside it
    if fact.rtol is not None:
        return Agreement(error=relative, within=relative <= fact.rtol * slack)
    if fact.digits:
        style = f".{fact.digits - 1}e"
        return Agreement(error=relative, within=format(value, style) == format(published, style))
    if fact.digits == 0:
        printed = 0.0 if isinstance(published, int) else 0.5 * _last_place(token) * slack
        return Agreement(error=float(absolute), within=absolute <= printed)
    return Agreement(error=float(absolute), within=absolute <= (fact.atol or 0.0) * slack)


def _last_place(token: str) -> float:
    """Value of the last printed digit: 1e-4 for 0.8017, 1e-20 for 2.0002e-16."""
    mantissa, _, exponent = token.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals))


@cache
def _computed(function: Callable[..., Any], fact: Fact) -> tuple[Number | None, ...]:
    """What a claim's function gives for a row, computed once in a process."""
    return compute(Claim(function=function, ids=(fact.id,)), fact)


def _theorem(theorem: Theorem) -> Row:
    """Ledger row of a theorem, from the table of both its sides."""
    return {
        "id": theorem.id,
        "system": theorem.system,
        "topic": "theorems",
        "role": "theorem",
        "origin": "theorem",
        "value": _text((theorem.expected,)),
        "computed": _text((theorem.computed,)),
        "error": theorem.error,
        "tolerance": f"rel {theorem.tolerance:g}",
        "status": "reproduced" if theorem.error <= theorem.tolerance else "failed",
        "reason": theorem.statement,
    }


@cache
def _frame(topic: str | None) -> pd.DataFrame:
    rows, chosen = list[Row](), facts(topic)
    for number, fact in enumerate(chosen.values()):
        doing(f"row {number} of {len(chosen)}, {fact.topic}")
        rows.append(check(fact))
    if topic is None:
        rows += [check(theorem) for theorem in theorems()]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(error=pd.to_numeric(frame["error"]))


@told
def ledger(topic: str | None = None) -> pd.DataFrame:
    """Every row and every theorem with its origin, its computed value and its status.

    Parameters
    ----------
    topic : str, optional
        Only the rows of this table.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`; ``error`` is relative for relative tolerances, else absolute in the row's
        unit.

    Notes
    -----
    Computed once in a process, in the order of the tables.

    Examples
    --------
    >>> set(ledger("models")["status"]) <= {"reproduced", "discrepancy", "failed", "open"}
    True
    """
    return _frame(topic).copy()


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the rows of a ledger by topic, role, origin and status.

    Parameters
    ----------
    frame : DataFrame
        A `ledger`, or a part of one.

    Returns
    -------
    DataFrame
        One row for each topic, role and origin, one column for each status, and the total.

    Examples
    --------
    >>> int(summary(ledger("models"))["failed"].sum())
    0
    """
    require_instance(pd.DataFrame, frame=frame)
    counts = frame.groupby(["topic", "role", "origin", "status"]).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(STATUSES), fill_value=0).rename_axis(columns=None)
    return counts.assign(total=counts.sum(axis=1))


def systems(frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every reading-list system: where its model is, which notebook shows it, what is reproduced.

    Parameters
    ----------
    frame : DataFrame, optional
        The ledger to count in; the whole one by default.

    Returns
    -------
    DataFrame
        The columns of ``data/systems.csv``; ``reproduced``, the number of ledger rows in that
        status whose system is this one or one of its ``names`` (patterns in any case, separated by
        semicolons); and how many of them come from each origin.

    Notes
    -----
    A system is *working* when its model does all that ``what_working_means`` says, *partial* when
    some of it, and *open* when there is no model yet.

    Examples
    --------
    >>> set(systems(ledger("models"))["status"]) <= {"working", "partial", "open"}
    True
    """
    require_instance((pd.DataFrame, type(None)), frame=frame)
    rows = _frame(None) if frame is None else frame
    done = rows[rows["status"] == "reproduced"]
    table = pd.read_csv(data_folder() / "systems.csv", dtype=str, keep_default_na=False)
    own = [
        done.loc[[belongs(row, system, names) for row in done["system"]], "origin"].value_counts()
        for system, names in zip(table["system"], table["names"], strict=True)
    ]
    counts = (
        pd.DataFrame(own).reindex(columns=list(ORIGINS)).fillna(0).astype(int).set_axis(table.index)
    )
    return table.assign(reproduced=counts.sum(axis=1)).join(counts)


def belongs(row: str, system: str, names: str) -> bool:
    """Whether a ledger row of the system ``row`` is one of a reading-list system and its names."""
    patterns = [system, *names.split(";")]
    return any(fnmatchcase(row.lower(), pattern.strip().lower()) for pattern in patterns)


def print_ledger(*, csv: Path | None = None) -> int:
    """Print counts and what does not agree, write all on request; return 1 if a row failed, else 0."""
    frame, room = ledger(), min(terminal_width(), _ROOM)
    counts = pd.crosstab(frame["topic"], frame["status"]).reindex(columns=list(STATUSES)).fillna(0)
    table = counts.astype(int).assign(total=counts.sum(axis=1).astype(int)).reset_index()
    print(f"{folded(in_words(frame), room)}\n")  # noqa: T201
    print(text_table(table.columns, table.to_numpy().tolist(), room))  # noqa: T201
    for line in _lines(frame, room):
        print(line)  # noqa: T201
    told = "--csv FILE writes" if csv is None else f"{csv} has"
    print(f"\n{told} all {len(frame)} rows")  # noqa: T201
    if csv is not None:
        frame.to_csv(csv, index=False, lineterminator="\n")
    return int((frame["status"] == "failed").any())


def in_words(frame: pd.DataFrame) -> str:
    """How many checks of each origin are reproduced, as a sentence."""
    done = frame[(frame["status"] == "reproduced") & frame["role"].isin(["check", "theorem"])]
    count = done["origin"].value_counts().reindex(list(ORIGINS), fill_value=0)
    return (
        f"Reproduced: {count[list(PUBLISHED)].sum()} published numbers ({count['printed']} printed "
        "in their "
        f"source, {count['artefact']} from its authors' code or data), {count['formula']} values "
        "of "
        f"published formulas, {count['second route']} second computations of ours, "
        f"{count['theorem']} theorems; {count['unverified']} numbers that nobody read in their "
        "source, "
        f"{count['unstated']} of unstated origin."
    )


def _lines(frame: pd.DataFrame, room: int) -> Iterator[str]:
    """What failed and what was declared as different, each with its reason below it."""
    for status in ("failed", "discrepancy"):
        for row in frame[frame["status"] == status].to_dict("records"):
            sides = f"{_cut(_short(row['computed']), 16)} for {_cut(row['value'], 16)}"
            yield ""
            yield _cut(f"{status}: {row['id']}, {sides}", room)
            yield folded(row["reason"], room, indent="    ")


def _text(values: Sequence[Number | None]) -> str:
    """Computed values as text: integers whole, floats to 12 significant digits."""
    return "; ".join(
        "" if v is None else str(v) if isinstance(v, int) else f"{v:.12g}" for v in values
    )


def _short(computed: str) -> str:
    """Computed text with five digits where it is one number."""
    try:
        number = float(computed)
    except ValueError:
        return computed
    return "no value" if pd.isna(number) else f"{number:.5g}"


def _cut(value: object, width: int) -> str:
    text = str(value)
    return text if len(text) <= width else text[: width - 1] + "…"
