"""No argument annuls another silently: each changes the answer or is refused, alone and in pairs.

Every function with eight or more optional arguments has cases: a valid call, and another value of
each of its optional arguments. Set alone, an argument changes what comes out, or is refused by
name. Of two that are set together one is refused by name, or each of them changes what comes out
beside the other.
"""

import atexit
import dataclasses
import inspect
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from chapters.s37.fusion import merge_gradients
from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Placement, Strategy, StrategyGrid, calibration
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureLog,
    NodeLives,
    Recovery,
    SharedEvents,
    failure_model,
    redundant_fabric,
)
from valid_ordering import chain

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
    "executor": "where the work is done, which changes nothing",
    "max_seconds": "a limit, which counts where it is reached",
    "max_states": "a limit, which counts where it is reached",
    "max_steps": "a limit, which counts where it is reached",
    "max_work": "a limit, which counts where it is reached",
}


class Case(NamedTuple):
    """A valid call; other values of optional arguments, of a mapping with what they need."""

    function: str
    base: Mapping[str, Any]
    others: Mapping[str, Any]
    shown: Callable[[Any], Any] = lambda found: found


class Needs(NamedTuple):
    """A value of an optional argument that goes with another value of a required one."""

    value: Any
    required: Mapping[str, Any]


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


def without(others: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {one: value for one, value in others.items() if one != name}


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


FUNCTIONS: Final = functions()

# reliability
RING = nx.cycle_graph(5)
RING.add_edge(0, 2)
TORUS = rp.topology.torus((3, 4))
CHANCES = {
    "terminals": (1, 4),
    "link_up": 0.8,
    "node_up": 0.9,
    "link_down": 0.15,
    "node_down": 0.05,
}
UP, DOWN = {"link_up": 0.9, "node_up": 0.95}, {"link_down": 0.1, "node_down": 0.02}
EVALUATE = {
    **CHANCES,
    "method": "bounds",
    "groups": [([1, (2, 3)], 0.1)],
    "max_states": 1,
    "max_seconds": 1e-7,
}
BOUNDS = {**CHANCES, "method": "auto", "rtol": 0.2, "max_states": 200, "max_steps": 10**8}
ESTIMATE = {
    **CHANCES,
    "method": "auto",
    "rtol": 0.2,
    "confidence": 0.8,
    "samples": 300,
    "max_work": 1e5,
    "executor": ThreadPoolExecutor(1),
}
RELIABILITY = {
    "evaluate by chances of being up": Case(
        "reliability.evaluate", {"graph": RING, **UP}, EVALUATE
    ),
    "evaluate by chances of failure": Case(
        "reliability.evaluate", {"graph": RING, **DOWN}, EVALUATE
    ),
    "evaluate with groups": Case(
        "reliability.evaluate", {"graph": RING, "groups": [([3, (0, 1)], 0.2)]}, EVALUATE
    ),
    "evaluate by bounds": Case(
        "reliability.evaluate",
        {"graph": RING, **DOWN, "method": "bounds"},
        EVALUATE | {"method": "auto"},
    ),
    "evaluate by the frontier DP": Case(
        "reliability.evaluate", {"graph": RING, **UP, "method": "exact"}, EVALUATE
    ),
    "bounds": Case("reliability.bounds", {"graph": TORUS, **UP}, BOUNDS | {"method": "bonferroni"}),
    **{
        f"bounds by {method}": Case(
            "reliability.bounds", {"graph": TORUS, **DOWN, "method": method}, BOUNDS
        )
        for method in ("anytime", "bonferroni", "subgraph", "disjoint")
    },
    **{
        f"estimate by {method}": Case(
            "reliability.estimate",
            {"graph": nx.petersen_graph(), **chances, "method": method, "rng": 1},
            ESTIMATE | {"method": "karp_luby" if method == "crude" else "crude"},
        )
        for method, chances in {
            "auto": UP,
            "crude": UP,
            "karp_luby": DOWN,
        }.items()
    },
    "estimate by permutation": Case(
        "reliability.estimate",
        {"graph": nx.petersen_graph(), **DOWN, "method": "permutation", "rng": 1},
        ESTIMATE | {"rtol": 2e-3, "node_down": 0.01, "confidence": 0.99, "method": "crude"},
    ),
    "estimate of so many samples": Case(
        "reliability.estimate",
        {"graph": nx.petersen_graph(), **UP, "rng": 1, "samples": 200},
        ESTIMATE | {"method": "crude"},
    ),
}

# parallel
GPT = rp.transformer("gpt3-6.7b")
HOME, OTHER = (cluster(name, gpus=16) for name in ("h100-80gb-dgx", "a100-80gb-selene"))
SPLIT = Strategy(tensor=4, pipeline=2, data=2)
PIPELINES_APART = ("tensor", "context", "pipeline", "data")
WIRED, SLOWER = (
    redundant_fabric(servers=2, servers_per_leaf=1, planes=2, card=card) for card in (4e10, 3e10)
)
ALIVE = np.arange(WIRED.num_nodes + len(WIRED.edges)) != WIRED.num_nodes - 1
SOFTWARE = "megatron-2025"
STEP = {
    "software": SOFTWARE,
    "precision": "fp8",
    "calibrated": calibration("a100-80gb"),
    "placement": Placement(strategy=SPLIT, order=PIPELINES_APART),
    "network": WIRED,
    "alive": np.linspace(0.5, 1.0, 18),
    "stage_layers": [15, 17],
    "offload": "activations",
}
JOB = {"model": GPT, "strategy": SPLIT, "global_batch": 16}
MEMORY = {
    "software": "nemo-2024",
    "precision": "fp8",
    "flash_attention": False,
    "dropout": True,
    "offload": "activations",
    "offload_to": "nvme",
    "stage_layers": [15, 17],
    "cluster": OTHER,
}
GRID = {
    "model": GPT,
    "grid": StrategyGrid.all(gpus=16, model=GPT, global_batch=16, schedule="1f1b", tensor=[1, 4]),
    "cluster": HOME,
    "global_batch": 16,
}
PRICE = {
    "software": SOFTWARE,
    "precision": "fp8",
    "calibrated": calibration("a100-80gb"),
    "storage": "fp32",
    "dropout": True,
    "reserve": 60e9,
    "complete": True,
    "network": WIRED,
    "executor": ThreadPoolExecutor(1),
}
LAYERS = chain([1.0, 2.0, 1.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0, 1.0], [4e6, 8e6, 6e6, 9e6, 12e6])
LINE = {"graph": LAYERS, "network": (0.5, 1e6)}
LOSSES = {"loss": 1e-6, "timeout": 0.1, "rng": 1}
ORDER = {
    "policy": "forward",
    "partition": 2.5e6,
    "credit": 3,
    "bucket": 11e6,
    "groups": merge_gradients(LAYERS, latency=0.5, bandwidth=4e6),
    "loss": 2e-6,
    "timeout": 0.3,
    "rng": 2,
}
PARALLEL = {
    "step_time": Case("parallel.step_time", {**JOB, "cluster": HOME}, STEP),
    "step_time on a network": Case(
        "parallel.step_time",
        {**JOB, "cluster": HOME, "network": WIRED},
        STEP | {"network": SLOWER, "alive": ALIVE},
    ),
    "memory": Case("parallel.memory", JOB, without(MEMORY, "cluster")),
    "memory on a cluster": Case("parallel.memory", JOB, without(MEMORY, "precision")),
    "memory by software": Case("parallel.memory", JOB | {"software": SOFTWARE}, MEMORY),
    "memory with offloading": Case(
        "parallel.memory", {**JOB, "offload": "optimizer"}, without(MEMORY, "cluster")
    ),
    "price_strategies": Case("parallel.price_strategies", GRID, PRICE),
    "order": Case("parallel.order", LINE, ORDER),
    **{
        f"order by {policy}": Case(
            "parallel.order",
            LINE | LOSSES | {"policy": policy},
            ORDER | ({"policy": "fifo"} if policy != "ddp" else {}),
        )
        for policy in ("forward", "ddp", "bytescheduler", "tic", "p3")
    },
    "order of groups": Case(
        "parallel.order",
        LINE | {"groups": ORDER["groups"]},
        ORDER | {"policy": "ddp", "groups": None},
    ),
}

# training
FABRIC = {
    "rails": 2,
    "planes": 2,
    "gpus": 4,
    "servers_per_leaf": 4,
    "spines": 4,
    "card": 1e10,
    "nvlink": 1e11,
    "relay": False,
    "oversubscription": 2.0,
}


def modelled(found: Any) -> Any:
    """What a failure model says, not what it keeps."""
    return found.to_frame(), found.domains, found.cluster, found.source


def rounds(work: float) -> Any:
    """A sum of gradients on the network, in a step with so much work [s]."""
    sent = rp.parallel.ring_all_reduce(16, 16)
    return rp.parallel.plan_rounds(sent, WIRED, element_bytes=1e9, work=work)


PAIRS = SharedEvents(sizes=(0.8, 0.2))  # one event of five takes two nodes
PARTS = (ComponentClass(name="node", level="node", rate=1e-6),)
FAILURES = {
    "placement": Placement(strategy=SPLIT, order=PIPELINES_APART),
    "rates": "rsc1",
    "workload": GPT,
    "cluster": HOME,
    "global_batch": 32,
    "network_rates": {"leaf": 1e-9, "cable": 1e-10},
    "repair": 3600.0,
    "plan": rounds(1.0),
    "software": SOFTWARE,
    "source": PAIRS,
}
ON_NETWORK = {"topology": WIRED, "strategy": SPLIT}
TRAINED = {"workload": GPT, "cluster": HOME, "global_batch": 16}
SIMULATED = {
    "model": dataclasses.replace(
        failure_model(Cluster(nodes=8), Strategy(tensor=8, data=8)), classes=PARTS
    ),
    "step_time": 5.0,
    "checkpointing": Checkpointing(
        levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),)
    ),
    "recovery": Recovery("spares", repair=2 * 86400.0),
    "spares": 3,
    "years": 2.0,
    "rng": 1,
}
SIMULATE = {
    "spares": 2,
    "level": "identity",
    "crews": 1,
    "planned": 0.05,
    "tokens_per_step": 1e6,
    "horizon": 20 * 86400.0,
    "replications": 3,
    "executor": ThreadPoolExecutor(1),
}
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def written(name: str, lines: list[str]) -> str:
    path = Path(FOLDER, name)
    path.write_text("\n".join(lines))
    return str(path)


