"""Grids of strategies: product against loops; rows, filters and columns against `Strategy`."""

import itertools

import numpy as np
import pytest

from relparallel.parallel import Strategy, StrategyGrid, simulate_schedule, weight_delay
from relparallel.parallel.grid import AXES
from relparallel.parallel.quantities import ROW, rows_of
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.workload import Transformer

MODEL = Transformer(
    layers=6, hidden=96, heads=12, vocabulary=500, sequence=64, experts=4, active_experts=2
)
GRID = StrategyGrid.all(gpus=12, model=MODEL, global_batch=6)
SAME_RESULT = (
    "gpipe",
    "1f1b",
    "interleaved_1f1b",
    "eager_1f1b",
    "dapple",
    "zb_h1",
    "zb_2p",
    "zb_v",
    "v_half",
    "v_min",
    "chimera",
)
GPT3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)


def divisors(number):
    return [k for k in range(1, number + 1) if number % k == 0]


def by_loops(gpus, model, batch):
    """Every row of the full product, one by one."""
    degrees = itertools.product(range(1, gpus + 1), repeat=4)
    chunks = sorted({*divisors(model.layers), *divisors(model.layers + 2)} - {model.layers + 2})
    for t, p, d, c in degrees:
        if t * p * d * c != gpus:
            continue
        for z, e, b, v, split, again, order in itertools.product(
            range(4 if p == 1 else 2),
            divisors(model.experts),
            divisors(batch),
            chunks,
            (False, True),
            ("none", "selective", "full"),
            SAME_RESULT,
        ):
            for shard in divisors(d) if z else [d]:
                yield t, p, d, c, e, shard, b, v, split, again, z, order, "auto", False


def test_the_grid_is_the_full_product_and_has_no_row_twice():
    grid = StrategyGrid.all(gpus=6, model=MODEL, global_batch=4)
    rows = list(grid.to_frame().itertuples(index=False, name=None))
    assert len(rows) == len(set(rows)) == len(grid)
    assert set(rows) == set(by_loops(6, MODEL, 4))


def test_a_large_model_on_512_gpus_has_more_than_a_million_rows():
    grid = StrategyGrid.all(gpus=512, model=GPT3, global_batch=512, schedule=("gpipe", "1f1b"))
    assert len(grid) >= 10**6
    assert grid.choices.nbytes == 40 * len(grid)
    some = grid.choices[::97]
    product = np.prod(
        [some[name].astype(np.int64) for name in ("tensor", "pipeline", "data", "context")], axis=0
    )
    assert (product == 512).all()


def test_schedules_are_those_that_train_with_their_own_weights_and_others_are_asked_for():
    own = [
        name
        for name in SCHEDULES
        if weight_delay(
            simulate_schedule(name, 4, 8, 2 if name in V_SHAPED else 1, iterations=3), per_update=8
        ).max()
        == 1
    ]
    assert GRID.axes["schedule"] == SAME_RESULT == tuple(own)
    every = StrategyGrid.all(gpus=12, model=MODEL, global_batch=6, schedule=SCHEDULES)
    assert every.axes["schedule"] == SCHEDULES
    assert np.array_equal(every.where(schedule=SAME_RESULT).choices, GRID.choices)


def test_rows_are_strategies():
    some = GRID.where(virtual_stages=1, expert=1, schedule=SAME_RESULT[:7])[::97]
    for strategy, row in zip(some, some.to_frame().to_dict("records"), strict=True):
        assert strategy == Strategy(
            **row | {"shard": None if row["shard"] == row["data"] else row["shard"]}
        )
    with pytest.raises(ValueError, match="row must be"):
        some[len(some)]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"expert": 2, "data": 3, "context": 1},
            r"expert must divide data \* context = 3 \* 1, got 2",
        ),
        ({"virtual_stages": 2, "schedule": "1f1b"}, "virtual_stages must be 1 unless"),
    ],
)
def test_a_row_that_is_no_strategy_says_which_rule_forbids_it(limits, said):
    with pytest.raises(ValueError, match=said):
        GRID.where(**limits)[0]


def test_a_strategy_makes_the_row_that_it_came_from():
    strategies = [
        Strategy(
            tensor=4, pipeline=2, data=6, context=2, expert=4, shard=3, micro_batch=5, zero_stage=1
        ),
        Strategy(pipeline=3, virtual_stages=2, schedule="interleaved_1f1b", recompute="full"),
        Strategy(
            tensor=2, sequence_parallel=True, recompute="selective", schedule="gpipe", zero_stage=3
        ),
    ]
    columns = {name: [getattr(s, name) for s in strategies] for name in AXES if name != "shard"}
    grid = StrategyGrid.of(**columns, shard=[s.shard_group for s in strategies])
    assert list(grid) == strategies
    assert np.array_equal(grid.choices, rows_of(strategies))


