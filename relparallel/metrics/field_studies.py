"""What failure rates of switches observed in data centres imply for a design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relparallel.metrics._network import require_hosts
from relparallel.metrics.resilience import survival
from relparallel.published import facts
from relparallel.topology import Topology
from relparallel.units import MINUTE

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


def field_losses(topology: Topology | nx.Graph[Any]) -> pd.DataFrame:
    """Expect failures of switches as observed in the field, and what they cut off.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        With switches, one of which can be lost at a time.

    Returns
    -------
    pandas.DataFrame
        By kind of switch: ``switches``, ``failures per year``, ``hosts cut off`` by one on average, and
        ``host-hours per year, low`` and ``high``, with repairs of 10 and of 100 minutes.

    Notes
    -----
    A switch that touches hosts fails as a top-of-rack switch does, any other as an aggregation switch: within
    a year with probability p, so at the rate -ln(1 - p). One survival for each switch, O(switches (n + m)).

    References
    ----------
    Gill et al., SIGCOMM 2011 (rates); Govindan et al., SIGCOMM 2016 (four failures in five last 10 to 100
    minutes): rows ``NR-lit-gill-*`` and ``NR-lit-govindan-*``, taken from pages that quote the papers.

    Examples
    --------
    >>> from relparallel.topology import leaf_spine
    >>> field_losses(leaf_spine(leaves=4, spines=2, hosts_per_leaf=8))["hosts cut off"].to_dict()
    {'leaf': 8.0, 'spine': 0.0}
    """
    import pandas as pd

    t = require_hosts(topology)
    rows = facts("network-reliability")
    tor, other = (-np.log1p(-float(rows[f"NR-lit-gill-{kind}"].value_text)) for kind in ("tor", "agg"))
    short, long = (float(x) * MINUTE / 3600 for x in rows["NR-lit-govindan-duration"].value_text.split(";"))
    at_hosts = np.zeros(t.num_nodes, dtype=np.bool_)
    at_hosts[t.edges[t.endpoint[t.edges].any(axis=1)]] = True
    found = []
    for switch in t.switches.tolist():
        alive = np.ones(t.num_nodes + len(t.edges), dtype=np.bool_)
        alive[switch] = False
        lost = t.num_hosts * (1 - survival(t, alive).accessible)
        found.append([t.kinds[t.node_kind[switch]], 1, tor if at_hosts[switch] else other, lost])
    frame = pd.DataFrame(found, columns=["kind", "switches", "failures per year", "hosts cut off"])
    hours = frame["failures per year"] * frame["hosts cut off"]
    frame = frame.assign(**{
        "host-hours per year, low": short * hours, "host-hours per year, high": long * hours,
    })  # fmt: skip
    by_kind = frame.groupby("kind", sort=False)
    return by_kind.sum().assign(**{"hosts cut off": by_kind["hosts cut off"].mean()})