FIELDS = "node,host,start,begin,end,back,cause,why"
ROWS = [
    FIELDS,
    "n1,h1,100,110,200,190,gpu,disk",
    "n2,h2,300,320,,,nic,fan",
    "n1,h3,150,420,500,480,gpu,gpu",
]
JOBS = [
    "JobID|JobName|State|Start|End|NodeList",
    "0|b|FAILED|2026-01-01T00:00:00|2026-01-01T00:30:00|n4",
    "1|a|NODE_FAIL|2026-01-01T00:00:00|2026-01-01T01:00:00|n1",
    "2|a|COMPLETED|2026-01-01T02:00:00|2026-01-01T03:00:00|n2",
    "3|b|NODE_FAIL|2026-01-01T06:00:00|2026-01-01T07:00:00|n3",
    "4|c|FAILED|2026-01-01T04:00:00|2026-01-01T05:00:00|n3",
    "5|b|NODE_FAIL|2026-01-01T09:00:00|2026-01-01T09:30:00|n5",
]


def with_semicolons(name: str, lines: list[str]) -> Needs:
    """A file of these lines but the last, with semicolons between the fields."""
    return Needs(";", {"path": written(name, [re.sub("[,|]", ";", line) for line in lines[:-1]])})


LOG = {
    "node": "host",
    "start": "begin",
    "end": "back",
    "cause": "why",
    "clock": "h",
    "finish": 1e7,
    "overlaps": "merge",
    "ignore": [*FIELDS.split(","), "remark"],
    "delimiter": with_semicolons("semicolons", ROWS),
    "repair": 60.0,
    "levels": {"gpu": "node", "disk": "node"},
    "states": ["FAILED"],
    "jobs": ["b"],
}
CSV = {
    "path": written("csv", ROWS),
    "population": 8,
    "ignore": FIELDS.split(","),
    "overlaps": "keep",
}
TRAINING = {
    "redundant_fabric": Case("training.redundant_fabric", {"servers": 16}, FABRIC),
    "failure_model on a cluster": Case(
        "training.failure_model", {"topology": HOME, "strategy": SPLIT}, FAILURES, modelled
    ),
    "failure_model on a network": Case("training.failure_model", ON_NETWORK, FAILURES, modelled),
    "failure_model of a workload": Case(
        "training.failure_model",
        ON_NETWORK | TRAINED,
        FAILURES | {"workload": rp.transformer("gpt3-2.7b"), "cluster": OTHER},
        modelled,
    ),
    "failure_model of a sum in rounds": Case(
        "training.failure_model",
        ON_NETWORK | {"plan": rounds(1.0), "rates": PARTS},
        FAILURES | {"plan": rounds(2.0)},
        modelled,
    ),
    "simulate": Case("training.simulate", SIMULATED, SIMULATE),
    "simulate lives": Case(
        "training.simulate",
        SIMULATED
        | {"model": dataclasses.replace(SIMULATED["model"], source=NodeLives(ages="new"))},
        SIMULATE | {"level": "count"},
    ),
    "read_failure_log of one's own": Case(
        "training.read_failure_log", CSV, LOG | {"dialect": "slurm"}
    ),
    "read_failure_log of Slurm": Case(
        "training.read_failure_log",
        {"path": written("sacct", JOBS), "population": 8, "dialect": "slurm"},
        LOG
        | {
            "delimiter": with_semicolons("sacct.csv", JOBS[:-1]),
            "finish": "2026-03-01",
        },
    ),
}

