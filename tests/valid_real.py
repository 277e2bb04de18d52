"""One valid call of what `training` offers on failure logs, fits, replays and published runs."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import relparallel as rp
from valid_workload import Arguments, fields

FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

SACCT = "JobID|JobName|State|Start|End|NodeList\n\
1|train|NODE_FAIL|2026-01-01T00:00:00|2026-01-01T05:00:00|n1\n"
CONTROL = "[2026-01-05T00:00:00.000] error: Nodes n1 not responding, setting DOWN\n"
AGENT = "[2026-01-05 00:00:00,000] torch.distributed.elastic.agent: Worker group FAILED\n"
XID = "2026-01-05T00:00:00Z n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n"
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "training.read_failure_log": {"ignore": {"empty"}, "clock": {"none"}},
    "training.read_failure_log of Xid": {"states": {"empty"}},
    "training.read_failure_log of Slurm": {"states": {"empty"}, "jobs": {"empty"}},
    "training.read_failure_log of slurmctld": {"states": {"empty"}},
}


def written(name: str, text: str) -> str:
    """Path of a file with this text."""
    (FOLDER / name).write_text(text)
    return str(FOLDER / name)


def log() -> Any:
    return rp.training.FailureLog(
        node=["a", "b", "a", "c"],
        start=[1.0, 3.0, 9.0, 20.0],
        end=[2.0, 4.0, 11.0, 25.0],
        cause=["gpu"] * 4,
        population=4,
        finish=30.0,
    )


CALLS: dict[str, Callable[[], Arguments]] = {
    "training.FailureLog": lambda: fields(log()),
    "training.read_failure_log": lambda: {
        "path": written("log.csv", "host,from,to,why,note\nn1,0,2,gpu,x\nn2,3,,nic,y\n"),
        "population": 4,
        "node": "host",
        "start": "from",
        "end": "to",
        "cause": "why",
        "clock": "h",
        "since": 0.0,
        "until": 9e4,
        "overlaps": "merge",
        "ignore": ["note"],
        "dialect": "csv",
        "delimiter": ",",
        "repair": 60.0,
        "levels": {"gpu": "node"},
    },
    "training.read_failure_log of Xid": lambda: {
        "path": written("kernel.txt", XID),
        "population": 4,
        "since": "2026-01-01",
        "until": "2026-02-01",
        "states": ["79"],
        "silence": 60.0,
    },
    "training.read_failure_log of slurmctld": lambda: {
        "path": written("slurmctld.txt", CONTROL),
        "population": 4,
        "since": "2026-01-01",
        "until": "2026-02-01",
        "states": ["not responding"],
    },
    "training.read_failure_log of torchelastic": lambda: {
        "path": written("agents.txt", AGENT),
        "population": 4,
        "since": "2026-01-01",
        "until": "2026-02-01",
    },
    "training.read_failure_log of Slurm": lambda: {
        "path": written("sacct.txt", SACCT),
        "population": 4,
        "dialect": "slurm",
        "states": ["NODE_FAIL"],
        "jobs": ["train"],
    },
}
