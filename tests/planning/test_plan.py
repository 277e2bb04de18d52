"""Plans find the joint optimum, every number has its interval, and every refusal its reason."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from public_data import DATA, needs_data
from relparallel.parallel import read_strategy
from relparallel.planning import FABRICS, read_cluster
from relparallel.units import DAY


@pytest.fixture(scope="module")
def found():
    return rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512, price=2.0)


def test_the_best_row_is_the_joint_optimum_of_what_frameworks_can_run(found):
    cluster = rp.cluster("a100-80gb-selene", gpus=64)
    limits = {"schedule": ("1f1b", "interleaved_1f1b")}
    asked = {"limits": limits, "memory_margin": 0.05}
    best = rp.joint(rp.transformer("gpt3-6.7b"), cluster, global_batch=512, **asked)
    assert found.strategy == best.strategy
    first = found.to_frame().iloc[0]
    assert first["1e9 tokens a day"] == pytest.approx(best.goodput * DAY / 1e9)
    assert first["reason"].startswith("best")


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 7])
def test_a_plan_asked_again_leaves_out_what_nobody_has_run(days):
    """At a week of repair the joint optimum has a tensor degree beyond all runs."""
    best = rp.plan(
        "llama3-405b", "h100-80gb-dgx", gpus=16384, global_batch=2048, repair=days * DAY
    ).best
    assert best.at().goodput == best.goodput
    assert best.at(scale=3.0).strategy.tensor <= 8


def test_every_number_lies_in_its_interval_and_memory_in_that_of_the_gpu(found):
    table = found.to_frame()
    assert table["step [s]"].between(table["step from"], table["step to"]).all()
    assert table["relative goodput"].between(table["goodput from"], table["goodput to"]).all()
    assert table["1e9 tokens a day"].between(table["tokens from"], table["tokens to"]).all()
    assert (table["memory [GB]"] <= table["of [GB]"]).all()
    assert found.stages().peak.max() / 1e9 == pytest.approx(table["memory [GB]"][0])


def test_cost_is_price_times_gpus_over_tokens(found):
    first = found.to_frame().iloc[0]
    assert first["cost of 1e9 tokens"] == pytest.approx(2.0 * 64 * 24 / first["1e9 tokens a day"])
    assert "cost of 1e9 tokens" not in rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64).to_frame()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("TP3 DP1", "cannot run: strategy breaks a rule: tensor must divide the heads"),
        ("TP1 PP1 DP64", " GB too many; it fits with"),
        ("TP8 PP8 ZeRO-1 full", "less than"),
    ],
)
def test_why_not_names_the_rule_the_bytes_or_the_loss(found, asked, said):
    assert said in found.why_not(asked)


def test_the_label_of_the_best_is_said_to_be_the_best(found):
    """And its step is the one in the table: nothing of the strategy is lost in its name."""
    for label in (found.to_frame()["strategy"][0], found.strategy):
        said = found.why_not(label)
        assert "it is the best" in said
        assert f": {found.to_frame()['step [s]'][0]:.4g} s per step" in said


def test_every_row_asked_back_by_its_label_gives_its_own_numbers(found):
    for row in found.to_frame().to_dict("records"):
        assert f": {row['step [s]']:.4g} s per step" in found.why_not(row["strategy"])


def test_advice_can_be_followed(found):
    """A strategy that does not fit is told another one, whose label runs."""
    told = [found.why_not(f"TP{t} PP{p} MBS{b}") for t in (1, 2) for p in (1, 2) for b in (1, 4, 8)]
    advice = [said.partition("it fits with ")[2].partition(": ")[2].rstrip(".") for said in told]
    assert sum(map(bool, advice)) >= 2
    for label, _, time in (one.partition(", ") for one in filter(None, advice)):
        followed = found.why_not(label)
        assert "relative goodput" in followed
        assert f": {time.partition(',')[0]} (" in followed


def test_what_a_strategy_loses_is_its_own_joint_optimum_below_the_best(found):
    said = found.why_not(read_strategy("TP8 PP8 ZeRO-1 full"))
    share = float(said.split("tokens a day: ")[1].split("%")[0]) / 100
    tokens = float(said.split("%", 2)[2].split("e9 tokens")[0].rpartition(" ")[2])
    assert 1 - tokens / found.to_frame()["1e9 tokens a day"][0] == pytest.approx(share, abs=2e-4)


def test_two_clusters_stand_in_one_table_and_the_cheaper_one_is_the_best():
    both = rp.plan(
        "llama3-8b",
        ["a100-80gb-selene", "h100-80gb-dgx"],
        gpus=64,
        global_batch=512,
        strategies=2,
        price=1.0,
    )
    table = both.to_frame()
    assert table["cluster"].tolist() == ["a100-80gb-selene"] * 2 + ["h100-80gb-dgx"] * 2
    cheapest = table.loc[table["cost of 1e9 tokens"].idxmin(), "cluster"]
    assert both.best.cluster.name == cheapest
    for strategy in (
        both.strategy,
        rp.parallel.notation(both.strategy),
    ):  # also where the best is on the second one
        assert "it is the best" in both.why_not(strategy)
    first = both.why_not(both.strategy, cluster=0)
    assert first.startswith(f"{rp.parallel.notation(both.strategy)} on a100-80gb-selene: ")
    assert ("it is the best" in first) == (both.best is both.found[0])


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_fabric_by_name_fails_too(fabric):
    wired = rp.plan(
        "gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=128, network=fabric, spares=0
    )
    assert wired.best.network.num_hosts == 64
    assert 0.5 < wired.best.share < 1


def test_the_trace_covers_the_step(found, tmp_path):
    found.save_trace(tmp_path / "step.json")
    events = [
        e for e in json.loads((tmp_path / "step.json").read_text())["traceEvents"] if e["ph"] == "X"
    ]
    end = max(event["ts"] + event["dur"] for event in events) / 1e6
    assert 0.5 * found.best.step.total < end <= found.best.step.total * (1 + 1e-6)
    passes = {"forward": 0, "backward": 0}
    for event in events:
        passes[event["cat"]] += 1
    assert passes["forward"] == passes["backward"] > 0


def test_the_table_is_saved_as_its_ending_says(found, tmp_path):
    for ending in ("csv", "json", "tex", "svg", "png"):
        found.save(tmp_path / f"plan.{ending}")
    table = pd.read_csv(tmp_path / "plan.csv")
    assert np.allclose(table["step [s]"], found.to_frame()["step [s]"])
    assert len(json.loads((tmp_path / "plan.json").read_text())["rows"]) == len(table)
    assert (tmp_path / "plan.tex").read_text() == found.to_latex()
    with pytest.raises(ValueError, match=r"path must end in \.csv"):
        found.save(tmp_path / "plan.doc")


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("csv", "\ufeffname, accelerator, gpus, network_gbit\r\nh100, h100-80gb, 64, 3200\r\n"),
        ("csv", "name,accelerator,gpus,network_gbit\nmine,h100-80gb,64,3200\n"),
        (
            "json",
            '[{"name": "mine", "accelerator": "h100-80gb", "gpus": 64, "network_gbit": 3200}]',
        ),
        ("yaml", "name: mine\naccelerator: h100-80gb\ngpus: 64\nnetwork_gbit: 3200\n"),
    ],
)
def test_a_cluster_from_a_file_is_the_cluster_by_name(tmp_path, ending, text):
    path = tmp_path / f"mine.{ending}"
    path.write_text(text)
    (mine,) = read_cluster(path)
    named = rp.cluster("h100-80gb-dgx", gpus=64)
    assert (mine.nodes, mine.network_bandwidth) == (named.nodes, named.network_bandwidth)
    assert mine.accelerator == named.accelerator


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accelerator,gpus\nh100-80gb,64\n", "'network_gbit' is missing"),
        ("accelerator,gpus,network_gbit\nh100,64,1\n", "name must be one of"),
        ("accelerator,gpus,network_gbit,colour\nh100-80gb,64,1,red\n", "got 'colour'"),
        ("accelerator,gpus,network_gbit\nh100-80gb,63,1\n", "gpus must fill nodes of 8, got 63"),
        ("", "must hold at least one row"),
        ("accelerator,gpus,network_gbit\n", "must hold clusters"),
        ("accelerator,gpus,network_gbit,name\nh100-80gb,,1,\n", "'gpus' is missing"),
    ],
)
def test_a_bad_file_of_clusters_says_what_is_wrong(tmp_path, text, said):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_cluster(path)


def test_a_cluster_that_is_too_small_says_by_how_much():
    with pytest.raises(ValueError, match=r"cluster must hold the training state .* 6,494 GB"):
        rp.plan("llama3-405b", "h100-80gb-dgx", gpus=8)


@pytest.mark.parametrize("name", ["model", "cluster"])
def test_an_array_is_no_name(name):
    asked = {"model": "gpt3-6.7b", "cluster": "a100-80gb-selene", "gpus": 64}
    with pytest.raises(TypeError, match=rf"{name} must be .*, got array"):
        rp.plan(**asked | {name: np.array([np.nan, 1.0])})


def test_an_own_failure_log_takes_the_place_of_the_table(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"n{k},2026-01-{k + 1:02}T00:00,2026-01-{k + 1:02}T02:00,gpu" for k in range(20)]
    path.write_text("\n".join(["node,start,end,cause", *rows]))
    log = rp.training.read_failure_log(path, population=64, clock="iso")
    model = rp.failure_model(
        rp.cluster("h100-80gb-dgx", gpus=512), rp.Strategy(data=512), rates=log
    )
    up = 64 * 19 * DAY - 19 * 7200  # the last one is down when the window ends
    assert model.mtbf == pytest.approx(up / 64 / 20)
    (entry,) = model.classes
    assert entry.repair == pytest.approx(7200.0)
    plan = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512, rates=log)
    assert plan.best.search.sites[0].failures.classes == model.classes


def test_a_plan_says_how_the_causes_of_a_log_are_read(tmp_path):
    """Failures of the job lose its state: a plan for them saves, and says each cause's level."""
    path = tmp_path / "log.csv"
    causes = ("gpu", "software", "power")
    rows = [
        f"n{k},2026-01-{k + 1:02}T00:00,2026-01-{k + 1:02}T02:00,{causes[k % 3]}" for k in range(20)
    ]
    path.write_text("\n".join(["node,start,end,cause", *rows]))
    log = rp.training.read_failure_log(path, population=64, clock="iso")
    plan = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512, rates=log)
    assert any("software is a failure of the job" in note for note in plan.notes)
    assert math.isfinite(plan.best.interval)
    named = rp.training.read_failure_log(
        path, population=64, clock="iso", levels=dict.fromkeys(causes, "node")
    )
    model = rp.failure_model(
        rp.cluster("h100-80gb-dgx", gpus=512), rp.Strategy(data=512), rates=named
    )
    assert [entry.level for entry in model.classes] == ["node"] * 3


