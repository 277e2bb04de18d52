"""What a network design is made of: candidate links, their prices, bought links, minimum cuts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import Result, require_number, require_real
from relparallel.topology import Topology

LinkCost = ArrayLike | Mapping[tuple[Hashable, Hashable], float] | str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NetworkDesign(Result):
    """The cheapest links that do what was asked, and the proof that nothing is cheaper."""

    links: tuple[tuple[Any, Any], ...]
    cost: float
    bound: float  # no design goes below: the optimum of the last relaxation
    unreliability: float | None = None  # where it was asked for
    connectivity: int | None = None  # edge or node connectivity that was asked for
    rows: int  # inequalities that the last relaxation held
    formulation: str = field(repr=False)  # the programme that was solved

    @property
    def proven(self) -> bool:
        """Whether the cost meets its bound."""
        return self.cost <= self.bound * (1 + 1e-9) + 1e-12

    def to_networkx(self) -> nx.Graph[Any]:
        """Return what is bought as a graph."""
        return nx.Graph(list(self.links))

    def to_frame(self) -> pd.DataFrame:
        """Return a row per link."""
        return pd.DataFrame(list(self.links), columns=["from", "to"])

    def _said(self) -> str:
        proof = "proven" if self.proven else f"no design below {self.bound:g}"
        reached = "" if self.unreliability is None else f", U = {self.unreliability:.6g}"
        return f"{len(self.links)} links, price {self.cost:g} ({proof}){reached}"


def edge_numbers(
    argument: str, given: LinkCost, topology: Topology, graph: Topology | nx.Graph[Any]
) -> NDArray[np.float64]:
    """A number >= 0 per row of ``topology.edges``: one, an array, a mapping or an attribute."""
    if isinstance(given, str):
        if not len(topology.edges):
            return np.zeros(0)
        if given not in topology.edge_attributes:
            known = ", ".join(topology.edge_attributes) or "there is none"
            raise ValueError(
                f"{argument} must name an attribute of the links ({known}), got {given!r}"
            )
        given = topology.edge_attributes[given]
    elif isinstance(given, Mapping):
        given = [_found(argument, given, topology, pair) for pair in topology.edges.tolist()]
    elif np.ndim(given) == 1 and not isinstance(graph, Topology):
        pairs = {frozenset(map(topology.index_of, ends)): i for i, ends in enumerate(graph.edges())}
        values = np.asarray(given)
        if len(values) == len(pairs):
            given = values[[pairs[frozenset(pair)] for pair in topology.edges.tolist()]]
    named: dict[str, Any] = {argument: given}
    numbers = np.asarray(require_real(**named, at_least=0, at_most=1e12))
    if numbers.ndim and numbers.shape != (len(topology.edges),):
        raise ValueError(
            f"{argument} must be one number or {len(topology.edges)}, got shape {numbers.shape}"
        )
    return np.broadcast_to(numbers, (len(topology.edges),)).astype(np.float64)


def _found(argument: str, given: Mapping[Any, Any], topology: Topology, pair: list[int]) -> float:
    """Value that a mapping gives a link, whichever end comes first."""
    u, v = (topology.labels[end] for end in pair)
    for ends in ((u, v), (v, u)):
        if ends in given:
            return float(require_number(at_least=0, **{argument: given[ends]}))
    raise ValueError(f"{argument} must give every link a number, got none for {(u, v)!r}")
