"""The small nouns of a topology: the design it follows, and what in it fails together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from relparallel._checks import require_instance
from relparallel.topology import _arrays
from relparallel.units import GBIT

LINK_CAPACITY: Final = 400 * GBIT  #: bytes/s of a cable by default, as ndr2024 in data/devices.csv


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """Where a topology comes from: the design, its parameters in the paper's letters, the paper.

    Parameters
    ----------
    name : str
        Name of the builder, ``"graph"`` for a graph of the user's own.
    parameters : Mapping, optional
        Arguments of the builder.
    paper : str, optional
        Citation key.

    Examples
    --------
    >>> Design(name="fat_tree", parameters={"k": 4}, paper="alfares2008fattree").parameters["k"]
    4
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    paper: str = ""

    def __post_init__(self) -> None:
        require_instance(str, name=self.name, paper=self.paper)
        require_instance(Mapping, parameters=self.parameters)
        object.__setattr__(self, "parameters", dict(self.parameters))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters.items())})"


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedRisk:
    """Nodes and cables that fail together: a rack on one power feed, the cables of one conduit.

    Parameters
    ----------
    name : str
        Unique in its topology.
    nodes, edges : tuple of int
        Indices of the nodes and of the rows of ``edges`` in the group, at least one in all.

    Examples
    --------
    >>> SharedRisk(name="conduit A", edges=(3, 0)).edges
    (0, 3)
    """

    name: str
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_instance(str, name=self.name)
        for part in ("nodes", "edges"):
            members = np.unique(_arrays.integers(part, getattr(self, part), -1))
            object.__setattr__(self, part, tuple(members.tolist()))
        if not self.nodes and not self.edges:
            raise ValueError(
                f"nodes and edges must not both be empty in shared risk {self.name!r}, got () and ()"
            )


def risk_groups(groups: Sequence[SharedRisk], n: int, m: int) -> tuple[SharedRisk, ...]:
    """Check groups of shared risk and order them by name."""
    require_instance((tuple, list), shared_risk=groups)
    for group in groups:
        require_instance(SharedRisk, shared_risk=group)
        _arrays.integers("shared_risk nodes", group.nodes, -1, at_most=n - 1)
        _arrays.integers("shared_risk edges", group.edges, -1, at_most=m - 1)
    if len({group.name for group in groups}) < len(groups):
        raise ValueError(
            f"shared_risk must have distinct names, got {[group.name for group in groups]}"
        )
    return tuple(sorted(groups, key=lambda group: group.name))
