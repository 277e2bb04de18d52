"""Failure tables of published runs: what failed, how often, in how many parts and how long watched.

Only runs that published a count or a rate together with the parts and the time that it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from relparallel.hardware import ComponentRate, ComponentRates, llama3_interruptions
from relparallel.published import Fact, facts
from relparallel.units import DAY

HARDWARE: Final = "hardware"
"""Category of a cause that counts all hardware together, the network as well."""
_NODE: Final = 8  # GPUs


def _fact(row: str) -> Fact:
    return facts("training-reliability")[row]


def _numbers(row: str, pattern: str) -> tuple[float, ...]:
    """Numbers in what a row says about its circumstances."""
    found = re.search(pattern, _fact(row).inputs_text)
    assert found is not None  # the rows are shipped with the package
    return tuple(float(number) for number in found.groups())


def _table(row: str, cause: str, category: str, events: float, parts: float, days: float) -> ComponentRates:
    """A table of one cause."""
    level = "gpu" if category == "GPU" else "node"
    entry = ComponentRate(
        cause=cause, category=category, level=level, events=round(events), components=round(parts),
        duration=days * DAY,
    )  # fmt: skip
    return ComponentRates(source=_fact(row).source, causes=(entry,))


def _per_thousand_node_days(row: str) -> ComponentRates:
    """A published rate per 1,000 node-days, as the count in 100,000 node-days."""
    return _table(row, "Hardware of a node", HARDWARE, 100 * float(_fact(row).value_text), 1000, 100)


def _bloom() -> ComponentRates:
    nodes = int(_fact("BLM-001").inputs["nodes"])
    return _table("BLM-003", "GPU", "GPU", float(_fact("BLM-003").value_text), nodes * _NODE, 7)


def _glm130b() -> ComponentRates:
    first, last = re.findall(r"(?:\d{4}-)?(\d\d-\d\d \d\d:\d\d)", _fact("GLM-002").inputs_text)[:2]
    year = _fact("GLM-002").inputs_text[:4]
    begin, end = (datetime.strptime(f"{year}-{when}", "%Y-%m-%d %H:%M") for when in (first, last))
    events, nodes = float(_fact("GLM-002").value_text), float(_fact("GLM-001").value_text.split("/")[0])
    return _table("GLM-002", "Node", HARDWARE, events, nodes, (end - begin).total_seconds() / DAY)


def _mpt7b() -> ComponentRates:
    nodes, days, events = _numbers("MPT-001", r"(\d+) nodes\), ([\d.]+) days, (\d+) hardware failures")
    return _table("MPT-001", "Hardware of a node", HARDWARE, events, nodes, days)


def _opt175b() -> ComponentRates:
    counted = r"(\d+) manual \+ (\d+) automatic; (\d+) instances x (\d+) d"
    manual, automatic, nodes, days = _numbers("OPTM-007", counted)
    return _table("OPTM-007", "Hardware of a node", HARDWARE, manual + automatic, nodes, days)


RATES: Final[Mapping[str, Callable[[], ComponentRates]]] = MappingProxyType(
    {
        "llama3": llama3_interruptions,
        "rsc1": lambda: _per_thousand_node_days("RSC-001"),
        "rsc2": lambda: _per_thousand_node_days("RSC-002"),
        "opt175b": _opt175b,
        "bloom": _bloom,
        "glm130b": _glm130b,
        "mpt7b": _mpt7b,
    }
)
"""Failure tables by name: Llama-3 (18 causes), Meta's clusters RSC-1 and RSC-2, OPT-175B, GLM-130B and MPT-7B
(all hardware of a node together), BLOOM (GPUs). No job of any but Llama-3 has published failures of its
software with their number."""
