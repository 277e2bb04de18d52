"""What own runs teach: against the formulas of a Student process, and what must hold of any."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from evidence import measured_runs
from relparallel.parallel import step_time
from relparallel.parallel.corrections import Learned, Lessons
from relparallel.parallel.past_runs import FEATURES
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
    points = rng.normal(0, 0.5, (3, len(FEATURES)))
    return lessons(points, [0.10, -0.05, 0.2], [0.2, 0.3, 0.25])


def covariance(points, deviation):
    """Of log(measured / predicted), as the module's first lines say it."""
    of_model = [k for k, name in enumerate(FEATURES) if name not in Split._fields]
    apart = (points[:, None] - points) ** 2
    models, every = apart[:, :, of_model].sum(axis=2), apart.sum(axis=2)
    alike = np.exp(-models / 2) * (1 + np.exp((models - every) / (2 * 2.0**2))) / 2
    return alike + np.diag((0.04 / deviation) ** 2)


def test_the_posterior_is_that_of_the_dense_formula(three):
    """Shah et al. 2014, lemma 3: a multivariate t given some of its entries.

    But the runs count for its scale as far as they explain the variance that is wanted.
    """
    there = three.features[[0]] + 0.3
    bound = np.array([0.4])
    deviation = np.append(three.bound, bound) / t.ppf(0.95, 2)
    whole = covariance(np.concatenate([three.features, there]), deviation)
    own, cross = whole[:3, :3], whole[3, :3]
    inverse = np.linalg.inv(own)
    mean = cross @ inverse @ three.log_ratio
    known = three.log_ratio / deviation[:3]
    explained = cross @ inverse @ cross
    assert 0.1 < explained < 0.9
    freedom = 2 + explained * 3
    scale = (2 + explained * (known @ inverse @ known)) / freedom
    left = (whole[3, 3] - explained) * scale
    assert three.shift(there) == pytest.approx([mean], rel=1e-12)
    wide = t.ppf(0.95, freedom) * np.sqrt(left) * deviation[3] / np.sqrt(whole[3, 3])
    found = three.stretch(there) * np.sqrt(three.covariance(there, bound)[0]) * bound
    assert found == pytest.approx([wide], rel=1e-12)


def test_draws_have_the_chances_of_the_distribution(three):
    there = np.concatenate([three.features[:1] + 0.5, three.features[2:] - 0.5])
    bound, score = np.array([0.3, 0.2]), np.array([1.0, 0.97])
    shares = three.shares(score, there, bound)
    freedom = three.freedom(there).mean()
    size = three.stretch(there) * bound / t.ppf(0.95, freedom)
    shape = three.covariance(there, bound) * np.outer(size, size)
    rng = np.random.default_rng(5)
    errors = multivariate_t(shape=shape, df=freedom).rvs(200_000, random_state=rng)
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


def places(rng, count, **of_model):
    """Strategies of a model, near each other."""
    degrees = np.array([name in Split._fields for name in FEATURES])
    found = degrees * (rng.normal(0, 1, len(FEATURES)) + rng.normal(0, 0.5, (count, len(FEATURES))))
    for name, value in of_model.items():
        found[:, FEATURES.index(name)] = value
    return found


def left(points, ratio, seen, learn=Lessons.shift):
    """Mean absolute error that runs leave of all that were not seen."""
    runs = lessons(points[seen], ratio[seen], np.full(len(seen), 0.25))
    return np.delete(np.abs(learn(runs, points) - ratio), seen)


@pytest.mark.parametrize("other", [{"mixture": 2}, {"format": 2}, {"parameters": 3}])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_an_error_stays_with_the_model_where_signs_differ(other, count):
    """Where one factor, the rival, makes the other model twice as bad."""
    rng, seen, found = np.random.default_rng(2), np.arange(count), []
    for _ in range(40):
        points = np.concatenate([places(rng, 12), places(rng, 12, **other)])
        ratio = np.repeat([0.15, -0.15], 12) + 0.03 * rng.standard_normal(24)
        alone, both = left(points, ratio, seen), left(points, ratio, np.append(seen, 12 + seen))
        rival = left(points, ratio, seen, lambda runs, _: runs.log_ratio.mean())
        found.append([one.mean() for one in (alone[:-12], alone[-12:], both, rival[-12:])])
    same, away, after, one_factor = np.mean(found, axis=0) / 0.15
    assert max(same, after) < 0.5
    assert away < 1.12
    assert one_factor > 1.9


def test_an_error_of_all_models_is_learnt_for_one_between_them():
    """Where a factor for each model, the rival, teaches nothing."""
    rng = np.random.default_rng(3)
    sizes = (0.0, 0.7, 2.1, 1.4, 1.4)
    points = np.concatenate([places(rng, 2, parameters=size) for size in sizes])
    ratio = 0.2 + 0.03 * rng.standard_normal(10)
    assert left(points, ratio, np.arange(6)).mean() < 0.08


def drawn(rng, points, shared, freedom):
    """Errors of 90 % bound 0.25: of a Student process, or of one factor by model and strategy."""
    size = 0.25 / t.ppf(0.95, freedom) * np.sqrt(freedom / rng.chisquare(freedom))
    if shared is None:
        whole = covariance(points, np.full(len(points), 0.25 / t.ppf(0.95, 2)))
        return size * np.linalg.cholesky(whole) @ rng.standard_normal(len(points))
    model = np.unique(points[:, FEATURES.index("parameters")], return_inverse=True)[1]
    own, each = rng.standard_normal(model.max() + 1), rng.standard_normal(len(points))
    return size * (np.sqrt(shared) * own[model] + np.sqrt(1 - shared) * each)


@pytest.mark.parametrize(
    ("shared", "freedom", "least"),
    [(None, 2, 0.88), (0.9, 2, 0.85), (0.5, 2, 0.85), (0.9, 30, 0.86), (0.3, 2, 0.82)],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_nine_of_ten_errors_are_inside_also_where_the_process_is_another(
    shared, freedom, least, elsewhere
):
    """Of the model that was learnt, and of another; the last shares less than is taken for granted."""
    rng, inside = np.random.default_rng(4), []
    for _ in range(400):
        points = np.concatenate([places(rng, 8), places(rng, 8, parameters=1.5)])
        errors = drawn(rng, points, shared, freedom)
        count = rng.integers(1, 7)
        runs = lessons(points[:count], errors[:count], np.full(count, 0.25))
        asked = slice(8, 16) if elsewhere else slice(count, 8)
        there, bound = points[asked], np.full(len(points[asked]), 0.25)
        wide = bound * runs.stretch(there) * np.sqrt(np.diag(runs.covariance(there, bound)))
        inside.append((np.abs(runs.shift(there) - errors[asked]) <= wide).mean())
    assert least < np.mean(inside) < 0.98


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
