"""Calls in training, optimize and planning, with another value of every optional argument."""

import atexit
import dataclasses
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

import relparallel as rp
from argument_cases import (
    GPT,
    HOME,
    OTHER,
    PIPELINES_APART,
    SOFTWARE,
    SPLIT,
    WIRED,
    Case,
    Needs,
    without,
)
from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Placement, Strategy, calibration
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
    "since": 3600.0,
    "until": 1e7,
    "overlaps": "merge",
    "ignore": [*FIELDS.split(","), "remark"],
    "delimiter": with_semicolons("semicolons", ROWS),
    "repair": 60.0,
    "levels": {"gpu": "node", "disk": "node"},
    "states": ["FAILED"],
    "jobs": ["b"],
    "silence": 60.0,
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
            "since": "2025-12-01",
            "until": "2026-03-01",
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
    "apart": {"micro_batch": 1},
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
    "memory_margin": 0.5,
    "like": "measured",
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
        | {"rank": "events", "limits": {"tensor": 8}, "source": PAIRS, "strategies": 1},
        planned,
    ),
    "plan of measured strategies": Case(
        "planning.plan",
        ASKED | {"measured": PLAN["measured"]},
        PLAN | {"measured": {Strategy(tensor=2, data=16): 1e5, Strategy(tensor=4, data=8): 9e4}},
        planned,
    ),
}
