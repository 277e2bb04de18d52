from fractions import Fraction

import numpy as np
import pytest

from relparallel.reliability import Reliability
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.methods import first_that_fits
from relparallel.reliability.result import bracketed, exactly

EXACT = {
    "reliability": 0.9,
    "unreliability": 0.1,
    "lower": 0.1,
    "upper": 0.1,
    "method": "exact",
}


def test_a_table_for_a_reader():
    result = Reliability(**EXACT)
    assert result.to_frame().iloc[0].to_dict() == EXACT
    assert "unreliability" in result._repr_html_()
    assert "0.1" in result._repr_html_()


def test_small_unreliability_is_shown():
    tiny = Reliability(**EXACT | {"unreliability": 4.8e-47, "lower": 4.8e-47, "upper": 4.8e-47})
    assert "4.8e-47" in tiny._repr_html_()


def test_only_an_interval_of_width_zero_is_exact():
    assert Reliability(**EXACT).exact
    assert not Reliability(**EXACT | {"upper": 0.2, "method": "bounds"}).exact


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reliability", 1.5),
        ("unreliability", float("nan")),
        ("unreliability", None),
        ("lower", 0.2),
        ("upper", 0.05),
        ("upper", "1"),
        ("method", "guess"),
        ("width", -1),
        ("states", 0.5),
        ("states", True),
    ],
)
def test_bad_fields_are_refused_by_name(name, value):
    with pytest.raises((ValueError, TypeError), match=rf"{name}.* must"):
        Reliability(**EXACT | {name: value})


def test_a_bracket_is_told_by_its_middle():
    found = bracketed(0.25, 0.5, "why", width=3)
    assert (found.lower, found.unreliability, found.upper) == (0.25, 0.375, 0.5)
    assert (found.reliability, found.method, found.exact) == (0.625, "bounds", False)
    assert (found.reason, found.width, found.states) == ("why", 3, 0)
    assert bracketed(0.25, 0.5, value=0.3).unreliability == 0.3


def test_a_result_of_our_own_is_like_one_that_was_checked():
    found = exactly(0.9, 0.1, "exact", width=3, states=7, reason="why")
    checked = Reliability(
        **EXACT | {"unreliability": 0.1, "width": 3, "states": 7, "reason": "why"}
    )
    assert found == checked
    assert repr(found) == repr(checked)
    assert found.reason == checked.reason
    with pytest.raises(ValueError, match="made by hand"):
        found.importance()


def test_rounding_above_one_is_cut_and_results_are_floats():
    assert exactly(np.float64(1 + 2**-52), 0, "closed_form").reliability == 1.0
    assert type(exactly(np.float64(0.5), 0.5, "exact").reliability) is float
    assert exactly(Fraction(1, 3), Fraction(2, 3), "exact").upper == 2 / 3


def test_the_reason_names_what_was_passed_over():
    def refused(_):
        raise NotExactError("too wide; ask something else")

    result = exactly(0.9, 0.1, "exact", reason="why")
    attempts = [("one", refused), ("two", lambda _: None), ("three", lambda _: result)]
    assert first_that_fits(None, attempts).reason == "one: too wide; two: none; three: why"
    with pytest.raises(NotExactError, match="one: too wide; two: none"):
        first_that_fits(None, attempts[:2])
    loose = "loose", lambda _: bracketed(0.1, 0.2, "wide")
    assert first_that_fits(None, [loose]).reason == "loose: wide"
    result = exactly(0.9, 0.1, "exact", reason="why")
    assert first_that_fits(None, [loose, attempts[2]]).reason == "loose: wide; three: why"
