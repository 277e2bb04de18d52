"""Strategies per second: ours, as grid and one by one, and llm-analysis on the same ones, in turn.

GPT-3 175B on A100s. Rows of the task "complete" are distinct strategies that keep every rule, each
with its memory, its verdict and its time; those of "search" are the grid of 512 GPUs with three
schedules, where most rows break a rule or do not fit, beside the number of strategies in Calculon's
own space. One by one, `memory` and `step_time` are called for a strategy, as llm-analysis is: its
analysis gives memory and time of a step, with the efficiency of the products as an input and
without schedules, so it is asked about strategies that it can tell apart. One thread each, seconds
of the processor, medians over rounds in which each runs once. Facts about Calculon and llm-analysis
are quoted below; where llm-analysis is not installed, it is skipped with that reason. Run it by
``make bench``; it writes ``data/benchmarks/strategies.csv``.
"""

import os

if __name__ == "__main__":  # libraries count their threads when they are loaded
    for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import runpy
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, StrategyGrid, memory, price_strategies
from relparallel.parallel.feasibility import FEASIBLE, rules_of_rows
from relparallel.parallel.step import step_time
from relparallel.published import facts
from relparallel.workload import Transformer

OUTPUT = Path(__file__).resolve().parents[2] / "data" / "benchmarks" / "strategies.csv"
WRITE = runpy.run_path(str(Path(__file__).with_name("run.py")))["write"]
MODEL = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
GPUS, BATCH = 1024, 3072  # of the rows that are evaluated completely
# GPUs and sequences of the grid that is searched, those of Calculon's own count
SEARCH = (512, 1536)
SCHEDULES = ("gpipe", "1f1b", "interleaved_1f1b")  # of the grid that is searched
SAMPLE, ROUNDS = 100, 5  # strategies one by one, rounds


def lawful(gpus: int, batch: int) -> StrategyGrid:
    """Strategies that keep every rule, whether they fit or not."""
    parts = []
    # all at once would not fit
    for micro_batch in (b for b in range(1, batch + 1) if batch % b == 0):
        choices = StrategyGrid.all(gpus, MODEL, batch, micro_batch=micro_batch).choices
        parts.append(choices[rules_of_rows(MODEL, choices, batch, gpus, node=8) == FEASIBLE])
    return StrategyGrid(choices=np.concatenate(parts))


def sample(grid: StrategyGrid, count: int) -> list[Strategy]:
    """Strategies of every tool: 1F1B, one chunk per stage, whole sequences, full shards."""
    plain = grid.where(context=1, virtual_stages=1, schedule="1f1b", zero_stage=(0, 1, 3))
    plain = plain[plain.choices["shard"] == plain.choices["data"]]
    picked = np.linspace(0, len(plain) - 1, count).astype(np.int64)
    return [plain[row] for row in picked.tolist()]


def one_by_one(strategies: list[Strategy], gpus: int, batch: int) -> list[tuple[float, float]]:
    """Memory and time of each by `memory` and `step_time`."""
    machine = cluster("a100-80gb-selene", gpus=gpus)
    return [
        (memory(MODEL, s, batch).peak.max(), step_time(MODEL, s, machine, batch).total)
        for s in strategies
    ]


def llm_analysis(strategies: list[Strategy], gpus: int, batch: int) -> list[tuple[float, float]]:
    """Memory and time of each by llm-analysis, from half of the peak rate."""
    config, tool = import_module("llm_analysis.config"), import_module("llm_analysis.analysis")
    import_module("llm_analysis.logger").logger.setLevel("CRITICAL")
    again = {"none": 0, "selective": 1, "full": 2}
    described = config.ModelConfig(
        name="gpt3-175b",
        num_layers=MODEL.layers,
        n_head=MODEL.heads,
        hidden_dim=MODEL.hidden,
        vocab_size=MODEL.vocabulary,
        max_seq_len=MODEL.sequence,
        model_type="gpt2",
    )
    gpu = config.get_gpu_config_by_name("a100-sxm-80gb")
    found = []
    for s in strategies:
        split = config.ParallelismConfig(
            tp_size=s.tensor,
            pp_size=s.pipeline,
            dp_size=s.data,
            sp_size=s.tensor if s.sequence_parallel else 1,
        )
        asked = tool.LLMAnalysis(
            described,
            gpu,
            config.get_dtype_config_by_name("w16a16e16"),
            split,
            flops_efficiency=0.5,
        )
        told = asked.training(
            batch_size_per_gpu=s.micro_batch,
            gradient_accumulation_steps=s.micro_batches(batch),
            global_batch_size=batch,
            ds_zero=tool.DSZeRO(s.zero_stage),
            flash_attn=False,
            activation_recomputation=tool.ActivationRecomputation(again[s.recompute]),
        )
        parts = (
            "weight_memory_per_gpu",
            "gradient_memory_per_gpu",
            "optimizer_state_memory_per_gpu",
        )
        held = sum(told[name] for name in (*parts, "activation_memory_per_gpu"))
        found.append((held, told["latency_per_iter"]))
    return found


