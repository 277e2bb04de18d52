"""A log beside the formulas of a plan: replays agree where failures are independent, else it is said."""

import re

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from pace import pace
from public_data import DATA, needs_data
from relparallel.parallel import Strategy
from relparallel.planning.own_logs import OwnLog
from relparallel.training import FailureLog, Recovery, SharedEvents
from relparallel.units import DAY, HOUR

NODES, YEAR = 32, 365 * DAY
SPLIT = Strategy(tensor=8, pipeline=2, data=16)


def log_of(start, node, repair, population=NODES, **more):
    table = pd.DataFrame({"node": node, "start": start, "end": start + repair})
    table = table[table["start"] < YEAR]
    return FailureLog(
        node=np.array([f"n{k:03}" for k in table["node"]]),
        start=table["start"].to_numpy(),
        end=np.minimum(table["end"], YEAR + DAY).to_numpy(),
        cause=["node"] * len(table),
        population=population,
        begin=0.0,
        finish=YEAR + DAY,
        overlaps="merge",
        **more,
    )


def independent(rng, nodes=NODES, life=60 * DAY, repair=2 * DAY):
    """Exponential lives and repairs of every node, from a year that has long begun."""
    start, node, back = [], [], []
    for place in range(nodes):
        now = rng.exponential(life)
        while now < YEAR:
            down = rng.exponential(repair)
            start, node, back = [*start, now], [*node, place], [*back, down]
            now += down + rng.exponential(life)
    return log_of(np.array(start), node, np.array(back))


def together(rng, size=6, events=33):
    """As many failures, of several nodes at a time."""
    start = np.repeat(np.sort(rng.uniform(0, YEAR, events)), size)
    node = np.concatenate([rng.choice(NODES, size, replace=False) for _ in range(events)])
    return log_of(start, node, np.repeat(rng.exponential(2 * DAY, events), size))


def planned(log, rank="independent", **options):
    """Plans of one measured strategy: what differs is the recovery and the number of spares."""
    usual = {"spares": (0, 2, 4), "gpus": 8 * NODES, "measured": {SPLIT: 1e6}}
    asked = usual | {"global_batch": 512} | options
    return rp.plan(
        "gpt3-6.7b",
        "a100-80gb-selene",
        rates=log,
        rank=rank,
        only_measured=True,
        **asked,
    )


def test_formula_and_replay_agree_on_logs_of_independent_failures():
    """The formula lies in nine intervals of ten, nothing is refuted, and no order turns over."""
    rng, inside, refuted, turned = np.random.default_rng(1), [], 0, 0
    seeds = pace(10, 60)
    for _ in range(seeds):
        found = planned(independent(rng), policies=("spares", "elastic"))
        table, said = found.to_frame(), " ".join(found.log.said(found.best, 5, "independent"))
        inside += (
            table["relative goodput"].between(table["replay from"], table["replay to"]).tolist()
        )
        refuted += "independent: refuted" in said
        turned += "the order turns over" in said
    assert np.mean(inside) > 0.75
    assert refuted <= 0.1 * seeds
    assert turned <= 0.1 * seeds


def test_failures_that_come_together_are_refuted_and_need_more_spares():
    rng = np.random.default_rng(2)
    found = planned(together(rng), policies=("spares",))
    table, said = found.to_frame(), found.to_text(80)
    said = " ".join(said.split())
    assert "independent: refuted at 1 %" in said
    alone, log, events = map(
        int, re.search(r"time: (\d+) by.*?, (\d+) by.*?\((\d+) by", said).groups()
    )
    assert log > alone
    assert events > alone
    no_spares = table[table["spare nodes"] == 4].iloc[0]
    assert no_spares["replayed goodput"] < no_spares["goodput from"]  # formula: four are plenty


def test_rows_are_ranked_by_what_is_asked():
    rng = np.random.default_rng(2)
    log = together(rng)
    by = {
        rank: planned(log, rank, policies=("spares",))
        for rank in ("independent", "events", "replay")
    }
    for rank, score in (("independent", "relative goodput"), ("replay", "replayed goodput")):
        table = by[rank].to_frame()
        worth = table[score] * (NODES - table["spare nodes"])
        assert worth.is_monotonic_decreasing
        assert by[rank].best.spares == table["spare nodes"][0]
        assert table["reason"].tolist() == [
            "best",
            *(f"loses {1 - one / worth[0]:.2%}" for one in worth[1:]),
        ]
    source = by["events"].best.search.question.source
    assert source.sizes == log.shared_events().sizes
    again = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=256, global_batch=512, rates=log,
                    measured={SPLIT: 1e6}, only_measured=True, spares=(0, 2, 4),
                    policies=("spares",), source=log.shared_events())  # fmt: skip
    assert again.best.goodput == by["events"].best.goodput
    assert by["replay"].explain().count("By the formula alone:") == 1
    assert "it is the best" in by["replay"].why_not(by["replay"].strategy)


