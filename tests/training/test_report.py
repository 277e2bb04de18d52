"""The report: closed accounting, percentiles, cost, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from relparallel.training.report import BUCKETS, Goodput

SHARES = dict.fromkeys(BUCKETS, 0.0) | {"productive": 0.8, "lost": 0.15, "waiting": 0.05}


def report(**changed):
    given = {
        "buckets": SHARES,
        "variance_rate": 250.0,
        "horizon": 1e6,
        "step_time": 4.0,
        "gpus": 1024,
        "mtti": pd.Series({"GPU": 1e4}),
        "state_loss_rate": 1e-7,
        "interval": 600.0,
        "method": "closed",
        "find_importance": lambda: pd.DataFrame({"elasticity": {"GPU": -0.2, "rack": -0.3}}),
        "tokens_per_step": 2e6,
    }
    return Goodput(**given | changed)


def test_spread_is_the_central_limit_theorem():
    made = report()
    assert made.sd == pytest.approx(np.sqrt(250 / 1e6))
    np.testing.assert_allclose(made.percentiles(), norm(0.8, made.sd).ppf([0.05, 0.5, 0.95]))
    np.testing.assert_allclose(
        made.percentiles((5,), horizon=4e6), norm(0.8, made.sd / 2).ppf([0.05])
    )
    assert report(variance_rate=0.0).percentiles((0, 50, 100)).tolist() == [0.8] * 3


def test_simulated_runs_are_used_where_there_are_any():
    runs = np.linspace(0.7, 0.9, 101)
    made = report(samples=runs, brackets={"productive": (0.79, 0.81)})
    assert made.percentiles((5, 50, 95)) == pytest.approx([0.71, 0.8, 0.89])
    assert made.to_frame().loc["productive", "upper"] == 0.81


def test_tokens_and_cost():
    made = report()
    assert made.tokens_per_day == pytest.approx(0.8 * 2e6 / 4 * 86400)
    assert made.cost_per_token(2.0) == pytest.approx(2.0 * 1024 * 24 / made.tokens_per_day)
    with pytest.raises(ValueError, match="tokens_per_step"):
        report(tokens_per_step=None).cost_per_token(2.0)
    none = SHARES | {"productive": 0.0, "lost": 0.95}
    assert report(buckets=none).cost_per_token(2.0) == np.inf


def test_state_loss_and_words():
    made = report()
    assert made.state_loss_probability(1e7) == pytest.approx(1 - np.exp(-1))
    said = made.explain()
    for words in ("80.00 %", "15.00 % work done twice", "rack matters most"):
        assert words in said
    assert made.to_frame()["hours per day"].sum() == pytest.approx(24)
