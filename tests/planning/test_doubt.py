"""What is read from draws of the errors: of strategies, and of clusters side by side."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import relparallel as rp
from relparallel.parallel.corrections import features
from relparallel.planning.doubt import Doubt


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
    found = side_by_side(["mi300x-192gb-oam", "h100-80gb-dgx"])
    one, other = (plan.goodput for plan in found.found)
    mine, its = scales(found)
    gap = math.log(one / other)

    def together(x):
        return stats.t.pdf(x / its, 2) / its * stats.t.cdf((gap + x) / mine, 2)

    chance = integrate.quad(together, -20, 20, points=[-1, 0, 1], limit=400)[0]
    table = found.clusters()
    said = table.loc["mi300x-192gb-oam", "best cluster with probability"]
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
