"""The best strategy against a search of one strategy after the other, and its words against the numbers."""

import re
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from relparallel.optimize import best_strategy
from relparallel.optimize.strategy_search import OBJECTIVES
from relparallel.parallel import StrategyGrid, evaluate, memory
from relparallel.parallel._kernel import PARTS
from relparallel.parallel.feasibility import REASONS
from relparallel.parallel.grid import AXES
from relparallel.parallel.step_time import step_time
from relparallel.units import GB
from relparallel.workload import Transformer

GPT = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)
CLUSTERS = [rp.hardware.cluster("a100-80gb-selene", gpus=gpus) for gpus in (2, 4, 8)]
EIGHT, BATCH = CLUSTERS[-1], 16


@cache
def best():
    """The best strategy of eight GPUs."""
    return best_strategy(GPT, EIGHT, BATCH)


def rows_one_by_one(machine):
    """Costs of all strategies that step_time and memory take and that fit."""
    for strategy in distinct(StrategyGrid.all(machine.gpus, GPT, BATCH)):
        try:
            time = step_time(GPT, strategy, machine, BATCH).total
        except ValueError:
            continue
        need = memory(GPT, strategy, BATCH)
        if need.fits(machine).fits:
            yield time, need.peak.max(), machine.gpus, strategy


def distinct(grid):
    """Rows that are strategies at all."""
    for row in range(len(grid)):
        try:
            yield grid[row]
        except ValueError:
            continue


@cache
def feasible():
    """Costs of what fits on two or four GPUs."""
    return [row for machine in CLUSTERS[:2] for row in rows_one_by_one(machine)]