def test_a_log_of_fewer_nodes_stands_side_by_side_and_of_more_is_drawn_from():
    rng = np.random.default_rng(3)
    log = independent(rng, nodes=12)
    small = FailureLog(
        node=log.node, start=log.start, end=log.end, cause=log.cause, population=12, begin=0.0,
        finish=log.finish,
    )  # fmt: skip
    found = planned(small, policies=("elastic",))
    said = " ".join(found.to_text(80).split())
    assert (
        "it watched 12 nodes, fewer than the 32 of the cluster: 3 copies stand side by side" in said
    )
    first = found.to_frame().iloc[0]
    assert first["replay from"] <= first["relative goodput"] <= first["replay to"]
    source = found.log.source(NODES)
    assert (source.nodes, len(source.records)) == (36, 3 * len(small.start))
    days = (source.records["end"] - source.records["start"]).groupby(source.records["node"] // 12)
    assert days.sum().to_numpy() == pytest.approx(float((small.end - small.start).sum()))
    wide = planned(log, gpus=64, measured={Strategy(tensor=8, data=8): 1e6}, policies=("elastic",))
    assert "8 of its 32 nodes drawn at random" in " ".join(wide.to_text(80).split())


def test_nodes_down_of_a_log_are_counted_over_its_time():
    """Three of ten down for 0.3 % of the time, two for half a day of those that follow."""
    start, repair = np.array([1.0, 1.0, 1.0, 9.0, 9.0]) * DAY, np.array([1.0, 1.0, 1.0, 9, 9]) * DAY
    log = OwnLog(log=log_of(start, [0, 1, 2, 3, 4], repair, population=10))
    assert log._down(10) == 3  # a day is 0.27 % of the window
    assert log._down(1) == 1  # a node drawn is down for 0.6 %
    brief = OwnLog(log=log_of(start, [0, 1, 2, 3, 4], np.array([0.1, 0.1, 0.1, 9, 9]) * DAY, 10))
    assert brief._down(10) == 2  # a tenth of a day is 0.03 %


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rank": "hope"}, "rank must be"),
        ({"rank": "replay", "rates": "llama3"}, "rank must be 'independent' unless rates is a Fai"),
        ({"rank": "events", "rates": "llama3"}, "rank must be 'independent' unless rates is a Fai"),
        (
            {"rank": "events", "source": SharedEvents(sizes=(1,))},
            "source must be left out with rank",
        ),
        ({"rank": "replay", "objective": "p10"}, "rank must be 'independent' or 'events' with obj"),
    ],
)
def test_a_rank_that_cannot_be_is_refused_by_name(options, told):
    log = together(np.random.default_rng(0))
    with pytest.raises((ValueError, TypeError), match=told):
        rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, **{"rates": log, **options})


def test_a_log_that_cannot_be_replayed_says_why():
    log = together(np.random.default_rng(0))
    end = np.where(np.arange(log.end.size) == 5, np.nan, log.end)
    open_ = FailureLog(
        node=log.node, start=log.start, end=end, cause=log.cause, population=NODES, begin=0.0,
        finish=log.finish,
    )  # fmt: skip
    found = planned(open_)
    assert found.to_frame()["replayed goodput"].isna().all()
    assert "cannot be replayed everywhere: end must be known" in " ".join(found.to_text(80).split())
    with pytest.raises(ValueError, match="rank must be another than 'replay' here: end must be"):
        planned(open_, "replay")


@needs_data
def test_the_year_of_four_hundred_servers_turns_the_order_of_the_recoveries():
    """A job that waits for one of 16 spares is the best by the formula, and not under the log."""
    table = pd.read_csv(DATA / "failures/infinitehbd/outages.csv").query("end_days > start_days")
    log = FailureLog(
        node=table["node"].to_numpy(dtype=np.str_),
        start=table["start_days"].to_numpy() * DAY,
        end=table["end_days"].to_numpy() * DAY,
        cause=["node"] * len(table),
        population=400,
        begin=0.0,
        overlaps="merge",
    )
    elastic = Recovery("elastic", repair=DAY, restart=300.0, pause=HOUR)
    asked = {
        "gpus": 3200,
        "global_batch": 2400,
        "measured": {Strategy(tensor=8, pipeline=4, data=100): 3e6},
        "spares": 16,
        "policies": ("spares", elastic),
    }
    found = planned(log, **asked)
    said = " ".join(found.to_text(80).split())
    assert found.best.policy == "spares"
    assert "the order turns over under the replay: it leaves 0.82" in said
    assert "of TP8 PP4 CP1 DP96, elastic, 16 spares" in said
    first = found.to_frame().iloc[0]
    assert first["replayed goodput"] < first["relative goodput"] - 0.1
    ranked = planned(log, "replay", **asked)
    assert ranked.best.policy == "elastic"
    alone, by_log, _ = map(
        int, re.search(r"time: (\d+) by.*?, (\d+) by.*?\((\d+) by", said).groups()
    )
    assert (alone, by_log) == (20, 33)