def tasks(
    gpus: int = GPUS, batch: int = BATCH, search: tuple[int, int] = SEARCH
) -> dict[tuple[str, str], tuple[int, Callable]]:
    """By task and tool: how many strategies, and what evaluates them."""
    every = lawful(gpus, batch)
    whole = StrategyGrid.all(search[0], MODEL, search[1], schedule=SCHEDULES)
    some = sample(every, SAMPLE)
    machine, smaller = (cluster("a100-80gb-selene", gpus=n) for n in (gpus, search[0]))
    calls: dict[tuple[str, str], tuple[int, Callable]] = {
        ("complete", "relparallel"): (
            len(every),
            lambda: price_strategies(MODEL, every, machine, batch, complete=True),
        ),
        ("search", "relparallel"): (
            len(whole),
            lambda: price_strategies(MODEL, whole, smaller, search[1]),
        ),
        ("one by one", "relparallel"): (len(some), lambda: one_by_one(some, gpus, batch)),
        ("one by one", "llm-analysis"): (len(some), lambda: llm_analysis(some, gpus, batch)),
    }
    return calls


def reason_to_skip(tool: str) -> str:
    """Why a tool is not run; empty where it is."""
    try:
        version(tool)
    except PackageNotFoundError:
        return "not installed: pip install --no-deps llm-analysis fire six termcolor"
    return ""


def measure(calls: dict[tuple[str, str], tuple[int, Callable]]) -> list[dict[str, object]]:
    """One row for each task and tool: median rate over interleaved rounds, or why there is none."""
    skipped = {key: reason_to_skip(key[1]) for key in calls}
    spent: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    for place in range(ROUNDS + 1):  # the first one loads things and is not counted
        for key, (_, call) in calls.items():
            if not skipped[key]:
                start = time.process_time()
                call()
                spent[key] += [time.process_time() - start] if place else []
    rows = [row(*key, calls[key][0], spent[key], skipped[key]) for key in calls]
    return [*rows, *quoted()]


def row(task: str, tool: str, count: int, spent: list[float], skipped: str) -> dict[str, object]:
    """A line of the table."""
    rate = count / statistics.median(spent) if spent else None
    return {
        "task": task,
        "tool": tool,
        "version": version(tool) if spent else "",
        "strategies": count,
        "rounds": len(spent),
        "strategies_per_cpu_s": float(f"{rate:.4g}") if rate else None,
        "fact": "",
        "skipped": skipped,
    }


def quoted() -> list[dict[str, object]]:
    """Lines from the facts: measured elsewhere, with the tools' own output left on."""
    known = facts("parallelism-cost")
    space, rate = known["CALC-0007"].values[0], known["CALC-0010"].values[0]
    microseconds, milliseconds = known["LLMA-0001"].values[0], known["CALC-0009"].values[0]
    told = [
        ("search", "calculon", space, rate, "CALC-0007 CALC-0010"),
        ("one by one", "calculon", 1, 1e3 / milliseconds, "CALC-0009"),
        ("one by one", "llm-analysis", 1, 1e6 / microseconds, "LLMA-0001"),
    ]
    return [
        row(task, tool, count, [], "quoted")
        | {"strategies_per_cpu_s": float(f"{rate:.4g}"), "fact": fact}
        for task, tool, count, rate, fact in told
    ]


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="CSV file to write")
    options = parser.parse_args(arguments)
    rows = measure(tasks())
    print(pd.DataFrame(rows).to_string(index=False))  # noqa: T201
    WRITE(rows, options.output)


if __name__ == "__main__":
    main()
