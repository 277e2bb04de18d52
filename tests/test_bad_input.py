"""Bad input is refused: the error names the argument, shows the value and says what is allowed."""

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import relparallel as rp
from meaningful_values import MEANINGFUL
from valid_calls import CALLS, returned

PACKAGES = (
    "topology",
    "metrics",
    "workload",
    "parallel",
    "reliability",
    "training",
    "optimize",
    "planning",
)
BAD = {
    "nan": math.nan,
    "infinite": math.inf,
    "text": "text",
    "none": None,
    "negative": -1,
    "empty": [],
    "fraction": 1.5,
    "object": object(),
}


def offered() -> dict[str, object]:
    """Every function that the packages offer, and every class that checks its fields, by name."""
    found = {
        f"{p}.{n}": getattr(getattr(rp, p), n) for p in PACKAGES for n in getattr(rp, p).__all__
    }
    return {name: value for name, value in found.items() if callable(value) and checked(value)}


def checked(value: object) -> bool:
    """Tell results, which only functions build, from what users build."""
    return not (inspect.isclass(value) and is_dataclass(value)) or hasattr(value, "__post_init__")


OFFERED = offered()
ENTRIES = sorted(name for name in CALLS if name.split()[0] in OFFERED)


@cache
def cases() -> list[tuple[str, str]]:
    """Every entry with each of its arguments."""
    return [(name, argument) for name in ENTRIES for argument in CALLS[name]()]


def called(name: str) -> object:
    """The function or class of an entry; a second entry of it has a remark behind its name."""
    return OFFERED[name.split()[0]]


def bad_kinds(name: str, argument: str, good: object) -> list[str]:
    """The kinds of values that are bad for an argument."""
    parameter = inspect.signature(called(name)).parameters.get(argument)
    whole = isinstance(good, int) and not isinstance(good, bool)
    optional = good is None or (parameter is not None and parameter.default is None)
    meaningless = {
        "none": optional,
        "fraction": not whole,
        "infinite": not isinstance(good, int | float),
    }
    meant = MEANINGFUL.get(name, {}).get(argument, set())
    return [kind for kind in BAD if kind not in meant and not meaningless.get(kind, False)]


def complaint(name: str, argument: str, bad: object) -> str | None:
    """Call with one bad argument; return what is wrong with the answer, None if refused well."""
    try:
        result = called(name)(**CALLS[name]() | {argument: bad})
        if inspect.isgenerator(result):
            list(result)
    except (TypeError, ValueError) as error:
        said = str(error)
        if not re.search(rf"\b{argument}\b", said):
            return f"the message does not name it: {said}"
        return None if shows(said, bad) else f"the message does not show the value: {said}"
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    return f"was accepted: {str(result)[:60]}"


def shows(said: str, bad: object) -> bool:
    """Tell whether a message shows a value: itself, its shape, or, of a list, its length."""
    if isinstance(bad, list):
        return True
    value = "<object object" if type(bad) is object else str(bad)
    return value in said or "got shape ()" in said or (bad == "text" and "got 't'" in said)


def test_everything_offered_has_a_valid_call():
    assert set(OFFERED) == {name.split()[0] for name in CALLS}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_valid_call_is_valid(name):
    returned(name)


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_the_valid_calls_give_every_argument(name):
    known = inspect.signature(OFFERED[name]).parameters.items()
    given = {argument for entry in CALLS if entry.split()[0] == name for argument in CALLS[entry]()}
    assert {n for n, p in known if p.kind is not inspect.Parameter.VAR_KEYWORD} <= given


@pytest.mark.parametrize("name", ENTRIES)
def test_bad_values_are_refused_by_name_and_value(name):
    found = {
        (argument, kind): complaint(name, argument, BAD[kind])
        for argument, good in CALLS[name]().items()
        for kind in bad_kinds(name, argument, good)
    }
    assert {case: told for case, told in found.items() if told} == {}


STRANGE = st.one_of(
    st.complex_numbers(),
    st.dictionaries(st.integers(min_value=100), st.floats(), min_size=1, max_size=2),
    # 1.0 names node 1
    st.frozensets(st.floats(0.1, 0.9) | st.just(math.nan), min_size=1, max_size=2),
    st.lists(st.sampled_from([math.nan, None]), min_size=1, max_size=3),
    st.builds(np.array, st.sampled_from([[math.nan, 1.0], [[math.nan]], [None], ["text"], [1j]])),
)


@settings(max_examples=400)
@given(case=st.deferred(lambda: st.sampled_from(cases())), bad=STRANGE)
def test_strange_values_are_refused_and_never_crash(case, bad):
    """Of any type, nested or not: nothing but a TypeError or ValueError that names the argument."""
    name, argument = case
    assume(not (isinstance(bad, Mapping) and isinstance(CALLS[name]()[argument], Mapping)))
    # Of several networks, one may be the two levels of links, None.
    assume(
        not (name.startswith("optimize.joint") and argument == "network" and isinstance(bad, list))
    )
    with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b"):
        called(name)(**CALLS[name]() | {argument: bad})
