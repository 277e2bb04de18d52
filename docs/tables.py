"""What pages show that is computed anew: claims, survey, scoreboard, and jobs of the what-if page.

``python docs/tables.py build/pages`` writes each as a piece of HTML.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

import pandas as pd

from evidence.claims.scoreboard import blind_records, board, peers
from evidence.computed import ledger
from evidence.recipes import recipe_runs
from relparallel.hardware import Cluster
from relparallel.parallel import Strategy, notation, read_strategy, step_time
from relparallel.planning import plan
from relparallel.published import data_folder, facts, topics
from relparallel.units import DAY

HERE: Final = Path(__file__).parent
Grid = Iterable[tuple[str, str, tuple[int, ...]]]
JOBS: Final[Grid] = (
    ("llama3-405b", "h100-80gb-dgx", (16384, 4096)),
    ("llama3-70b", "h100-80gb-dgx", (2048, 512)),
    ("llama3-8b", "h100-80gb-dgx", (512, 64)),
    ("gpt3-175b", "a100-80gb-selene", (1536,)),
    ("llama3-405b", "gb200-186gb-nvl72", (8192, 2048)),
)
"""Models, clusters and numbers of GPUs of which the what-if page knows the best strategies."""


def claims() -> pd.DataFrame:
    """Every row of the ledger with its source, those first whose published number is not ours."""
    known = {row: fact for topic in topics() for row, fact in facts(topic).items()}
    rows = ledger().rename(columns={"status": "state"})
    for name in ("quantity", "unit", "source"):
        rows[name] = [getattr(known.get(row), name, "") for row in rows["id"]]
    rows = rows.sort_values("state", key=lambda states: states != "discrepancy", kind="stable")
    first = ["id", "value", "computed", "unit", "state", "reason", "system", "quantity", "topic"]
    return rows[[*first, "origin", "tolerance", "source"]]


def survey() -> pd.DataFrame:
    """Every work that was read, with its sentence in both languages."""
    table = pd.read_csv(data_folder() / "literature.csv", keep_default_na=False)
    table["title"] = '<a href="bibliography.html#' + table["key"] + '">' + table["title"] + "</a>"
    table = table.rename(columns={"under_failures": "failures"})
    first = ["title", "english", "chinese", "failures", "weighs", "method"]
    return table[[*first, "optimises", "notebook"]]


def under_failures() -> dict[str, pd.DataFrame]:
    """Scores of the benchmark of goodput, and what each column predicts too much [points]."""
    folder = data_folder() / "benchmarks"
    scores = pd.read_csv(folder / "goodput_scores.csv", index_col="column")
    cells = pd.read_csv(folder / "goodput_under_failures.csv")
    off = 100 * cells[[*scores.index]].sub(cells["replay"], axis=0)
    misses = off.groupby(cells["recovery"], sort=False).mean()
    return {"goodput": scores.T.rename_axis(columns=None), "goodput_misses": misses}


def filtered(table: pd.DataFrame, widths: str, *columns: str, escape: bool = True) -> str:
    """HTML of a table, least widths in rem, with a choice of values for some of its columns."""
    space = {name: f"{width}rem" for name, width in zip(table, widths.split(), strict=True)}
    kind = {"index": False, "border": 0, "classes": "filtered", "col_space": space}
    with pd.option_context("display.max_colwidth", None):
        text = table.to_html(na_rep="", escape=escape, **kind)
    text = re.sub(r"<tr>(\s*<td>)([^<]+)", r'<tr id="\2">\1\2', text)
    text = text.replace("<table", f'<table data-filter="{",".join(columns)}"', 1)
    return f'<div class="wide">{text}</div>\n<script src="../_static/filter.js"></script>\n'


def jobs(grid: Grid) -> Iterator[dict[str, Any]]:
    """What the page knows of a job's strategies: nodes, nodes of a replica, tokens a day."""
    for model, name, sizes in grid:
        for gpus in sizes:
            found = plan(model, name, gpus=gpus, strategies=4)
            machine, tokens = found.best.cluster, found.global_batch * found.model.sequence
            for row in found.to_frame().drop_duplicates("strategy").to_dict("records"):
                steps = [row[column] for column in ("step [s]", "step to", "step from")]
                said = f"{found.name}, {gpus:,} GPUs of {name}, batch {found.global_batch:,}"
                yield from entry(said, read_strategy(row["strategy"]), machine, tokens, steps)


def entry(
    job: str, split: Strategy, machine: Cluster, tokens: int, steps: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """A strategy whose replicas have nodes of their own: speeds by the steps and their bounds."""
    nodes = split.gpus // machine.gpus_per_node
    replica = max(split.model_parallel // machine.gpus_per_node, 1)
    speed = [float(f"{tokens * DAY / 1e9 / step:.5g}") for step in steps]
    if nodes % replica == 0:
        shape = {"nodes": nodes, "replica": replica, "copies": split.state_copies}
        yield {"name": f"{job}: {notation(split)}", **shape, "speed": speed}


def runs() -> Iterator[dict[str, Any]]:
    """The same of recipes that somebody ran; the first is Meta's."""
    for name, run in recipe_runs().items():
        known = {"software": run.software, "precision": run.precision}
        step = step_time(run.model, run.strategy, run.cluster, run.global_batch, **known)
        low, high = step.interval()
        said = f"{name}, as run, batch {run.global_batch:,}"
        tokens = run.global_batch * run.model.sequence
        yield from entry(said, run.strategy, run.cluster, tokens, (step.total, high, low))


def ledger_piece() -> dict[str, str]:
    """The ledger."""
    return {"claims": filtered(claims(), "7 6 6 5 6 16 8 10 7 6 6 60", "state", "topic", "origin")}


def job_piece() -> dict[str, str]:
    """The form of the what-if page with its jobs."""
    grid = json.dumps([*runs(), *jobs(JOBS)])
    return {"whatif": (HERE / "whatif.html").read_text("utf-8").replace("{{GRID}}", grid)}


def other_pieces() -> dict[str, str]:
    """The survey and the tables of the scoreboard and the benchmark."""
    shown = {
        "blind": blind_records(),
        "sources": board(),
        "peers": peers().set_index("model"),
        **under_failures(),
    }
    texts = {
        name: table.to_html(float_format="{:.1f}".format, na_rep="", border=0)
        for name, table in shown.items()
    }
    pieces = {name: f'<div class="wide">{text}</div>\n' for name, text in texts.items()}
    columns = ("failures", "method", "notebook")
    return pieces | {"survey": filtered(survey(), "12 14 14 5 6 6 6 4", *columns, escape=False)}


def write(folder: Path) -> None:
    """Write every piece, as each is there."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        begun = [pool.submit(piece) for piece in (ledger_piece, job_piece, other_pieces)]
        sys.stderr.write("tables of the pages: half a minute on two cores\n")
        for done in as_completed(begun):
            for name, text in done.result().items():
                (folder / f"{name}.html").write_text(text, encoding="utf-8")
            sys.stderr.write(f"written: {', '.join(done.result())}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
