"""Own runs in a table, what a plan learns from them, and what it says of its doubt."""

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from relparallel.parallel import notation

ROW = {
    "model": "gpt3-6.7b",
    "cluster": "a100-80gb-selene",
    "strategy": "TP8 DP8",
    "batch": 64,
    "software": "mine",
}


def table(**cells):
    return pd.DataFrame([{**ROW, **cells}])


def only(learned):
    ((own,),) = ([lessons.runs for lessons in learned.lessons],)
    return own[0]


def test_every_unit_says_the_same_speed():
    run = only(rp.learn(table(**{"step [s]": 3.2})))
    tokens, flops = 64 * run.model.sequence, run.model.flops_per_iteration(64)
    same = {
        "step [ms]": 3200,
        "tokens/s": tokens / 3.2,
        "tokens/s/GPU": tokens / 3.2 / 64,
        "TFLOP/s/GPU": flops / 3.2 / 64 / 1e12,
    }
    for unit, value in same.items():
        assert only(rp.learn(table(**{unit: value}))).time == pytest.approx(3.2)


def test_a_file_a_table_and_runs_are_the_same(tmp_path):
    given = table(**{"step [s]": 3.2})
    given.to_csv(tmp_path / "runs.csv", index=False)
    read = [rp.learn(tmp_path / "runs.csv"), rp.learn(given), rp.learn([only(rp.learn(given))])]
    assert len({float(one.factors()["factor"].item()) for one in read}) == 1
    common = {key: ROW[key] for key in ("model", "cluster", "batch", "software")}
    short = pd.DataFrame({"strategy": ["TP8"], "gpus": [64], "step [s]": [3.2]})
    assert only(rp.learn(short, **common)) == only(read[0])
    common["cluster"] = rp.cluster(ROW["cluster"], gpus=64)  # as in a plan, whose GPUs are known
    for words in ("TP8", "--tensor-model-parallel-size 8"):
        assert only(rp.learn(short.drop(columns="gpus").assign(strategy=words), **common)) == only(
            read[0]
        )


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"seconds": 3.2}, r"one column must say the speed with its unit, step \[s\], .*got \[\]"),
        ({"step [s]": 3.2, "tokens/s": 4e4}, "one column must say the speed"),
        ({"step [s]": 3.2, "batch": None}, "row 2: batch is missing"),
        ({"step [s]": 3.2, "cluster": ""}, "row 2: cluster is missing"),
        ({"step [s]": 3.2, "model": None}, "row 2: model is missing"),
        ({"step [s]": np.nan}, "row 2: the speed is missing"),
        ({"step [s]": 3.2, "strategy": "XP3"}, "row 2: .*XP3"),
        ({"step [s]": 3.2, "strategy": "TP3 DP8"}, "row 2: .*tensor"),
        ({"step [s]": 3.2, "cluster": "h1000"}, "row 2: cluster must be .*h1000"),
        ({"step [s]": 3.2, "sofware": "x"}, "no column 'sofware' is known.*software"),
        ({"step [s]": 3.2, "precision": "fp7"}, "row 2: precision must be"),
        ({"step [s]": 0}, "row 2: speed must be a number > 0"),
        ({"step [s]": 90}, "near what is predicted, got 90 s of row 2.*accept=True"),
    ],
)
def test_a_bad_row_is_named_by_its_column(cells, told):
    with pytest.raises(ValueError, match=told):
        rp.learn(table(**cells))


def test_no_run_is_refused():
    for nothing in ([], pd.DataFrame([ROW | {"step [s]": 1}]).iloc[:0]):
        with pytest.raises(ValueError, match="runs must hold at least one run"):
            rp.learn(nothing)
    with pytest.raises(ValueError, match="measured must hold the runs to choose among with only_"):
        rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, only_measured=True)


@pytest.fixture(scope="module")
def before():
    return rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=64, strategies=3)


def test_runs_teach_and_all_strategies_stay(before):
    first = before.to_measure[0]
    step = before.best.step
    speeds = {first: 64 * before.model.sequence / (1.3 * step.total)}
    given = {"gpus": 64, "global_batch": 64, "strategies": 3, "measured": speeds}
    after = rp.plan("gpt3-6.7b", "a100-80gb-selene", **given)
    assert after.best.counts.sum() == before.best.counts.sum()
    table = after.to_frame().set_index("strategy")
    old = before.to_frame().set_index("strategy")
    assert (table["step [s]"] > old["step [s]"].min() * 1.02).all()
    assert first not in after.to_measure
    assert "own runs with own software (1): times 1." in str(after)
    assert "does not fit: stage 0 needs" in after.why_not("TP1 PP1 DP64")
    assert (table["step to"] > 1.05 * table["step [s]"]).all()
    again = rp.plan(
        "gpt3-6.7b",
        "a100-80gb-selene",
        **given
        | {
            "measured": rp.learn(
                pd.DataFrame({"strategy": [first], "tokens/s": [speeds[first]]}),
                model="gpt3-6.7b",
                cluster="a100-80gb-selene",
                batch=64,
            )
        },
    )
    assert again.strategy == after.strategy
    assert again.best.throughput == pytest.approx(after.best.throughput, rel=1e-12)


def test_a_plan_says_its_doubt(before):
    (doubt,) = before.doubts
    assert doubt.probability.sum() == pytest.approx(1)
    table = before.to_frame()
    assert table["best with probability"].to_numpy() == pytest.approx(doubt.probability[:3])
    assert (table["expected loss"] >= 0).all()
    assert table["expected loss"].iloc[0] == table["expected loss"].min()
    assert [notation(one) for one in before.to_measure] == table["strategy"][:2].tolist()
    assert "To measure next: " + table["strategy"][0] in " ".join(str(before).split())


def test_measured_speeds_leave_no_doubt(before):
    speeds = dict.fromkeys(before.to_measure, 6e4)
    speeds[before.strategy] = 7e4
    given = {"gpus": 64, "global_batch": 64, "measured": speeds, "only_measured": True}
    plan = rp.plan("gpt3-6.7b", "a100-80gb-selene", **given)
    assert plan.to_measure == ()
    assert plan.to_frame()["best with probability"].iloc[0] == 1
    assert "To measure next" not in str(plan)
    with pytest.raises(ValueError, match="only_measured must be left out"):
        rp.plan(
            "gpt3-13b",
            "a100-80gb-selene",
            **given | {"measured": rp.learn(table(**{"step [s]": 3.2}))},
        )
