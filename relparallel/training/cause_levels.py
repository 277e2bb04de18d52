"""What fails with a cause of a log: as given, else by usual words in its name, else a node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

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
