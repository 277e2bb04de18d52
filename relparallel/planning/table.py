"""Tables of plans for a reader, and the table of measured speeds that a plan may start from."""

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

import pandas as pd

from relparallel._checks import require_real
from relparallel._latex import terminal_width, text_table
from relparallel.optimize.joint_plans import JointPlan
from relparallel.parallel import Strategy, notation, read_strategy
from relparallel.training.log_files import read_table

ENDINGS: Final = (".csv", ".json", ".tex", ".svg", ".pdf", ".png")
"""Files that `Plan.save` writes."""
_AROUND: Final[Mapping[str, tuple[str, ...]]] = {
    "memory [GB]": ("of [GB]",), "step [s]": ("step from", "step to"),
    "relative goodput": ("goodput from", "goodput to"),
    "1e9 tokens a day": ("tokens from", "tokens to"), "cost of 1e9 tokens": ("cost from", "cost to"),
}  # fmt: skip


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The table of a plan turned, a column for each strategy; bounds beside their numbers, as text."""
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
    value = _number(row[name])
    around = [_number(row[other]) for other in _AROUND.get(name, ())]
    if not value or set(around) <= {value}:
        return value
    return f"{value} ({' to '.join(around)})" if len(around) == 2 else f"{value} of {around[0]}"


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else f"{value:.4g}"


def as_text(table: pd.DataFrame, width: int | None = None) -> str:
    """Blocks with as many strategies beside each other as a width takes, that of the terminal if omitted."""
    turned, room = compared(table), terminal_width() if width is None else width
    labels = max(len(str(label)) for label in turned.index)
    wide = max(len(cell) for cell in turned.to_numpy().ravel().tolist())
    many = max((room - labels) // (wide + 3), 1)
    blocks = [turned.iloc[:, place : place + many] for place in range(0, turned.shape[1], many)]
    return "\n\n".join(
        text_table(["", *block.columns], block.reset_index().to_numpy().tolist(), room) for block in blocks
    )


def read_measured(path: str | PathLike[str]) -> dict[Strategy, float]:
    """Measured speeds of a CSV file with the columns strategy, as `read_strategy` takes it, and tokens/s."""
    found: dict[Strategy, float] = {}
    table = read_table(path, ("strategy", "tokens/s"))
    for number, (text, speed) in enumerate(table.itertuples(index=False), 2):
        try:
            strategy = read_strategy(text)
            found.setdefault(strategy, 0.0)
            if found[strategy]:
                raise ValueError(f"{notation(strategy)} stands there twice")
            found[strategy] = require_real(speed=float(speed), above=0, at_most=1e30)
        except ValueError as error:
            raise ValueError(
                f"measured must be a table of speeds, got {path}, row {number}: {error}"
            ) from None
    return found


def many_stages(one: JointPlan, layers: int) -> str | None:
    """Say why the best has more stages than half the layers, if it has."""
    stages = one.strategy.pipeline
    if 2 * stages <= layers:
        return None
    said = f"{stages} stages for {layers} layers are the best on {one.cluster.name or 'the cluster'}"
    other = one.search.best(lambda site, row: 2 * int(site.fastest.grid.choices["pipeline"][row]) <= layers)
    if other is None:
        return f"{said}: none with fewer stages fits"
    lost = 1 - other.score / one.choice.score
    strategy = one.search.sites[other.site].fastest.grid[other.row]
    return f"{said}: with at most {layers // 2}, {notation(strategy)} loses {lost:.2%}"


def among_measured(one: JointPlan, asked: Strategy) -> str:
    """Say what a strategy loses among those of measured speed."""
    name = notation(asked)
    found = one.search.best(lambda site, row: bool(site.fastest.grid[row] == asked))
    if found is None:
        return f"{name} is not among the measured strategies."
    said = f"{name}: {found.throughput:,.0f} tokens/s measured, relative goodput {found.state.share:.2%}"
    lost = 1 - found.score / one.choice.score
    if lost <= 0:
        return f"{said} with {found.policy}; it is the best."
    return f"{said} with {found.policy}: {lost:.2%} less than {notation(one.strategy)}."