# choices
SMALL = rp.transformer("gpt3-6.7b")
EIGHT = cluster("a100-80gb-selene", gpus=32)
FAST, SLOW = (redundant_fabric(servers=4, servers_per_leaf=2, planes=n) for n in (2, 1))
STORED = CheckpointLevel(name="own", cost=5.0, restart=60.0)


def chosen(found: Any) -> Any:
    """What a joint choice says, not what it was asked."""
    names = "strategy spares policy checkpoint interval every throughput share tenth fabric step"
    price = found.search.sites[found.choice.site].price
    return [getattr(found, name) for name in names.split()], price, found.counts, found.to_frame()


def planned(found: Any) -> Any:
    """The rows of a plan and its notes."""
    return found.to_frame(), found.notes


QUESTION = {
    "workload": SMALL,
    "cluster": EIGHT,
    "global_batch": 64,
    "limits": {"schedule": "1f1b", "recompute": "none", "zero_stage": 0},
    "policies": ("elastic",),
}
JOINT = {
    "rates": "rsc1",
    "objective": "p10",
    "global_batch": 128,
    "policies": ("restart", "elastic"),
    "checkpoints": Checkpointing(levels=(STORED,)),
    "storage_bandwidth": 1e9,
    "spares": 2,
    "repair": 1e6,
    "restart": 3000.0,
    "pause": 3000.0,
    "price": 2.0,
    "horizon": 1e6,
    "limits": {
        "schedule": "1f1b",
        "recompute": "none",
        "zero_stage": 0,
        "sequence_parallel": False,
    },
    "network": SLOW,
    "network_rates": {"leaf": 1e-6},
    "write_off": 1e8,
    "measured": {Strategy(tensor=8, data=4): 1e4},
    "orders": (("data", "context", "tensor", "pipeline"),),
    "source": PAIRS,
    "executor": ThreadPoolExecutor(1),
    "software": SOFTWARE,
    "precision": "fp8",
    "calibrated": calibration("h100-80gb"),
    "storage": "fp32",
    "dropout": True,
    "reserve": 60e9,
}
PLAN = {
    "gpus": 16,
    "global_batch": 128,
    "sequence": 1024,
    "rates": "rsc1",
    "price": 2.0,
    "network": SLOW,
    "measured": pd.DataFrame({"strategy": ["TP2 DP16", "TP4 DP8"], "step [s]": [3.0, 3.2]}),
    "only_measured": True,
    "rank": "replay",
    "strategies": 3,
    "limits": {"tensor": 4},
    "ignore": ("remark",),
    "policies": ("restart",),
    **{name: JOINT[name] for name in ("spares", "repair", "software", "precision")},
}
OWN_LOG = FailureLog(  # one incident in three takes two nodes
    node=[f"n{k % 4}" for k in range(40)],
    start=[1e5 * (k - (k % 4 == 3)) for k in range(40)],
    end=[1e5 * (k - (k % 4 == 3)) + 1e4 for k in range(40)],
    cause=["node"] * 40,
    population=4,
    finish=5e6,
)
ASKED = {"model": SMALL, "cluster": EIGHT, "global_batch": 64}
CHOICES = {
    "joint": Case("optimize.joint", QUESTION, JOINT, chosen),
    "joint of policies in full": Case(
        "optimize.joint",
        QUESTION | {"policies": (Recovery("elastic", repair=1e5, pause=60.0),)},
        JOINT,
        chosen,
    ),
    "joint on a network": Case("optimize.joint", QUESTION | {"network": FAST}, JOINT, chosen),
    "joint by cost": Case(
        "optimize.joint",
        QUESTION | {"network": FAST, "objective": "cost", "price": 1.0},
        JOINT | {"network": {"fast": FAST, "slow": SLOW}, "price": 2.0},
        chosen,
    ),
    "joint of measured strategies": Case(
        "optimize.joint",
        {
            "workload": SMALL,
            "cluster": EIGHT,
            "measured": {Strategy(tensor=2, data=16): 1e5, Strategy(tensor=4, data=8): 9e4},
        },
        without(JOINT, "global_batch"),  # tokens per second of a step of any batch
        chosen,
    ),
    "plan": Case("planning.plan", ASKED, PLAN, planned),
    "plan by name": Case(
        "planning.plan",
        {"model": "gpt3-6.7b", "cluster": "a100-80gb-selene", "gpus": 32},
        {
            name: PLAN[name]
            for name in ("gpus", "global_batch", "sequence", "price", "strategies", "limits")
        },
        planned,
    ),
    "plan of an own log": Case(
        "planning.plan",
        ASKED | {"rates": OWN_LOG, "limits": {"tensor": 4}},
        {name: PLAN[name] for name in ("price", "strategies", "spares", "policies")}
        | {"rank": "events", "limits": {"tensor": 8}, "source": PAIRS},
        planned,
    ),
    "plan of measured strategies": Case(
        "planning.plan",
        ASKED | {"measured": PLAN["measured"]},
        PLAN | {"measured": {Strategy(tensor=2, data=16): 1e5, Strategy(tensor=4, data=8): 9e4}},
        planned,
    ),
}
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


IDLE = pytest.mark.xfail(reason="joint takes some arguments that change nothing", strict=True)
GOOD = ("joint by cost", "plan by name", "plan of an own log", "plan of measured strategies")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in GOOD else [IDLE]) for name in CHOICES],
)
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
