"""One page that answers "what if": speeds from a grid of plans, closed forms of goodput computed live.

The script in the page evaluates the formulas of `training.relative_goodput`; a test holds the two equal.
"""

import json
from typing import Any

from relparallel.planning import plan, read_strategy
from relparallel.planning.plans import Plan
from relparallel.reproduce.page import PARTS, Page
from relparallel.units import DAY

Grid = tuple[tuple[str, str, tuple[int, ...]], ...]
GRID: Grid = (
    ("llama3-8b", "h100-80gb-dgx", (64, 512)),
    ("llama3-70b", "h100-80gb-dgx", (512, 2048)),
    ("llama3-405b", "h100-80gb-dgx", (4096, 16384)),
    ("gpt3-175b", "a100-80gb-selene", (1536,)),
    ("llama3-405b", "gb200-186gb-nvl72", (2048, 8192)),
)
"""Models, clusters and numbers of GPUs of which the page knows the best strategies."""


def whatif_page(grid: Grid | None = None) -> Page:
    """Page with sliders over failures and recovery, for the best strategies of every entry of a grid."""
    known = [
        entry
        for model, cluster, sizes in (GRID if grid is None else grid)
        for gpus in sizes
        for entry in _entries(plan(model, cluster, gpus=gpus, strategies=4))
    ]
    body = (PARTS / "whatif.html").read_text(encoding="utf-8")
    script = (PARTS / "whatif.js").read_text(encoding="utf-8")
    filled = body.replace("{{GRID}}", json.dumps(known)).replace("{{SCRIPT}}", script)
    return Page(name="whatif", title="What if?", body=filled, entries=(("What if?", "what-if"),))


def _entries(found: Plan) -> list[dict[str, Any]]:
    """What the page knows of the strategies of a plan: nodes, nodes of a replica, tokens a day."""
    cluster, rows = found.best.cluster, []
    for row in found.to_frame().drop_duplicates("strategy").to_dict("records"):
        one = read_strategy(row["strategy"])
        nodes = one.gpus // cluster.gpus_per_node
        replica = max(one.model_parallel // cluster.gpus_per_node, 1)
        if nodes % replica == 0:
            tokens = found.global_batch * found.model.sequence * DAY / 1e9
            speed = [float(f"{tokens / row[name]:.5g}") for name in ("step [s]", "step to", "step from")]
            name = f"{found.name}, {cluster.gpus:,} GPUs of {cluster.name}: {row['strategy']}"
            rows.append({"name": name, "nodes": nodes, "replica": replica, "speed": speed})
    return rows
