"""What own runs teach: against the formulas of a Student process, and what must hold of any."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from evidence import measured_runs
from relparallel.parallel import step_time
from relparallel.parallel.corrections import Learned, Lessons
from relparallel.parallel.prices import pricing
from relparallel.parallel.quantities import Split

RUNS = [run for run in measured_runs() if run.source == "Megatron-Bridge, H100"]
OWN = [replace(run, software="mine") for run in RUNS]


def asked(run):
    return run.model, run.strategy, run.cluster, run.global_batch


def lessons(points, ratios, bounds):
    return Lessons(
        software="mine",
        rules="nemo-2024",
        features=np.array(points, float),
        log_ratio=np.array(ratios, float),
        bound=np.array(bounds, float),
    )


@pytest.fixture
def three():
    rng = np.random.default_rng(1)
    return lessons(rng.normal(0, 1.5, (3, 15)), [0.10, -0.05, 0.2], [0.2, 0.3, 0.25])


def prior(points, deviation):
    """Covariance of log(measured / predicted) as the module's first lines say it."""
    apart = ((points[:, None] - points) ** 2).sum(axis=2)
    alike = 0.5 + 0.5 * np.exp(-apart / (2 * 2.0**2))
    return alike + np.diag((0.04 / deviation) ** 2)


def test_the_posterior_is_that_of_the_dense_formula(three):
    """Shah et al. 2014, lemma 3: a multivariate t given some of its entries."""
    there = three.features[[0]] + 0.3
    bound = np.array([0.4])
    deviation = np.append(three.bound, bound) / t.ppf(0.95, 2)
    whole = prior(np.concatenate([three.features, there]), deviation)
    own, cross = whole[:3, :3], whole[3, :3]
    inverse = np.linalg.inv(own)
    mean = cross @ inverse @ three.log_ratio
    known = three.log_ratio / deviation[:3]
    scale = (2 + known @ inverse @ known) / (2 + 3)
    left = (whole[3, 3] - cross @ inverse @ cross) * scale
    assert three.shift(there) == pytest.approx([mean], rel=1e-12)
    wide = t.ppf(0.95, 5) * np.sqrt(left) * deviation[3] / np.sqrt(whole[3, 3])
    found = three.stretch() * np.sqrt(three.covariance(there, bound)[0]) * bound
    assert found == pytest.approx([wide], rel=1e-12)


def test_draws_have_the_chances_of_the_distribution(three):
    there = np.concatenate([three.features[:1] + 0.5, three.features[2:] - 0.5])
    bound, score = np.array([0.3, 0.2]), np.array([1.0, 0.97])
    shares = three.shares(score, there, bound)
    size = three.stretch() * bound / t.ppf(0.95, three.freedom)
    shape = three.covariance(there, bound) * np.outer(size, size)
    rng = np.random.default_rng(5)
    errors = multivariate_t(shape=shape, df=three.freedom).rvs(200_000, random_state=rng)
    worth = np.log(score) - errors
    wins = (worth[:, 0] >= worth[:, 1]).mean()
    assert (shares[:, 0] == 1).mean() == pytest.approx(wins, abs=0.03)
    assert shares.max(axis=1) == pytest.approx(np.ones(len(shares)))


def test_no_run_gives_the_prior_back_exactly():
    run, nothing = RUNS[0], Learned(lessons=())
    given = {"precision": run.precision, "software": run.software}
    assert nothing.predict(*asked(run), **given) == step_time(*asked(run), **given)
    assert nothing.lessons == ()
    empty = Lessons(software="mine", rules=run.software)
    step = empty.predict(*asked(run), run.precision)
    assert step.total == step_time(*asked(run), **given).total
    unseen = step_time(*asked(run), precision=run.precision, software="megatron-2021")
    assert step.interval()[1] / step.total > 1.1 * step.interval()[0] / step.total
    assert dict(step.log_errors)[0.9] == pytest.approx(dict(unseen.log_errors)[0.9], rel=0.02)


def test_the_order_of_runs_is_of_no_account():
    there = OWN[-1]
    steps = [
        Learned.of(runs).predict(*asked(there), precision=there.precision)
        for runs in (OWN[:4], OWN[3::-1])
    ]
    assert steps[0].total == pytest.approx(steps[1].total, rel=1e-12)
    assert steps[0].interval() == pytest.approx(steps[1].interval(), rel=1e-12)


def test_runs_that_are_all_as_slow_teach_a_factor_but_not_all_of_it():
    run = OWN[0]
    slow = [
        replace(one, time=1.2 * Learned.of([one]).to_frame()["predicted"].item()) for one in OWN
    ]
    factors = [Learned.of(slow[:count]).factors().iloc[0] for count in (1, 3, 8)]
    assert all(one["from"] < one["factor"] < 1.2 for one in factors)
    assert factors[0]["factor"] > 1.05
    assert factors[2]["from"] > 1.05
    assert factors[0]["factor"] < factors[1]["factor"] < factors[2]["factor"]
    widths = [one["to"] / one["from"] for one in factors]
    assert widths[0] > widths[1] > widths[2] > 1
    again = Learned.of(slow).predict(*asked(run), precision=run.precision)
    assert again.total == pytest.approx(slow[0].time, rel=0.02)
    assert again.interval()[1] / again.interval()[0] > 1.02  # never of zero width


def test_what_was_not_measured_is_left_as_it_was():
    """Other accelerators, and other software on the same."""
    learned = Learned.of(OWN[:3])
    a100 = next(run for run in measured_runs() if run.source == "PTD-P")
    given = {"software": "megatron-2021"}
    assert learned.predict(*asked(a100), **given) == step_time(*asked(a100), **given)
    run, given = RUNS[0], {"precision": RUNS[0].precision, "software": "nemo-2024"}
    assert learned.predict(*asked(run), **given) == step_time(*asked(run), **given)
    assert learned.predict(*asked(run), precision=run.precision).software == "mine"


def test_strategies_are_priced_in_bulk_as_one_by_one():
    learned, run = Learned.of(OWN[:3]), OWN[0]
    costs = pricing(
        run.model, run.cluster, run.global_batch, precision=run.precision, learned=learned
    )
    step = learned.predict(*asked(run), precision=run.precision)
    assert costs.step(run.strategy).total == pytest.approx(step.total, rel=1e-12)
    assert costs.step(run.strategy).interval() == pytest.approx(step.interval(), rel=1e-12)
    s = Split.of(run.strategy, run.global_batch)
    assert costs.time(s) == pytest.approx(step.total, rel=1e-12)


def test_a_run_far_from_its_prediction_is_questioned():
    strange = replace(OWN[0], id="row 7", time=20 * OWN[0].time)
    with pytest.raises(ValueError, match=r"got .* of row 7 for .*check unit.*accept=True"):
        Learned.of([strange])
    assert Learned.of([strange], accept=True).factors()["factor"].item() > 2


def test_software_is_that_of_the_runs_or_a_known_one():
    learned = Learned.of([*OWN[:2], replace(OWN[2], software="other")])
    device = OWN[0].cluster.accelerator
    assert learned.about(device).software == "mine"
    assert learned.about(device, "other").log_ratio.size == 1
    with pytest.raises(ValueError, match="software must be"):
        learned.about(device, "theirs")


@pytest.mark.slow
def test_nine_of_ten_left_out_runs_are_inside():
    inside = []
    for source in ("vTrain, several nodes", "BLOOM", "MPT, H100"):
        table = Learned.of([run for run in measured_runs() if run.source == source][:40]).to_frame()
        inside.append(table["measured"].between(table["from"], table["to"]).mean())
    assert 0.85 <= np.mean(inside) <= 1
