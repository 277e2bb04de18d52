"""A model as a graph of n layers and m edges: what each layer computes, keeps and hands on.

The bytes of a layer's output are carried by every edge that leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Final

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from relparallel._checks import Result, require_choice, require_instance, require_int
from relparallel.topology import _arrays

AMOUNTS: Final = ("forward", "backward", "parameter_bytes", "activation_bytes")


@dataclass(frozen=True, kw_only=True, eq=False)
class Layered(Result):
    """Named layers or operators joined by acyclic directed edges: what its dataclasses share."""

    names: tuple[str, ...]
    edges: _arrays.IntArray

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(
            _arrays.same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    def _set(self, amounts: Iterable[str], **checked: Any) -> None:
        """Check names, edges and ``amounts`` >= 0; keep them and what was checked, read-only."""
        names = _arrays.names("names", self.names)
        for name in amounts:
            checked[name] = _arrays.reals(
                name, getattr(self, name), len(names), "names", at_least=0.0
            )
        pairs = _arrays.integers("edges", self.edges, -1, 2, at_most=len(names) - 1)
        edges, counts = np.unique(pairs, axis=0, return_counts=True)
        if np.any(counts > 1):
            raise ValueError(
                f"edges must differ from each other, got {edges[counts > 1][0].tolist()} twice"
            )
        checked |= {"names": names, "edges": edges}
        for name, value in checked.items():
            kept = _arrays.read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, kept)
        graph: nx.DiGraph[int] = nx.DiGraph(self.edges.tolist())
        if not nx.is_directed_acyclic_graph(graph):
            cycle = [names[maker] for maker, _ in nx.find_cycle(graph)]
            raise ValueError(f"edges must form no cycle, got {' -> '.join([*cycle, cycle[0]])}")


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerGraph(Layered):
    """Layers of a model, joined by the tensors that pass between them; a graph without cycles.

    Parameters
    ----------
    names, kinds : tuple of str
        Distinct names of the n layers, and what each is (``"conv"``).
    forward, backward : array_like
        Work of a pass over ``batch`` samples, shape [n], in ``unit``.
    parameter_bytes, activation_bytes : array_like
        Bytes of the parameters, and of the output of ``batch`` samples, shape [n].
    edges : array_like of int
        Pairs (maker, user) of layer numbers, shape [m, 2], each once; kept in ascending order.
    unit : {"FLOP", "s"}
        Of ``forward`` and ``backward``: counted operations, or seconds measured on some device.
    batch, title : int, str
        Samples that the work and the outputs are of, and the name of the model.

    Examples
    --------
    >>> graph = LayerGraph(
    ...     names=("in", "left", "right", "add"), kinds=("conv", "conv", "conv", "add"),
    ...     forward=[4.0, 2.0, 1.0, 0.0], backward=[8.0, 4.0, 2.0, 0.0], parameter_bytes=[16, 16, 8, 0],
    ...     activation_bytes=[10, 4, 4, 4], edges=[(0, 1), (0, 2), (1, 3), (2, 3)],
    ... )
    >>> graph.levels.tolist(), graph.cut_bytes().tolist()
    ([0, 1, 1, 2], [10.0, 8.0])
    """

    kinds: tuple[str, ...]
    forward: _arrays.FloatArray
    backward: _arrays.FloatArray
    parameter_bytes: _arrays.FloatArray
    activation_bytes: _arrays.FloatArray
    unit: str = "FLOP"
    batch: int = 1
    title: str = ""

    def __post_init__(self) -> None:
        n = len(_arrays.names("names", self.names))
        kinds = tuple(require_instance((tuple, list), kinds=self.kinds))
        if len(kinds) != n or not all(isinstance(kind, str) for kind in kinds):
            raise ValueError(f"kinds must be {n} texts, one for each of names, got {self.kinds!r}")
        require_choice(("FLOP", "s"), unit=self.unit)
        require_int(batch=self.batch, at_least=1)
        require_instance(str, title=self.title)
        self._set(AMOUNTS, kinds=kinds)

    @property
    def totals(self) -> dict[str, float]:
        """Sums of forward, backward, parameter_bytes and activation_bytes over the layers."""
        return {name: float(getattr(self, name).sum()) for name in AMOUNTS}

    @cached_property
    def order(self) -> _arrays.IntArray:
        """Layer numbers in topological order, the smallest number first among the free ones [n]."""
        graph: nx.DiGraph[int] = nx.DiGraph(self.edges.tolist())
        graph.add_nodes_from(range(len(self)))
        return np.array(list(nx.lexicographical_topological_sort(graph, key=int)), dtype=np.int64)

    @cached_property
    def positions(self) -> _arrays.IntArray:
        """Place of each layer in the topological order [n]."""
        return np.argsort(self.order)

    @cached_property
    def levels(self) -> _arrays.IntArray:
        """Edges on the longest path from a source to each layer [n]."""
        level = np.zeros(len(self), dtype=np.int64)
        for maker, user in self._edges_in_order():
            level[user] = max(level[user], level[maker] + 1)
        return level

    @cached_property
    def ancestors(self) -> _arrays.BoolArray:
        """Whether layer v needs u: entry [v, u] of [n, n]. Ideals hold what their layers need."""
        above = np.zeros((len(self), len(self)), dtype=np.bool_)
        for maker, user in self._edges_in_order():
            above[user] |= above[maker]
            above[user, maker] = True
        return above

    def _edges_in_order(self) -> Iterator[list[int]]:
        """Edges such that all that enter a layer come before those that leave it."""
        return iter(
            self.edges[np.argsort(self.positions[self.edges[:, 0]], kind="stable")].tolist()
        )

    def cut_bytes(self, places: ArrayLike | None = None) -> _arrays.FloatArray:
        """Bytes that cross each cut of a division into consecutive stages, [stages - 1].

        ``places`` is the stage of each layer from 0, never falling along an edge; the levels where
        omitted. A tensor made in stage i and used last in stage j crosses the cuts i, ..., j - 1
        once each. O(n + m).
        """
        place = self._places(places)
        last = place.copy()
        np.maximum.at(last, self.edges[:, 0], place[self.edges[:, 1]])
        change = np.zeros(place.max() + 1)
        np.add.at(change, place, self.activation_bytes)
        np.add.at(change, last, -self.activation_bytes)
        crossing: _arrays.FloatArray = np.maximum(np.cumsum(change)[:-1], 0.0)
        return crossing

    def to_chain(self, places: ArrayLike | None = None) -> LayerGraph:
        """Merge the layers of each level, or of each given stage, into one link of a chain.

        Work and parameters are sums; ``activation_bytes`` is what crosses the cut behind the link,
        tensors on their way to later links included, and for the last link its own outputs that
        nothing uses.
        """
        place = self._places(places)
        links = int(place.max()) + 1
        unused = np.bincount(self.edges[:, 0], minlength=len(self)) == 0
        results = self.activation_bytes[unused & (place == links - 1)].sum()
        members = [self.order[place[self.order] == link] for link in range(links)]
        sums: dict[str, Any] = {
            name: np.bincount(place, getattr(self, name), links) for name in AMOUNTS[:3]
        }
        steps = np.arange(links - 1)
        return LayerGraph(
            names=tuple("+".join(self.names[v] for v in group) for group in members),
            kinds=tuple("+".join(dict.fromkeys(self.kinds[v] for v in group)) for group in members),
            activation_bytes=np.append(self.cut_bytes(place), results),
            edges=np.column_stack((steps, steps + 1)),
            unit=self.unit,
            batch=self.batch,
            title=self.title,
            **sums,
        )

    def _places(self, places: ArrayLike | None) -> _arrays.IntArray:
        return self.levels if places is None else _stages(places, self.edges, self.names)

    def to_frame(self) -> pd.DataFrame:
        """One row for each layer: name, kind, the four amounts and level."""
        amounts = {name: getattr(self, name) for name in AMOUNTS}
        return pd.DataFrame(
            {"name": self.names, "kind": self.kinds, **amounts, "level": self.levels}
        )

    def __repr__(self) -> str:
        total = self.totals
        size = f"{len(self)} layers, {len(self.edges)} edges"
        work = f"{total['forward'] + total['backward']:.4g} {self.unit}"
        return (
            f"<LayerGraph {self.title}: {size}, {work}, {total['parameter_bytes']:.4g} bytes of "
            "parameters>"
        )


def _stages(places: ArrayLike, edges: _arrays.IntArray, names: tuple[str, ...]) -> _arrays.IntArray:
    """Check a stage for each layer: all up to the last are used, and none falls along an edge."""
    place = _arrays.integers("places", places, len(names), per="names")
    if np.any(np.bincount(place) == 0):
        raise ValueError(f"places must use every stage up to the last, got {place.tolist()}")
    back = edges[place[edges[:, 0]] > place[edges[:, 1]]]
    if len(back):
        maker, user = (names[layer] for layer in back[0])
        raise ValueError(
            f"places must not fall along an edge, got {place.tolist()}: {maker} -> {user}"
        )
    return place