@needs_data
def test_the_step_time_of_the_published_run_of_llama_3_lies_in_the_interval_of_its_plan():
    """Meta's strategy: 400 TFLOP/s a GPU on 16,384 H100, sequences of 8,192 (Llama 3, table 4)."""
    path = DATA / "hf-configs/llama-3.1-405b.json"
    found = rp.plan(path, "h100-80gb-dgx", gpus=16384, global_batch=2048)
    published = read_strategy("TP8 PP16 DP128 v=8 ZeRO-1 SP full")
    said = found.why_not(published)
    flops = found.model.flops_per_iteration(2048)
    low, high = (float(x) for x in said.split("(")[1].split(")")[0].split(" to "))
    measured = flops / (16384 * 400e12)
    assert low < measured < high
    assert "less than" in said
    assert math.isfinite(found.best.goodput)


def test_a_plan_of_61_layers_names_the_chunks():
    plan = rp.plan(
        "deepseek-v3",
        "h100-80gb-dgx",
        gpus=2048,
        global_batch=8192,
        strategies=3,
        limits={"pipeline": (4, 8, 16), "tensor": 1, "context": 1, "expert": 64, "micro_batch": 1},
    )
    for row in plan.to_frame().to_dict("records"):
        chunks = [one.split("x") for one in row["layers of chunks"].split("+")]
        assert sum(int(one[0]) * (int(one[1]) if one[1:] else 1) for one in chunks) == 61
        strategy = read_strategy(row["strategy"])
        time = rp.step_time(plan.model, strategy, plan.best.cluster, 8192)
        assert time.total == pytest.approx(row["step [s]"], rel=1e-12)


def test_more_stages_than_anyone_has_run_are_named():
    crowded = rp.plan(
        "deepseek-v3",
        "h100-80gb-dgx",
        gpus=2048,
        global_batch=8192,
        strategies=1,
        limits={"pipeline": 32, "tensor": 1, "context": 1, "expert": 64, "micro_batch": 1},
    )
    assert crowded.to_frame()["group"].tolist() == ["nobody has run PP32"]


def test_measured_strategies_are_asked_about_by_label():
    speeds = {read_strategy("TP8 PP4 DP2"): 6.41e4, read_strategy("TP8 DP8"): 6.4e4}
    given = {"measured": speeds, "only_measured": True}
    plan = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512, **given)
    assert "it is the best" in plan.why_not(plan.strategy)
    assert "is not among the measured strategies" in plan.why_not("TP4 DP16")


def test_a_scheduler_s_topology_says_what_each_leaf_stops(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(
        "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\nSwitchName=s Switches=a,b\n"
    )
    plan = rp.plan(
        "gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=128, network=path, spares=0
    )
    assert any("nodes hang at" in note for note in plan.notes)