@cache
def small(objective):
    """The best strategy of two or four GPUs."""
    return best_strategy(GPT, CLUSTERS[:2], BATCH, objective=objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_best_is_the_best_of_all_one_by_one(objective):
    costs = {
        "time": lambda r: (r[0], r[1], r[2]),
        "memory": lambda r: (r[1], r[0], r[2]),
        "gpu_time": lambda r: (r[0] * r[2], r[0], r[1]),
    }
    time, peak, gpus, strategy = min(feasible(), key=costs[objective])
    found = small(objective)
    assert (found.strategy, found.time, found.memory, found.cluster.gpus) == (strategy, time, peak, gpus)


def test_the_front_is_what_nothing_beats():
    costs = np.array([row[:3] for row in feasible()])
    beaten = [((costs <= c).all(axis=1) & (costs < c).any(axis=1)).any() for c in costs]
    front = {tuple(row) for row in costs[~np.array(beaten)].tolist()}
    for found in map(small, OBJECTIVES):
        shown = found.pareto[["time", "memory", "gpus"]].to_numpy(dtype=float).tolist()
        assert len(shown) == len(front)
        assert {tuple(row) for row in shown} == front


def test_nothing_is_skipped():
    found = small("time")
    sizes = {machine.gpus: len(StrategyGrid.all(machine.gpus, GPT, BATCH)) for machine in CLUSTERS[:2]}
    assert found.counts.sum().to_dict() == sizes
    assert found.rows == sum(sizes.values())
    assert found.counts.loc["feasible"].sum() == len(feasible())
    assert set(found.counts.index) <= set(REASONS)


def test_alternatives_are_the_best_for_each_value():
    grid = StrategyGrid.all(8, GPT, BATCH)
    costs = evaluate(GPT, grid, EIGHT, BATCH)
    table = grid.to_frame().assign(time=costs.time)[costs.feasible]
    for axis in AXES:
        rows = best().alternatives[best().alternatives["axis"] == axis]
        assert rows.set_index(axis)["time"].to_dict() == table.groupby(axis)["time"].min().to_dict()
    parts = best().alternatives[[f"{part}_time" for part in PARTS]].sum(axis=1)
    assert np.allclose(parts, best().alternatives["time"], rtol=1e-14)


def test_limits_limit_the_search():
    found = best_strategy(GPT, EIGHT, BATCH, limits={"tensor": 8, "recompute": "full"})
    assert (found.strategy.tensor, found.strategy.recompute) == (8, "full")
    assert found.rows == len(StrategyGrid.all(8, GPT, BATCH).where(tensor=8, recompute="full"))
    assert found.time >= best().time


def test_between_equals_the_plainest_schedule_wins():
    alone = best_strategy(GPT, EIGHT, BATCH, limits={"pipeline": 1}).strategy
    assert (alone.schedule, alone.virtual_stages) == ("gpipe", 1)
    same = [
        best_strategy(GPT, EIGHT, BATCH, limits={"pipeline": 4, "schedule": names})
        for names in ("1f1b", "dapple", ("1f1b", "dapple"), ("dapple", "1f1b", "1f1b"))
    ]
    assert len({(found.time, found.memory) for found in same}) == 1
    assert [found.strategy.schedule for found in same] == ["1f1b", "dapple", "1f1b", "1f1b"]
    assert same[2].rows == same[3].rows


def test_a_framework_that_offers_fewer_schedules_is_a_limit():
    offered = ("gpipe", "1f1b")
    ours = best_strategy(GPT, EIGHT, BATCH, limits={"pipeline": 4})
    theirs = best_strategy(GPT, EIGHT, BATCH, limits={"pipeline": 4, "schedule": offered})
    assert ours.strategy.schedule not in offered
    assert theirs.strategy.schedule in offered
    assert ours.time < theirs.time
    said = ours.why_not(pipeline=4, schedule=offered)
    assert f"{theirs.time:.4g} s ({theirs.time / ours.time - 1:+.1%})" in said
    assert f"schedule {theirs.strategy.schedule}" in said
    assert " s bubble" in said


def test_options_reach_the_costs():
    fewer = best_strategy(GPT, EIGHT, BATCH, reserve=5e10)
    assert fewer.memory <= EIGHT.accelerator.memory - 5e10 < best().memory
    assert fewer.time >= best().time
    assert best_strategy(GPT, EIGHT, BATCH, software="llm-foundry-2023").time != best().time


def test_the_answer_does_not_depend_on_who_does_the_work():
    with ProcessPoolExecutor(2) as workers:
        there = best_strategy(GPT, EIGHT, BATCH, executor=workers)
    assert (there.strategy, there.time, there.memory) == (best().strategy, best().time, best().memory)
    pd.testing.assert_frame_equal(there.alternatives, best().alternatives)
    pd.testing.assert_frame_equal(there.pareto, best().pareto)
    assert there.explain() == best().explain()


def test_the_explanation_has_the_numbers():
    said = best().explain()
    assert f"Smallest time of {best().rows:,} strategies: tensor {best().strategy.tensor}, " in said
    assert f"A step takes {best().time:.4g} s and {best().memory / GB:.1f} GB: compute " in said
    for reason, number in best().counts[8].items():
        assert f"{number:,} " in said
        assert reason in said or reason == "memory"
    lines = [line for line in said.splitlines() if line.startswith("- ")]
    assert [re.match(r"- (\w+)", line)[1] for line in lines] == list(AXES)
    assert "- expert: no other value is feasible." in lines


def test_why_not_gives_the_best_with_that_value_and_what_it_loses():
    grid = StrategyGrid.all(8, GPT, BATCH, tensor=8)
    costs = evaluate(GPT, grid, EIGHT, BATCH)
    least = np.nanmin(costs.time)
    said = best().why_not(tensor=8)
    assert said.startswith(f"tensor=8: {least:.4g} s ({least / best().time - 1:+.1%}) and ")
    row = (
        best()
        .alternatives[(best().alternatives["axis"] == "tensor") & (best().alternatives["tensor"] == 8)]
        .iloc[0]
    )
    winner = (
        best()
        .alternatives[
            (best().alternatives["axis"] == "tensor")
            & (best().alternatives["tensor"] == best().strategy.tensor)
        ]
        .iloc[0]
    )
    lost = {part: row[f"{part}_time"] - winner[f"{part}_time"] for part in PARTS}
    worst = max(lost, key=lost.get)
    assert f"; {lost[worst]:+.3g} s {worst}" in said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tensor": 3}, "tensor=3: no degrees like that multiply to 8 GPUs."),
        (
            {"virtual_stages": 5},
            "forbidden, pipeline * virtual_stages must divide the layers, or the layers and two.",
        ),
        (
            {"tensor": 1, "sequence_parallel": True},
            "tensor=1, sequence_parallel=True: forbidden, sequence_parallel needs tensor above 1.",
        ),
        ({"zero_stage": 3, "pipeline": (2, 4)}, "forbidden, zero_stage 2 and 3 need pipeline 1."),
        ({"data": 8, "zero_stage": 0}, "data=8, zero_stage=0: does not fit, at least "),
        ({"data": 8, "micro_batch": (4, 16)}, "forbidden, data * micro_batch must divide the global batch."),
        ({"schedule": "1f1b", "virtual_stages": (2, 3)}, "forbidden, virtual_stages above 1 needs"),
    ],
    ids=str,
)  # fmt: skip
def test_why_not_names_the_rule_that_forbids(values, said):
    assert said in best().why_not(**values)


def test_why_not_tells_what_memory_is_missing():
    grid = StrategyGrid.all(8, GPT, BATCH, data=8, zero_stage=0)
    costs = evaluate(GPT, grid, EIGHT, BATCH)
    least = np.nanmin(costs.memory)
    assert not costs.feasible.any()
    assert f"at least {least / GB:.1f} GB are needed" in best().why_not(data=8, zero_stage=0)


def test_why_not_knows_the_winner():
    values = {name: getattr(best().strategy, name) for name in ("tensor", "pipeline", "data")}
    assert best().why_not(**values).endswith("the best strategy has it.")


def test_a_reader_sees_the_answer_and_the_front():
    shown = best()._repr_html_()
    assert f"A step takes {best().time:.4g} s" in shown
    assert shown.count("<tr") == len(best().pareto) + 1


def test_what_cannot_be_found_is_an_error():
    tiny = rp.hardware.cluster("a100-80gb-selene", gpus=1)
    huge = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    with pytest.raises(ValueError, match=r"cluster must allow a strategy for .* exceed the memory"):
        best_strategy(huge, tiny, 4)
    with pytest.raises(ValueError, match="cluster must name clusters of different sizes"):
        best_strategy(GPT, [EIGHT, EIGHT], BATCH)
    with pytest.raises(TypeError, match="cluster must be a Cluster or several of them"):
        best_strategy(GPT, [], BATCH)
    with pytest.raises(ValueError, match="axis must be one of"):
        best().why_not(color="red")
