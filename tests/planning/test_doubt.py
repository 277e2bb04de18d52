"""What is read from draws of the errors: of strategies, and of clusters side by side."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import relparallel as rp
from relparallel.parallel.corrections import features
from relparallel.parallel.past_runs import Experience, experience
from relparallel.planning.doubt import ENOUGH, Doubt, vendors


def test_the_loss_is_the_mean_of_what_is_lost_and_the_chance_counts_the_best():
    shares = np.array([[1.0, 0.5], [0.8, 1.0], [1.0, 0.9], [1.0, 0.4]])
    doubt = Doubt(rows=(), count=0, shares=shares, measured=np.zeros(2, dtype=bool))
    assert doubt.probability.tolist() == [0.75, 0.25]
    assert np.allclose(doubt.loss, [0.05, 0.3], rtol=1e-12, atol=0)


def side_by_side(clusters, gpus=64, **options):
    asked = {"gpus": [gpus] * len(clusters), "global_batch": 512, "strategies": 1, **options}
    return rp.plan("llama3-8b", clusters, **asked)


def scales(found):
    """Of Student's t with two degrees of freedom, from the 90 % interval of every step."""
    return [
        math.log(one.step.interval()[1] / one.step.total) / stats.t.ppf(0.95, 2)
        for one in found.found
    ]


def test_two_copies_of_a_cluster_are_the_better_one_with_a_half_each():
    table = side_by_side(["h100-80gb-dgx"] * 2).clusters()
    assert table["best cluster with probability"].tolist() == [0.5, 0.5]
    assert table["before the next with probability"].iloc[0] == 0.5


def test_kinds_of_accelerators_err_apart():
    """Chance that one of two is better, by an integral over the error of the other."""
    found = side_by_side(["a100-80gb-selene", "h100-80gb-dgx"])
    one, other = (plan.goodput for plan in found.found)
    mine, its = scales(found)
    gap = math.log(one / other)

    def together(x):
        return stats.t.pdf(x / its, 2) / its * stats.t.cdf((gap + x) / mine, 2)

    chance = integrate.quad(together, -20, 20, points=[-1, 0, 1], limit=400)[0]
    table = found.clusters()
    said = table.loc["a100-80gb-selene", "best cluster with probability"]
    assert said == pytest.approx(chance, abs=0.015)
    assert table["best cluster with probability"].sum() == pytest.approx(1)
    first = table["best cluster with probability"].iloc[0]
    assert table["before the next with probability"].iloc[0] == first
    assert f"(the best with probability {first:.0%})" in " ".join(found.to_text(10**4).split())


def test_one_kind_of_accelerator_errs_alike():
    """The difference of two errors that are alike is Student's as well; its scale is the smaller."""
    found = side_by_side(["h100-80gb-roce", "h100-80gb-dgx"], limits={"tensor": 4, "pipeline": 1})
    there = np.concatenate(
        [
            features(found.model, "bf16", rp.parallel.quantities.Split.of(one.strategy, 512))
            for one in found.found
        ]
    )
    wide, own = np.array(scales(found)), (0.04 / np.array(scales(found))) ** 2
    alike = 0.5 + 0.5 * math.exp(-((there[0] - there[1]) ** 2).sum() / 8)
    alike /= math.sqrt((1 + own[0]) * (1 + own[1]))
    scale = math.sqrt(wide @ wide - 2 * alike * wide.prod())
    gap = math.log(found.found[0].goodput / found.found[1].goodput)
    said = found.clusters().loc["h100-80gb-roce", "best cluster with probability"]
    assert said == pytest.approx(stats.t.cdf(gap / scale, 2), abs=0.015)


def test_a_price_turns_the_order_and_its_chance():
    names = ["a100-80gb-selene", "h100-80gb-dgx"]
    by_tokens, by_money = (
        side_by_side(names, **money).clusters() for money in ({}, {"price": [1.0, 90.0]})
    )
    assert by_tokens.index.tolist() == by_money.index.tolist()[::-1] == names[::-1]
    assert by_money["best cluster with probability"].iloc[0] > 0.99
    assert "cost of 1e9 tokens" not in by_tokens


def test_measured_speeds_do_not_err():
    name = "h100-80gb-dgx"
    runs = pd.DataFrame({"strategy": ["TP8 DP8"], "cluster": name, "gpus": 64, "tokens/s": 6.4e4})
    table = side_by_side([name] * 2, measured=runs, only_measured=True, price=[1, 2]).clusters()
    assert table["best cluster with probability"].tolist() == [1.0, 0.0]


