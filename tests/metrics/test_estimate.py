import math

import pytest
from scipy.stats import binomtest

from relparallel.metrics import Estimate
from relparallel.metrics.estimate import binomial_estimate


def test_an_estimate_is_its_value():
    found = Estimate(value=2.5, lower=2.0, upper=3.0, method="sampling", exact=False)
    assert float(found) == 2.5
    assert repr(found) == "Estimate(2.5 in [2, 3], sampling)"


def test_an_exact_estimate_has_no_bracket():
    assert (
        repr(Estimate(value=3, lower=3, upper=3, method="flow", exact=True))
        == "Estimate(3, exact, flow)"
    )


def test_infinity_is_a_value():
    assert (
        float(Estimate(value=math.inf, lower=1, upper=math.inf, method="none", exact=False))
        == math.inf
    )


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 10), (10, 10), (1, 7), (500, 1000), (500_000, 10**6)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(successes, trials, confidence):
    found = binomial_estimate(successes, trials, confidence)
    oracle = binomtest(successes, trials).proportion_ci(confidence_level=confidence)
    assert (found.lower, found.upper) == pytest.approx((oracle.low, oracle.high), rel=1e-9)
    assert (found.value, found.exact) == (successes / trials, False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((3, 2, 0.9), "successes must be"),
        ((0, 0, 0.9), "trials must be"),
        ((1, 2, 1.0), "confidence must be"),
    ],
)
def test_a_bad_share_is_named(arguments, error):
    with pytest.raises(ValueError, match=error):
        binomial_estimate(*arguments)
