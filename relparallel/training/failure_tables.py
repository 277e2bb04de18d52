"""Failure tables of published runs: what failed, how often, in how many parts and how long watched.

Only runs that published a count or a rate together with the parts and the time that it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from relparallel._checks import require_int
from relparallel.hardware import ComponentRate, ComponentRates, llama3_interruptions
from relparallel.published import Fact, facts
from relparallel.training._arguments import require_rate, require_time
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


def published_network_rates() -> dict[str, float]:
    """Failures of links and switches in Alibaba's clusters.

    Returns
    -------
    dict of str to float
        Per link between a card and its ToR ("cable"), and per ToR switch ("switch") [1/s].

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024: 0.057 % of links and 0.051 % of ToR switches per month of 30
    days (rows HPN-001 and HPN-002 of the published facts, marked as not confirmed).

    Examples
    --------
    >>> {name: round(rate * 30 * 86400, 5) for name, rate in published_network_rates().items()}
    {'cable': 0.00057, 'switch': 0.00051}
    """
    rows = facts("training-reliability")
    named = {"cable": "HPN-001", "switch": "HPN-002"}
    return {name: float(rows[row].value_text) / (30 * DAY) for name, row in named.items()}


def joint_loss_rate(groups: int, copies: int, rate: float, repair: float) -> float:
    """How often all copies of a part come to be down at once, in any of many groups.

    Parameters
    ----------
    groups, copies : int
        Groups, such as cards with two ports, and the parts of a group; one that works is enough.
    rate, repair : float
        Failures per part and second while it works; mean time until it works again [s], above 0.

    Returns
    -------
    float
        Losses per second: groups copies U^copies/repair with U = rate repair/(1 + rate repair), exact for
        independent parts, for every loss ends with the repair of any of the copies.

    References
    ----------
    Barlow, Proschan, "Statistical theory of reliability", 1975, section 7.2: frequency of system failures.

    Examples
    --------
    >>> link = published_network_rates()["cable"]
    >>> round(30 * 86400 * joint_loss_rate(3000, 2, link, repair=86400.0), 7)
    6.5e-05
    """
    require_int(groups=groups, copies=copies, at_least=1, at_most=10**9)
    load = float(require_rate(rate=rate)) * float(require_time(repair=repair, positive=True))
    return float(groups * copies * (load / (1 + load)) ** copies / repair)