CHIPS = {
    "mi300x-192gb": "AMD",
    "mi325x-256gb": "AMD",
    "mi355x-288gb": "AMD",
    "tpu-v5p-95gb": "Google",
    "h100-80gb": "NVIDIA",
    "h200-141gb": "NVIDIA",
    "b200-180gb": "NVIDIA",
}


def servers(chip):
    return rp.hardware.Cluster(
        nodes=8, accelerator=rp.hardware.accelerator(chip), network_bandwidth=4e11, name=chip
    )


def test_makers_of_chips_are_known_by_their_names():
    for chip, maker in CHIPS.items():
        device = rp.hardware.accelerator(chip)
        assert (device.vendor, replace(device, name=f"{chip}-mine").vendor) == (maker, maker)
    assert {rp.hardware.accelerator(one).vendor for one in rp.hardware.accelerators()} == {
        *CHIPS.values()
    }
    assert replace(device, name="own-1gb").vendor == "own"


def test_vendors_stand_in_no_order_where_too_few_runs_were_measured(monkeypatch):
    """Nobody trained all weights on MI300X; with the runs needed the order is there again."""
    asked = {"gpus": None, "global_batch": 512, "strategies": 1}
    chips = ["h100-80gb", "mi300x-192gb", "h200-141gb", "mi355x-288gb"]
    found = rp.plan("llama3-8b", [servers(chip) for chip in chips], **asked)
    table, said = found.clusters(), " ".join(found.to_text(10**4).split())
    assert [CHIPS[chip] for chip in table.index] == ["NVIDIA"] * 2 + ["AMD"] * 2
    assert found.best.cluster.name in chips[::2]
    within = table["before the next with probability"]
    assert within.isna().tolist() == [False, True, False, True]
    assert table["best cluster with probability"].groupby([0, 0, 1, 1]).sum().tolist() == [1, 1]
    assert "no order between vendors: measured runs of dense models" in found.warnings[0]
    assert said.count("the best with probability") == 2
    assert table.index[2:].tolist() == ["mi355x-288gb", "mi300x-192gb"]  # as in MLPerf 5.1
    assert found.to_frame()["cluster"].tolist() == [chips[0], chips[2], chips[1], chips[3]]
    monkeypatch.setattr(Experience, "support", lambda *_: ENOUGH)
    assert vendors(found.found) == ([""] * 4, "")
    assert not found.clusters()["before the next with probability"].iloc[:3].isna().any()


def test_a_study_says_why_vendors_stand_in_no_order():
    machines = {chip: servers(chip) for chip in ("h100-80gb", "mi300x-192gb")}
    table = rp.study("llama3-8b", machines, global_batch=512)
    assert table["best cluster with probability"].isna().all()
    assert table["vendor"].tolist() == ["NVIDIA", "AMD"]
    assert len(table.attrs["notes"]) == 1
    alone = rp.study("llama3-8b", {"h100-80gb": machines["h100-80gb"]}, global_batch=512)
    assert (alone["best cluster with probability"].tolist(), alone.attrs["notes"]) == ([1], [])


def test_own_runs_on_an_accelerator_let_it_be_compared():
    names = ["h100-80gb-dgx", "mi300x-192gb-oam"]
    runs = pd.DataFrame(
        {"strategy": "TP8 DP8", "cluster": names, "gpus": 64, "step [s]": [9, 12.0]}
    )
    found = side_by_side(names, measured=runs)
    assert vendors(found.found) == (["", ""], "")
    other = side_by_side(names, measured=runs[:1])
    assert vendors(other.found)[0] == ["", "AMD"]


def test_support_counts_runs_and_publishers_by_hand():
    table = pd.read_csv(rp.published.data_folder() / "derived/experience.csv")
    software = table["software"].str.contains("+adapters", regex=False)
    for chip, mixture, adapters in product(
        ("h100-80gb", "b200-180gb", "a100-80gb"), (0, 1), (False, True)
    ):
        mine = (
            table["family"].eq(chip.partition("-")[0])
            & table["experts"].gt(1).eq(mixture)
            & software.eq(adapters)
        )
        want = int(mine.sum()), table.loc[mine, "publisher"].nunique()
        name = "any+adapters" if adapters else "any"
        known = rp.parallel.calibration(chip)
        assert experience().support(known, bool(mixture), name) == want
        assert experience().support(replace(known, borrowed="x"), bool(mixture), name) == (0, 0)
