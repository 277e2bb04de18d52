"""No argument annuls another silently: each changes the answer or is refused, alone and in pairs.

Every function with eight or more optional arguments has cases: a valid call, and another value of
each of its optional arguments. Set alone, an argument changes what comes out, or is refused by
name. Of two that are set together one is refused by name, or each of them changes what comes out
beside the other.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from types import FunctionType
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from argument_cases import PARALLEL, RELIABILITY, Case, Needs
from argument_cases_of_jobs import CHOICES, TRAINING

ROOMS: Final = (
    "topology",
    "workload",
    "metrics",
    "parallel",
    "reliability",
    "training",
    "optimize",
    "atlas",
    "planning",
    "hardware",
    "rehearsal",
)
MANY: Final = 8  # optional arguments
#: Arguments that may change nothing, and why.
LIMITS: Final = {
    "ignore": "what may be there and is not read",
    "like": "a limit, which counts where the search finds what nobody has run",
    "executor": "where the work is done, which changes nothing",
    "max_seconds": "a limit, which counts where it is reached",
    "max_states": "a limit, which counts where it is reached",
    "max_steps": "a limit, which counts where it is reached",
    "max_work": "a limit, which counts where it is reached",
}


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions with many optional arguments, by the room and the name."""
    found = {}
    for room in ROOMS:
        package = getattr(rp, room)
        for name in package.__all__:
            function = getattr(package, name)
            if isinstance(function, FunctionType) and len(optional(function)) >= MANY:
                found[f"{room}.{name}"] = function
    return found


def optional(function: Callable[..., Any]) -> list[str]:
    """Arguments with a default."""
    known = inspect.signature(function).parameters.values()
    return [one.name for one in known if one.default is not inspect.Parameter.empty]


def canonical(found: Any) -> str:
    """All numbers and words of a result, without what it can still compute."""
    if isinstance(found, np.ndarray):
        return f"{found.dtype}{found.shape}{found.tolist()!r}"
    if isinstance(found, pd.DataFrame | pd.Series):
        return str(found.to_csv())
    if isinstance(found, Mapping):
        return canonical([*found.items()])
    if isinstance(found, list | tuple):
        return f"({', '.join(map(canonical, found))})"
    if dataclasses.is_dataclass(found):
        parts = {one.name: getattr(found, one.name) for one in dataclasses.fields(found)}
        return type(found).__name__ + canonical(parts)
    return "" if callable(found) else repr(found)


class Found(NamedTuple):
    """What came out of a call, or what its refusal says."""

    said: str
    refused: bool


def outcome(case: Case, changed: tuple[str, ...]) -> Found:
    """Result of a case with other values of some arguments; random numbers begin anew."""
    call = dict(case.base)
    for name in changed:
        other = case.others[name]
        call |= (
            {name: other} if not isinstance(other, Needs) else {name: other.value, **other.required}
        )
    call = {
        n: np.random.default_rng(v) if n == "rng" and v is not None else v for n, v in call.items()
    }
    try:
        return Found(canonical(case.shown(FUNCTIONS[case.function](**call))), False)
    except (ValueError, TypeError) as error:
        return Found(str(error), True)


def complaints(case: Case) -> list[str]:
    """What is wrong with a case, in words."""
    plain = outcome(case, ())
    if plain.refused:
        return [f"the call is not valid: {plain.said}"]
    alone = {name: outcome(case, (name,)) for name in case.others}
    wrong = [
        f"{name} is refused without its name: {one.said}"
        for name, one in alone.items()
        if one.refused and not names(one, name)
    ]
    idle = {name for name, one in alone.items() if one == plain}
    wrong += [f"{name} changes nothing" for name in alone if name in idle - {*LIMITS}]
    for pair in combinations(case.others, 2):
        both = outcome(case, pair)
        if both.refused and not any(names(both, name) or both == alone[name] for name in pair):
            wrong.append(f"{' and '.join(pair)} are refused without their names: {both.said}")
        for name, other in (pair, pair[::-1]):
            if both == alone[other] and name not in idle | {*LIMITS} and not both.refused:
                wrong.append(f"{name} changes nothing beside {other}")
    return wrong


def names(found: Found, argument: str) -> bool:
    return re.search(rf"\b{argument}\b", found.said) is not None


#: Functions with few arguments and many options of one form.
OPTIONS: Final = {"training.read_failure_log": rp.training.read_failure_log}
FUNCTIONS: Final = functions() | OPTIONS

QUICK = RELIABILITY | PARALLEL | TRAINING
CASES = QUICK | CHOICES


def test_every_function_with_many_optional_arguments_has_a_case_of_each():
    tried = {name: set() for name in FUNCTIONS}
    for case in CASES.values():
        tried[case.function] |= {*case.others}
    missing = {name: {*optional(FUNCTIONS[name])} - known for name, known in tried.items()}
    assert {name: left for name, left in missing.items() if left} == {}


@pytest.mark.parametrize("name", QUICK)
def test_every_argument_counts_or_is_refused_by_name(name):
    assert complaints(CASES[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOICES)
def test_every_argument_of_a_choice_counts_or_is_refused_by_name(name):
    assert complaints(CASES[name]) == []


@pytest.mark.parametrize(
    ("name", "call", "limit"),
    [
        ("evaluate", {}, {"max_states": 1}),
        ("evaluate", {}, {"max_seconds": 1e-6}),
        ("bounds", {"method": "anytime"}, {"max_states": 2}),
        ("bounds", {"method": "bonferroni"}, {"max_steps": 10}),
        ("estimate", {"method": "permutation"}, {"max_work": 1e5}),
        ("estimate", {"method": "karp_luby"}, {"max_work": 1e5}),
    ],
)
def test_a_limit_counts_where_it_is_reached(name, call, limit):
    base = {"graph": nx.petersen_graph(), "link_up": 0.9, **call}
    base |= {"rng": 1} if name == "estimate" else {}
    case = Case(f"reliability.{name}", base, limit)
    assert outcome(case, (*limit,)) != outcome(case, ())
