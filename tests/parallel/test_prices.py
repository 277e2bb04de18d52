"""A grid costs what its strategies cost one by one, whoever does the work."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from relparallel.hardware import Cluster, accelerator, cluster
from relparallel.parallel import StrategyGrid, memory, price_strategies
from relparallel.parallel.feasibility import REASONS
from relparallel.parallel.gpu_memory import PRECISIONS
from relparallel.parallel.prices import pricing
from relparallel.parallel.schedules import SCHEDULES
from relparallel.parallel.step import step_time
from relparallel.parallel.step_formula import PARTS, as_rows
from relparallel.workload import Transformer

GPT = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)
MIXED = Transformer(
    layers=8,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn=11264,
    gated=True,
    vocabulary=32000,
    sequence=4096,
    experts=4,
    active_experts=2,
)
EIGHT = cluster("a100-80gb-selene", gpus=8)
MEMORY = len(REASONS) - 1


def one_by_one(model, grid, machine, batch, software):
    """Time, memory and verdict of every row, not a number where one of them is refused."""
    for row in range(len(grid)):
        try:
            strategy = grid[row]
            time = step_time(model, strategy, machine, batch, software=software).total
        except ValueError:
            yield np.nan, np.nan, False
            continue
        need = memory(model, strategy, batch, software=software)
        yield time, need.peak.max(), need.fits(machine).fits


@pytest.mark.parametrize("software", ["megatron-2022", "llm-foundry-2023"])
@pytest.mark.parametrize(("model", "batch"), [(GPT, 64), (MIXED, 96)], ids=["gpt", "mixture"])
def test_a_row_costs_what_its_strategy_costs_to_the_last_bit(model, batch, software):
    every = StrategyGrid.all(gpus=8, model=model, global_batch=batch)
    grid = every[np.random.default_rng(1).choice(len(every), 400, replace=False)]
    whole = price_strategies(model, grid, EIGHT, batch, software=software, complete=True)
    time, peak, fits = (
        np.array(c) for c in zip(*one_by_one(model, grid, EIGHT, batch, software), strict=True)
    )
    assert np.array_equal(whole.time, time, equal_nan=True)
    assert np.array_equal(whole.memory, peak, equal_nan=True)
    assert np.array_equal(whole.feasible, fits)
    assert fits.any()
    assert np.isnan(time).any()
    assert (~fits & ~np.isnan(time)).any()


def test_one_row_alone_costs_what_it_costs_in_the_grid():
    grid = StrategyGrid.all(gpus=8, model=GPT, global_batch=32, schedule="1f1b", micro_batch=(1, 4))
    whole = price_strategies(GPT, grid, EIGHT, 32)
    for row in range(0, len(grid), 41):
        alone = price_strategies(GPT, grid[row : row + 1], EIGHT, 32)
        assert alone.reason[0] == whole.reason[row]
        assert np.array_equal(alone.time, whole.time[row : row + 1], equal_nan=True)
        assert np.array_equal(alone.memory, whole.memory[row : row + 1], equal_nan=True)


def test_rules_come_first_then_memory_then_time():
    grid = StrategyGrid.all(gpus=8, model=GPT, global_batch=64)
    found, whole = (price_strategies(GPT, grid, EIGHT, 64, complete=flag) for flag in (False, True))
    too_large = found.reason == MEMORY
    ruled_out = ~found.feasible & ~too_large
    assert np.array_equal(np.isnan(found.memory), ruled_out)
    assert np.array_equal(np.isnan(found.time), ~found.feasible)
    assert np.array_equal(np.isnan(whole.time), ruled_out)
    assert np.array_equal(found.time[found.feasible], whole.time[found.feasible])
    assert np.array_equal(found.reason, whole.reason)
    assert too_large.any()
    assert found.memory[too_large].min() > found.memory[found.feasible].max()
    assert found.counts().sum() == len(grid)
    assert found.counts()["memory"] == too_large.sum()


def test_every_reason_of_a_grid_is_reached():
    model = Transformer(
        layers=96, hidden=12288, heads=96, kv_heads=12, ffn=49154, vocabulary=51200, sequence=2049
    )
    grid = StrategyGrid.all(gpus=64, model=model, global_batch=48, recompute="full")
    odd = StrategyGrid.of(
        tensor=[1, 2, 1, 1, 1, 8, 1],
        data=[64, 32, 64, 64, 32, 8, 16],
        expert=[2, 1, 1, 1, 1, 1, 1],
        shard=[64, 32, 3, 64, 32, 8, 16],
        context=[1, 1, 1, 1, 1, 1, 4],
        sequence_parallel=[0 > 1] * 7,
    )
    rows = StrategyGrid(choices=np.concatenate([grid.choices, odd.choices]))
    reached = set(
        price_strategies(model, rows, cluster("a100-80gb-selene", gpus=64), 48).counts().index
    )
    mixture = StrategyGrid.of(tensor=4, data=2, expert=4)
    reached |= set(price_strategies(MIXED, mixture, EIGHT, 16).counts().index)
    small = Transformer(layers=12, hidden=96, heads=12, vocabulary=500, sequence=64)
    others = StrategyGrid.of(
        tensor=[1, 3, 1, 1],
        data=[16, 1, 1, 1],
        pipeline=[1, 1, 2, 3],
        schedule=["1f1b", "1f1b", "zb_v", "chimera"],
    )
    whole = StrategyGrid.of(tensor=2, data=4, experts_over_tensor=True)
    for rest in (others, whole):
        reached |= set(price_strategies(small, rest, EIGHT, 16).counts().index)
    assert reached == set(REASONS)


@pytest.mark.parametrize("model", [GPT, MIXED], ids=["gpt", "mixture"])
def test_no_copies_of_parameters_are_kept_equal_for_nothing(model):
    grid = StrategyGrid.all(gpus=8, model=model, global_batch=64)
    lawful = grid[np.isfinite(price_strategies(model, grid, EIGHT, 64, complete=True).time)]
    costs = pricing(model, EIGHT, 64)
    data = as_rows(costs.parts(costs.split(lawful.choices)))[:, PARTS.index("data")]
    # with a copy each
    ends = np.where(lawful.choices["schedule"] == SCHEDULES.index("chimera"), 2, 1)
    copies = ends * lawful.choices["data"] * lawful.choices["context"] > 1
    assert (data[copies] > 0).all()
    assert (data[~copies] == 0).all()
    assert copies.any()
    assert not copies.all()


def test_a_smaller_gpu_or_more_reserve_turns_rows_away():
    grid = StrategyGrid.all(gpus=8, model=GPT, global_batch=64)
    small = Cluster(nodes=1, accelerator=accelerator("a100-40gb"), network_bandwidth=2e11)
    kept = {"software": "megatron-2022", "storage": "mixed"}
    large = price_strategies(GPT, grid, EIGHT, 64, **kept).feasible
    for fewer in (
        price_strategies(GPT, grid, small, 64, **kept).feasible,
        price_strategies(GPT, grid, EIGHT, 64, reserve=4e10, **kept).feasible,
        price_strategies(
            GPT, grid, EIGHT, 64, **kept | {"storage": PRECISIONS["megatron-fp16"]}
        ).feasible,
    ):
        assert (large | ~fewer).all()
        assert fewer.sum() < large.sum()
    assert (
        price_strategies(GPT, grid, EIGHT, 64, dropout=False, **kept).feasible.sum() > large.sum()
    )
    by_software = price_strategies(GPT, grid, EIGHT, 64, software="megatron-2022").feasible
    assert np.array_equal(
        by_software,
        price_strategies(GPT, grid, EIGHT, 64, **kept | {"storage": "megatron-fp16"}).feasible,
    )


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_results_do_not_depend_on_who_does_the_work(pool):
    grid = StrategyGrid.all(gpus=8, model=GPT, global_batch=64)
    here = price_strategies(GPT, grid, EIGHT, 64)
    with pool(2) as workers:
        there = price_strategies(GPT, grid, EIGHT, 64, executor=workers)
    for name in ("time", "memory", "reason"):
        assert getattr(here, name).tobytes() == getattr(there, name).tobytes()


def test_results_do_not_depend_on_the_chunks(monkeypatch):
    grid = StrategyGrid.all(gpus=8, model=GPT, global_batch=16)
    whole = price_strategies(GPT, grid, EIGHT, 16)
    monkeypatch.setitem(price_strategies.__globals__, "CHUNK", 17)
    cut = price_strategies(GPT, grid, EIGHT, 16)
    for name in ("time", "memory", "reason"):
        assert getattr(whole, name).tobytes() == getattr(cut, name).tobytes()


def test_a_table_shows_strategies_costs_and_reasons():
    grid = StrategyGrid.of(tensor=[8, 5, 4], data=[1, 1, 2], recompute="full")
    table = price_strategies(GPT, grid, EIGHT, 16).to_frame()
    assert table["reason"].tolist()[1] == REASONS[2]
    assert table["tensor"].tolist() == [8, 5, 4]
    assert table.loc[[0, 2], "reason"].tolist() == ["feasible", "feasible"]
    assert table["time"].isna().tolist() == [False, True, False]
    assert price_strategies(GPT, grid, EIGHT, 16).to_frame(slice(1, 2))["tensor"].tolist() == [5]


def test_a_reader_sees_the_counts():
    shown = price_strategies(
        GPT, StrategyGrid.of(tensor=[8, 5], data=1, recompute="full"), EIGHT, 16
    )._repr_html_()
    assert "2 strategies" in shown
    assert "feasible" in shown
    assert REASONS[2] in shown


def test_an_empty_grid_has_no_costs():
    none = price_strategies(GPT, StrategyGrid.all(8, GPT, 16, tensor=3), EIGHT, 16)
    assert len(none.grid) == none.time.size == none.counts().sum() == 0


def test_a_cluster_without_an_accelerator_is_refused():
    with pytest.raises(ValueError, match="cluster must have an accelerator"):
        price_strategies(GPT, StrategyGrid.of(), Cluster(nodes=1, gpus_per_node=1), 1)
