"""What fails with a cause of a log: as given, else by usual words in its name, else a node; classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from relparallel.hardware import Cluster
from relparallel.training.failure_rates import counted_repair
from relparallel.training.failures import ComponentClass

USUAL: Final = {
    "job": "job software application framework user network fabric storage",
    "switch": "switch leaf tor",
    "rack": "rack power pdu cooling facility facilities",
    "node": "node host cpu memory dimm dram nic ssd disk psu supply motherboard kernel hardware "
    "boot",
    "gpu": "gpu xid hbm sram ecc nvlink",
}
"""Words in the names of causes, by what fails; where words of several fit, the last one counts."""
SHOWN: Final = 6  # causes in a line


def level_of(causes: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """What fails with each cause."""
    found = {}
    for cause in causes:
        words = {
            *(split := re.findall(r"[a-z]+", cause.lower())),
            *(word.rstrip("s") for word in split),
        }
        usual = [level for level, known in USUAL.items() if words & {*known.split()}]
        found[cause] = given.get(cause, usual[-1] if usual else "node")
    return found


def reading(found: Mapping[str, str], given: Mapping[str, str]) -> str:
    """How causes are read, in words."""
    said = [f"{cause} is a failure of the {level}" for cause, level in found.items()]
    said = said[:SHOWN] + [f"{len(said) - SHOWN} more"] * (len(said) > SHOWN)
    if not {*given} >= {*found}:
        said[-1] += " (by usual words in the names, else of the node; levels= says)"
    said += [f"levels names {cause!r}, which never failed" for cause in given if cause not in found]
    return f"causes of the log: {'; '.join(said)}"


def classes(log: Any, cluster: Cluster | None) -> tuple[ComponentClass, ...]:
    """See `FailureLog.classes`."""
    place = Cluster(nodes=log.population) if cluster is None else cluster
    host = "tray" if place.tray < place.gpus_per_node else "node"
    levels = log.level_of()
    if place.nvlink_trays is None:
        levels = {cause: "node" if at == "nvlink" else at for cause, at in levels.items()}
    found = {cause: host if levels[cause] == "node" else levels[cause] for cause in levels}
    counts, rate, usual = log._counts(), log.rate, counted_repair(log)
    if not log.incidents:
        seldom = log.rate_interval().value
        return (ComponentClass(name="none was seen", level=host, rate=seldom),)
    return tuple(
        ComponentClass(
            name=cause,
            level=level,
            repair=(seen := counted_repair(log, cause) or usual) and seen.value,
            rate=rate * (counts[cause] / log.incidents) * place.parts(host) / place.parts(level),
        )
        for cause, level in found.items()
    )
