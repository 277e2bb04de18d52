"""Argument checks refuse what they should and name argument, value and range."""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from relparallel._checks import (
    choice,
    each,
    instance,
    real,
    record,
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
    require_real,
    require_rng,
    whole,
)


@record
class Level:
    copies: int = whole(at_least=1)
    cost: float = real(at_least=0, default=1.0)
    pause: float | None = real(above=0, default=None)
    kind: str = choice(("local", "remote"), default="local")
    labels: tuple[str, ...] = each(str, default=())
    owner: str = instance(str, default="")

    def __post_init__(self):
        if self.copies > 1 and self.kind == "local":
            raise ValueError(f"copies must be 1 where kind is 'local', got {self.copies}")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"copies": 0}, "copies must be an integer >= 1, got 0"),
        ({"cost": [1.0]}, "cost must be one number"),
        ({"pause": 0}, "pause must be a number > 0, got 0"),
        ({"kind": "far"}, "kind must be one of 'local', 'remote', got 'far'"),
        ({"labels": ("a", 1)}, "labels must be str, got 1"),
        ({"labels": "a"}, "labels must be tuple, got 'a'"),
        ({"owner": 3}, "owner must be str, got 3"),
        ({"copies": 2}, "copies must be 1 where kind is 'local', got 2"),
        ({"cost": None}, "cost must be a number >= 0, got None"),
    ],
)
def test_a_record_checks_each_field_and_then_all_together(bad, said):
    with pytest.raises((TypeError, ValueError), match=re.escape(said)):
        Level(**{"copies": 1} | bad)


def test_a_record_is_frozen_and_takes_names_only():
    level = Level(copies=2, kind="remote")
    assert (level.cost, level.pause) == (1.0, None)
    with pytest.raises(AttributeError):
        level.copies = 3
    with pytest.raises(TypeError):
        Level(1)


@given(st.integers(-(10**12), 10**12))
def test_an_integer_inside_its_range_comes_back_unchanged(k):
    assert require_int(k=k, at_least=k, at_most=k) == k
    assert require_int(k=np.int64(k)) == k


@pytest.mark.parametrize("bad", [True, np.True_, 2.0, 2.5, "4", None, [4], float("nan")])
def test_what_is_no_integer_is_refused_with_its_name_and_value(bad):
    with pytest.raises(TypeError, match=r"ports must be an integer >= 1, got") as caught:
        require_int(ports=bad, at_least=1)
    assert repr(bad) in str(caught.value) or str(bad) in str(caught.value)


def test_an_integer_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"k must be an integer in \[2, 8\], got 9"):
        require_int(k=9, at_least=2, at_most=8)


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), -float("inf"), -1.0, [0.5, float("nan")]]
)
def test_a_number_that_is_not_finite_or_out_of_bounds_is_refused(bad):
    with pytest.raises(ValueError, match="mtbf must be a number > 0, got"):
        require_real(mtbf=bad, above=0)


@pytest.mark.parametrize("bad", ["1", None, [], True, 1j, object(), [[1.0], "x"]])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match=r"mtbf|inhomogeneous"):
        require_real(mtbf=bad)


def test_infinity_passes_only_on_request():
    assert require_real(mtbf=float("inf"), infinite=True) == float("inf")


def test_arrays_are_checked_element_by_element_and_come_back_as_floats():
    assert require_probability(up=[0, 1]).dtype == np.float64
    with pytest.raises(ValueError, match=r"up must be a probability in \[0, 1\], got 1.5"):
        require_probability(up=[0.5, 1.5])


def test_several_arguments_come_back_in_their_order():
    assert require_int(b=2, a=1) == (2, 1)


def test_choices_flags_instances_and_generators():
    assert require_choice((1, "a"), x="a") == "a"
    with pytest.raises(ValueError, match="x must be one of 1, 'a', got True"):
        require_choice((1, "a"), x=True)
    with pytest.raises(TypeError, match="exact must be True or False, got 1"):
        require_flag(exact=1)
    with pytest.raises(TypeError, match="name must be str, got 3"):
        require_instance(str, name=3)
    with pytest.raises(
        TypeError, match=r"must be Generator from numpy.random.default_rng\(seed\), got 0"
    ):
        require_rng(rng=0)
