"""The check of a built topology against the closed forms of its design.

Counts of cables alone prove little: a BCube whose servers hang on the wrong switches has the right
number of cables. The check therefore compares nodes and degrees of every kind, cables, components
and disjoint paths.
"""

from typing import Final

import numpy as np
import pandas as pd

from relparallel._checks import require_choice, require_instance
from relparallel.topology._arrays import parts
from relparallel.topology.description import Description, describe, names, rules
from relparallel.topology.fabric import Topology
from relparallel.topology.routing import disjoint_paths

Counts = int | tuple[int, ...]

_SAMPLED: Final = 8  # hosts to which `check` counts the disjoint paths from the first host


def check(topology: Topology) -> pd.DataFrame:
    """Compare a built topology with the closed forms of its design.

    Parameters
    ----------
    topology : Topology
        Of one of the designs that `describe` knows.

    Returns
    -------
    pandas.DataFrame
        Indexed by quantity; columns described, measured. All rows agree.

    Notes
    -----
    Compares nodes and degrees of every kind, cables, components, and cable-disjoint paths from the
    first host to eight others spread over the network and to one with the fewest cables. Distances
    and bisections are for the metrics.

    Examples
    --------
    >>> from relparallel.topology import fat_tree
    >>> print(check(fat_tree(k=4)).loc["links"].to_dict())
    {'described': 48, 'measured': 48}
    """
    t = require_instance(Topology, topology=topology)
    require_choice(names(), **{"topology.meta.name": t.meta.name})
    form = describe(t.meta.name, **t.meta.parameters)
    rows: dict[str, tuple[Counts, Counts]] = {
        **{f"{kind} nodes": (n, _count(t, kind)) for kind, n in form.nodes.items()},
        **{f"{kind} degree": (n, _degree(t, kind)) for kind, n in form.degrees.items()},
        "hosts": (form.hosts, t.num_hosts),
        "links": (form.links, t.num_links),
        "components": (1, int(parts(t.edges, t.num_nodes).max()) + 1),
    }
    if form.host_connectivity is not None:
        rows["disjoint paths of hosts"] = form.host_connectivity, _host_connectivity(t)
    wrong = [f"{name} {got} instead of {due}" for name, (due, got) in rows.items() if due != got]
    if wrong:
        raise ValueError(
            f"topology must agree with the closed forms of {t!r}, got {'; '.join(wrong)}"
        )
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["described", "measured"])
    return table.rename_axis("quantity")


def as_built(t: Topology) -> Description | None:
    """Closed forms of the design, if it has any and the network is still what its builder makes."""
    try:
        form = describe(t.meta.name, **t.meta.parameters)
        built = rules()[t.meta.name].builder(**t.meta.parameters)
    except (TypeError, ValueError):  # no design, parameters of another origin, or a random design
        return None
    arrays = ("edges", "multiplicity", "endpoint", "transit")
    return form if all(np.array_equal(getattr(t, a), getattr(built, a)) for a in arrays) else None


def _count(t: Topology, kind: str) -> int:
    return int(np.count_nonzero(t.is_kind(kind))) if kind in t.kinds else 0


def _degree(t: Topology, kind: str) -> Counts:
    """Cables at the nodes of a kind: one number where they agree, else every number that occurs."""
    found = np.unique(t.degrees[t.is_kind(kind)]).tolist() if kind in t.kinds else []
    return found[0] if len(found) == 1 else tuple(found)


def _host_connectivity(t: Topology) -> int:
    """Fewest disjoint paths from the first host to some: spread out, and one of fewest cables."""
    spread = np.linspace(0, t.num_hosts - 1, _SAMPLED + 1).astype(np.int64)
    weakest = np.argmin(t.degrees[t.hosts])
    first, *others = (t.labels[v] for v in t.hosts[np.unique(np.append(spread, weakest))])
    return min((disjoint_paths(t, first, other) for other in others), default=0)
