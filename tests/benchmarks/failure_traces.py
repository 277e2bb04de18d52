"""Failure records of the goodput benchmark in one schema, from what their authors published.

``python tests/benchmarks/failure_traces.py`` writes those that may be shipped, the rows of
``data/failures/traces.csv`` with a file, from their sources; it needs ``RELPARALLEL_DATA``. Others
are read from there whenever they are needed.
"""

import os
from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.s42.replay import read_spot_trace
from relparallel.published import data_folder
from relparallel.training.failure_readers import read_lanl
from relparallel.units import DAY

COLUMNS = ["node", "start", "end", "cause", "domain"]
FOLDER = data_folder() / "failures"
LARGE = Path(os.environ.get("RELPARALLEL_DATA", "nowhere")) / "data"
TRACES = pd.read_csv(FOLDER / "traces.csv", keep_default_na=False).set_index("trace")


def infinitehbd(path: Path) -> pd.DataFrame:
    """Days with four digits; eight digits tell the nodes apart."""
    table = pd.read_csv(path).rename(columns={"class": "cause"})
    start, end = ((table[f"{name}_days"] * DAY).round() for name in ("start", "end"))
    return table.assign(node=table["node"].str[:8], start=start, end=end)


def glm(path: Path) -> pd.DataFrame:
    """A log by dates: one row for each node, and what stopped the job as a whole."""
    table, begin = pd.read_csv(path), pd.Timestamp("2022-05-06T03:53:00+08:00")
    for name in ("start", "end"):
        table[name] = (pd.to_datetime(table[name], utc=True) - begin).dt.total_seconds()
    whole = table["node"].isin(["job", "cluster", "file system"])
    table = table.assign(domain=np.where(whole, "job", ""), node=table["node"].str.split(", "))
    return table.explode("node")


def rehearsal(path: Path, repair: int = 3) -> pd.DataFrame:
    """Kills of the elastic job with a replica for each node; its runs of 240 s one after another."""
    table = pd.read_csv(path).query("policy == 'elastic' and nodes_per_replica == 1")
    table = table[(table["repair"] == repair) & (table["spares"] == 0)]
    late = 240.0 * (table["seed"] - 1)  # a run begins with every node up
    start, end = table["start"] + late, table["end"].clip(upper=240) + late
    return table.assign(start=start, end=end, cause="killed").round(3)


def spot(path: Path) -> pd.DataFrame:
    """Sizes of a cluster as outages: the node that ran longest goes, the one longest away comes."""
    sizes = read_spot_trace(path, "h" if path.name.endswith("11-23.csv") else "s")
    up, away, rows = deque(range(max(sizes.size))), deque[tuple[int, float]](), []
    for at, size in zip((sizes.time - sizes.time[0]).tolist(), sizes.size.tolist(), strict=True):
        while len(up) > size:
            away.append((up.popleft(), at))
        while len(up) < size:
            rows.append((*away.popleft(), at))
            up.append(rows[-1][0])
    rows += [(*one, float(sizes.time[-1] - sizes.time[0])) for one in away]
    table = pd.DataFrame(rows, columns=COLUMNS[:3]).assign(cause="preempted")
    return table[table["end"] > table["start"]]  # of several sizes at one moment the last counts


def lanl(path: Path) -> pd.DataFrame:
    """System 20 since its first failure."""
    log = read_lanl(path, 20)
    times = {name: getattr(log, name) - log.start[0] for name in ("start", "end")}
    return pd.DataFrame({"node": log.node, "cause": log.cause, **times})


_KILLS = data_folder() / "rehearsals" / "gloo" / "kills.csv"
_SPOT = str(LARGE / "spot-traces" / "aws-spot-instances-")
_ZONE = "g4dn-xlarge-us-east-1c-2020-11-20-1930-to-2020-11-21-2200"
SOURCES = {
    "infinitehbd": (infinitehbd, LARGE / "failures" / "infinitehbd" / "outages.csv"),
    "glm-130b": (glm, data_folder() / "training_runs" / "glm-130b.csv"),
    "rehearsal": (rehearsal, _KILLS),
    "rehearsal-slow": (lambda path: rehearsal(path, 40), _KILLS),
    "spot-p2": (spot, Path(f"{_SPOT}p2-xlarge-2020-11-20-to-2020-11-23.csv")),
    "spot-g4dn": (spot, Path(f"{_SPOT}{_ZONE}.csv")),
    "lanl-20": (lanl, LARGE / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv.xz"),
}


def converted(name: str) -> pd.DataFrame:
    """A record in the schema; what had no length lasts one tick of its clock."""
    read, path = SOURCES[name]
    table = read(path).astype({"node": str})
    end = np.maximum(table["end"], table["start"] + TRACES.loc[name, "tick"])
    return table.assign(end=end, domain=table.get("domain", ""))[COLUMNS]


def here(name: str) -> bool:
    """Whether a record can be read on this machine."""
    return bool(TRACES.loc[name, "file"]) or SOURCES[name][1].is_file()


def outages(name: str) -> pd.DataFrame:
    """A record: as it is shipped, or from its source."""
    file = TRACES.loc[name, "file"]
    kinds = {"node": str, "cause": str, "domain": str}
    return pd.read_csv(FOLDER / file, dtype=kinds).fillna("") if file else converted(name)


if __name__ == "__main__":
    for trace, told in TRACES[TRACES["file"] != ""].iterrows():
        converted(trace).to_csv(FOLDER / told["file"], index=False, lineterminator="\n")