def test_filters_and_slices_keep_the_order():
    some = GRID.where(
        tensor=(2, 4), recompute="full", sequence_parallel=True, schedule={"gpipe", "1f1b"}
    )
    table = GRID.to_frame()
    kept = (
        table["tensor"].isin([2, 4])
        & (table["recompute"] == "full")
        & table["sequence_parallel"]
        & table["schedule"].isin(["gpipe", "1f1b"])
    )
    assert some.to_frame().equals(table[kept].reset_index(drop=True))
    assert GRID[3:9].to_frame().equals(table[3:9].reset_index(drop=True))
    assert np.array_equal(GRID[np.array([5, 2])].choices, GRID.choices[[5, 2]])
    plain = GRID.where(virtual_stages=1, expert=1, schedule="1f1b")
    assert plain[-1] == plain[len(plain) - 1]


@pytest.mark.parametrize(
    "limits",
    [
        {"tensor": 2},
        {"data": (1, 3), "schedule": "1f1b"},
        {"shard": 2},
        {"zero_stage": (0, 3), "shard": 3},
        {"recompute": ("none", "full"), "sequence_parallel": False, "expert": 2, "micro_batch": 3},
    ],
    ids=str,
)
def test_limits_are_filters(limits):
    limits = {"zero_stage": range(4)} | limits
    whole = StrategyGrid.all(gpus=12, model=MODEL, global_batch=6, zero_stage=range(4))
    limited = StrategyGrid.all(gpus=12, model=MODEL, global_batch=6, **limits).to_frame()
    columns, filtered = limited.columns.tolist(), whole.where(**limits).to_frame()
    assert len(limited) > 0
    assert limited.sort_values(columns, ignore_index=True).equals(
        filtered.sort_values(columns, ignore_index=True)
    )


def test_limits_may_name_values_that_the_product_lacks():
    assert len(StrategyGrid.all(gpus=12, model=MODEL, global_batch=6, tensor=5)) == 0
    assert StrategyGrid.all(gpus=12, model=MODEL, global_batch=6, micro_batch=4).axes[
        "micro_batch"
    ] == (4,)


def test_axes_are_the_values_that_occur():
    assert GRID.axes["tensor"] == (1, 2, 3, 4, 6, 12)
    assert GRID.axes["expert"] == (1, 2, 4)
    assert GRID.axes["virtual_stages"] == (1, 2, 3, 4, 6)
    assert GRID.axes["recompute"] == ("none", "selective", "full")
    assert GRID.axes["sequence_parallel"] == (False, True)
    assert tuple(GRID.axes) == AXES
    assert repr(GRID) == f"<StrategyGrid: {len(GRID):,} strategies>"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: StrategyGrid.of(tensor=[1, 2], data=[1, 2, 4]),
            "tensor must be one value or 3 of them",
        ),
        (lambda: StrategyGrid.of(tensor=0), "tensor must be an integer in"),
        (
            lambda: StrategyGrid.of(tensor=1.5),
            "tensor must be one value or a list of them, got 1.5",
        ),
        (lambda: StrategyGrid.of(tensor=[]), "tensor must be one value or a list of them"),
        (
            lambda: StrategyGrid.of(tensor="two"),
            "tensor must be one value or a list of them, got 'two'",
        ),
        (lambda: StrategyGrid.of(zero_stage=4), "zero_stage must be an integer in"),
        (lambda: StrategyGrid.of(recompute="some"), "recompute must be one of"),
        (lambda: StrategyGrid.of(recompute=2), "recompute must be one of"),
        (lambda: StrategyGrid.of(schedule=["1f1b", "none"]), "schedule must be one of"),
        (lambda: StrategyGrid.of(sequence_parallel=1), "sequence_parallel must be one of"),
        (lambda: StrategyGrid.all(gpus=0, model=MODEL, global_batch=6), "gpus must be"),
        (lambda: StrategyGrid.all(gpus=1, model=None, global_batch=6), "model must be"),
        (lambda: StrategyGrid.all(gpus=1, model=MODEL, global_batch=0), "global_batch must be"),
        (
            lambda: StrategyGrid.all(gpus=1, model=MODEL, global_batch=1, width=2),
            "axis must be one of",
        ),
        (lambda: GRID.where(tensor=-1), "tensor must be"),
        (lambda: GRID.where(color="red"), "axis must be one of"),
        (lambda: StrategyGrid(choices=np.zeros(3, ROW)), "choices must have a tensor from 1 to"),
        (lambda: StrategyGrid(choices=np.zeros((3, 1), ROW)), "choices must be one row"),
    ],
)
def test_bad_columns_are_refused_by_name(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()
