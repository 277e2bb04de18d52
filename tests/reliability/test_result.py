import pytest

from relparallel.reliability import Reliability
from relparallel.reliability.result import bracketed

EXACT = {
    "reliability": 0.9, "unreliability": 0.1, "lower": 0.1, "upper": 0.1, "method": "exact", "routing": "any",
}  # fmt: skip


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
    assert not Reliability(**EXACT | {"upper": 0.2, "method": "monte_carlo", "samples": 10}).exact


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
        ("routing", "shortest"),
        ("width", -1),
        ("states", 0.5),
        ("samples", True),
    ],
)
def test_bad_fields_are_refused_by_name(name, value):
    with pytest.raises((ValueError, TypeError), match=rf"{name}.* must"):
        Reliability(**EXACT | {name: value})


def test_a_bracket_is_told_by_its_middle():
    found = bracketed(0.25, 0.5, "updown", "why", width=3, states=7)
    assert (found.lower, found.unreliability, found.upper) == (0.25, 0.375, 0.5)
    assert (found.reliability, found.method, found.exact) == (0.625, "bounds", False)
    assert (found.routing, found.reason, found.width, found.states) == ("updown", "why", 3, 7)
