"""Compiled kernels: made ahead by ``python -m relparallel warm``, dropped if old."""

import ast
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from .pins import ROOT


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith(
        ("relparallel.", "chapters.")
    )


def drop_outdated(
    packages: tuple[Path, ...] = (ROOT / "relparallel", ROOT / "notebooks" / "chapters"),
) -> list[Path]:
    """Remove kept kernels that are older than a module they use, and return them.

    numba compares a kernel with its own file alone, but what it calls elsewhere was compiled into
    it.
    """
    tops = {package.parent for package in packages}
    texts = {
        path: path.read_text("utf-8") for package in packages for path in package.rglob("*.py")
    }
    with_kernels = {path: text for path, text in texts.items() if "numba" in text}
    used = {path: _imported(path, text, tops) & set(texts) for path, text in with_kernels.items()}

    def newest(path: Path) -> float:
        return max([path.stat().st_mtime, *map(newest, used.get(path, ()))])

    changed = {path: newest(path) for path in with_kernels}
    kept = {
        data: data.parents[1] / f"{data.name.partition('.')[0]}.py"
        for package in packages
        for data in package.rglob("*.nbc")
    }
    outdated = [
        data for data, path in kept.items() if data.stat().st_mtime < changed.get(path, 0.0)
    ]
    for data in outdated:
        data.unlink()
        data.with_suffix("").with_suffix(".nbi").unlink(
            missing_ok=True
        )  # the index of a kernel and its types
    return outdated


def _imported(path: Path, text: str, tops: set[Path]) -> set[Path]:
    """Where the modules would lie from which a file imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            for top in [path.parents[node.level - 1]] if node.level else tops:
                base = top.joinpath(*(node.module or "").split("."))
                found |= {base.with_suffix(".py"), *(base / f"{a.name}.py" for a in node.names)}
    return found


def warm(stream: TextIO | None = None) -> None:
    """Compile what main functions need, by example calls in turn; each kernel is kept at once."""
    from numba.core.event import install_recorder

    stream = sys.stdout if stream is None else stream
    items = list(examples())
    for number, (name, call) in enumerate(items, 1):
        stream.write(f"[{number}/{len(items)}] {name} ... ")
        stream.flush()
        start = time.monotonic()
        with install_recorder("numba:compile") as recorded:
            call()
        made = sum(event.is_start and _is_ours(event) for _, event in recorded.buffer)
        stream.write(
            f"{made} kernels compiled ({time.monotonic() - start:.1f} s)\n" if made else "ready\n"
        )


def examples() -> Iterator[tuple[str, Callable[[], object]]]:
    """Small calls of the main functions, by what they are about."""
    import networkx as nx
    import numpy as np

    import relparallel as rp
    from chapters import s23

    evaluate, bounds, estimate = (
        rp.reliability.evaluate,
        rp.reliability.bounds,
        rp.reliability.estimate,
    )
    rng = np.random.default_rng
    grid, torus, fabric = (
        nx.grid_2d_graph(4, 4),
        rp.topology.torus((4, 4, 4)),
        rp.topology.fat_tree(4),
    )
    gpt = rp.workload.transformer("gpt3-175b")
    selene = rp.hardware.cluster("a100-80gb-selene", gpus=64)
    nodes = rp.hardware.Cluster(nodes=8)
    split = rp.parallel.Strategy(tensor=8, pipeline=4, data=2, recompute="full")
    storage = rp.training.Checkpointing(levels=(rp.training.remote(size=5.7e12, bandwidth=100e9),))
    recovery = rp.training.Recovery("spares", repair=3600.0, restart=300.0)

    def failing() -> Any:
        return rp.training.failure_model(nodes, split, rates="llama3")

    yield "exact reliability", lambda: evaluate(grid, "all", 0.9, 0.99, method="exact")
    yield "reliability of a pair", lambda: evaluate(grid, [(0, 0), (3, 3)], 0.9, method="exact")
    yield "reliability of a fabric", lambda: evaluate(fabric, "all", 0.99, 0.99)
    yield "importance", lambda: evaluate(grid, "all", 0.9, method="exact").importance()
    yield "bounds", lambda: bounds(torus, link_up=0.999)
    yield "sampling", lambda: estimate(torus, link_up=0.9, method="crude", samples=4096, rng=rng(0))
    yield (
        "rare events",
        lambda: estimate(torus, link_up=0.999, method="permutation", samples=64, rng=rng(0)),
    )
    yield "distances", lambda: rp.metrics.hop_statistics(fabric)
    yield (
        "resilience",
        lambda: s23.resilience_curve(fabric, "switches", [0.1], samples=8, rng=rng(0)),
    )
    yield (
        "pipeline schedules",
        lambda: rp.parallel.simulate_schedule("1f1b", stages=4, micro_batches=8),
    )
    yield "step time", lambda: rp.parallel.step_time(gpt, split, selene, global_batch=64)
    yield (
        "simulation",
        lambda: rp.training.simulate(failing(), 5.0, storage, recovery, 2, years=4.0, rng=rng(0)),
    )
    yield (
        "joint optimum",
        lambda: rp.optimize.joint(
            gpt, selene, "llama3", global_batch=64, limits={"schedule": "1f1b"}, spares=0
        ),
    )
