import math

import pytest

from relparallel.metrics import Estimate


def test_an_estimate_is_its_value():
    found = Estimate(value=2.5, lower=2.0, upper=3.0, method="sampling", exact=False)
    assert float(found) == 2.5
    assert repr(found) == "Estimate(2.5 in [2, 3], sampling)"


def test_an_exact_estimate_has_no_bracket():
    assert repr(Estimate(value=3, lower=3, upper=3, method="flow", exact=True)) == "Estimate(3, exact, flow)"
    with pytest.raises(ValueError, match="exact must be False"):
        Estimate(value=3, lower=2, upper=3, method="flow", exact=True)


def test_infinity_is_a_value():
    assert float(Estimate(value=math.inf, lower=1, upper=math.inf, method="none", exact=False)) == math.inf


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", 4.0),
        ("value", float("nan")),
        ("value", "3"),
        ("value", [1.0, 2.0]),
        ("lower", None),
        ("upper", []),
        ("method", 3),
        ("exact", 1),
    ],
)
def test_a_bad_field_is_named(field, value):
    good = {"value": 2.5, "lower": 2.0, "upper": 3.0, "method": "sampling", "exact": False}
    with pytest.raises((TypeError, ValueError), match=f"{field} must"):
        Estimate(**{**good, field: value})
