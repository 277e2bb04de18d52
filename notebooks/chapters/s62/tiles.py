"""Operators on tiles: what moves between memory and chip if they are connected, or run one by one.

An operator is a loop nest over tensors whose indices are axes, or sums of axes with factors. A
tensor is written ``C[m,n]``; sums slide: a convolution reads ``X[c,2y+r,2x+s]``. The tile of the
last output decides the tile of everything before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from chapters.chain import best_chains
from relparallel.hardware import Accelerator

_TENSOR: Final = re.compile(r"(\w+)\[([^\[\]]*)\]")
_TERM: Final = re.compile(r"(\d*)([a-z]\w*)")
Dimension = tuple[tuple[int, str], ...]


class _Tensor(NamedTuple):
    name: str
    dimensions: tuple[Dimension, ...]


def _tensor(name: str, text: str, sizes: Mapping[str, int]) -> _Tensor:
    """Read ``X[c,2y+r]``."""
    outside = _TENSOR.fullmatch(text)
    terms = (
        [[_TERM.fullmatch(term) for term in entry.split("+")] for entry in outside[2].split(",")]
        if outside
        else []
    )
    if outside is None or not all(term and term[2] in sizes for entry in terms for term in entry):
        raise ValueError(
            f"{name} must be written as X[c,2y+r] with axes of {sorted(sizes)}, got {text!r}"
        )
    read = tuple(tuple((int(t[1] or 1), t[2]) for t in entry if t) for entry in terms)
    return _Tensor(outside[1], read)


@dataclass(frozen=True, kw_only=True, eq=False)
class TileOperator:
    """A loop nest writing one tensor with tiled axes: ``"C[m,n]"`` from ``("A[m,k]", "B[k,n]")``.

    ``sizes`` has the extent of every axis, ``flops`` the operations of a point of the nest.

    >>> TileOperator(name="row sums", writes="S[m]", reads=("A[m,k]",), sizes={"m": 64, "k": 32}).axes
    ('m',)
    """

    name: str
    writes: str
    reads: tuple[str, ...]
    sizes: Mapping[str, int]
    flops: float = 2.0

    def __post_init__(self) -> None:
        if self.inputs and any(
            len(entry) > 1 or entry[0][0] > 1 for entry in self.output.dimensions
        ):
            raise ValueError(f"writes must have single axes, got {self.writes!r}")

    @cached_property
    def output(self) -> _Tensor:
        """What it writes."""
        return _tensor("writes", self.writes, self.sizes)

    @cached_property
    def inputs(self) -> tuple[_Tensor, ...]:
        """What it reads, read from its text."""
        return tuple(_tensor("reads", text, self.sizes) for text in self.reads)

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Axes of the output."""
        return tuple(entry[0][1] for entry in self.output.dimensions)


def span(entry: Dimension, sizes: Mapping[str, int]) -> int:
    """Entries that a sliding index runs over."""
    return 1 + sum(factor * (sizes[axis] - 1) for factor, axis in entry)


class TileGroup(NamedTuple):
    """Connected operators, run tile by tile of the last output.

    ``loads`` and ``stores`` are words from and to memory by tensor, over all tiles; ``footprint``
    words on the chip at a time; ``flops`` count what is computed twice twice.
    """

    operators: tuple[str, ...]
    tile: Mapping[str, int]
    loads: Mapping[str, float]
    stores: Mapping[str, float]
    footprint: float
    flops: float

    @property
    def words(self) -> float:
        """Words moved in both directions."""
        return sum(self.loads.values()) + sum(self.stores.values())


class TileSchedule(NamedTuple):
    """Groups that a chain of operators is divided into."""

    groups: tuple[TileGroup, ...]

    @property
    def words(self) -> float:
        """Words moved by all groups."""
        return sum(group.words for group in self.groups)

    def steps(self, accelerator: Accelerator) -> pd.DataFrame:
        """Allocate, LoadTiles, ComputeTiles, StoreTiles by group, bf16: bytes, FLOPs, seconds."""
        rate, speed = accelerator.memory_bandwidth, accelerator.peak["bf16"]
        rows = []
        for number, group in enumerate(self.groups):
            loaded, stored = (2.0 * sum(part.values()) for part in (group.loads, group.stores))
            rows += [
                (number, "Allocate", 2.0 * group.footprint, 0.0, 0.0),
                (number, "LoadTiles", loaded, 0.0, loaded / rate),
                (number, "ComputeTiles", 0.0, group.flops, group.flops / speed),
                (number, "StoreTiles", stored, 0.0, stored / rate),
            ]
        return pd.DataFrame(rows, columns=["group", "step", "bytes", "flops", "time"])


def tile_group(
    operators: Sequence[TileOperator],
    tile: Mapping[str, int],
    *,
    kept: Sequence[str] = (),
    density: Mapping[str, float] | None = None,
    stream: str | None = None,
    chunk: int = 16,
) -> TileGroup:
    """What connected operators move, hold and compute with one tile of the last output.

    Each operator but the last writes what a later one reads; somebody needs the ``kept`` tensors
    outside. Along an axis of the last output that is a ``stream``, tiles follow each other: what
    was read stays until no tile needs it, and what does not depend on the axis is read once.
    Without one, ``chunk`` entries of a summed axis are on the chip at a time, and the chunk after
    them. Tiles propagate backwards: an axis t wide under a stride s and a window r needs s (t - 1)
    + r entries. Edge tiles count as whole ones. A pointwise operator writes in place of what only
    it reads. Shi et al., "Welder", OSDI 2023, section 3. Yang et al., "ISOSceles", HPCA 2023,
    section 3.
    """
    axes = operators[-1].axes
    if not {*tile, stream or axes[0]} <= set(axes):
        raise ValueError(
            f"tile and stream must be of the axes {list(axes)}, got {list(tile)}, {stream!r}"
        )
    return _group(operators, tile, tuple(kept), density or {}, stream, chunk, _extents(operators))


def _extents(operators: Sequence[TileOperator]) -> dict[str, tuple[int, ...]]:
    """Whole size of every tensor: as written, or as far as somebody reads."""
    found: dict[str, tuple[int, ...]] = {}
    for operator in operators:
        for tensor in operator.inputs:
            seen = tuple(span(entry, operator.sizes) for entry in tensor.dimensions)
            known = found.get(tensor.name, seen)
            found[tensor.name] = tuple(map(max, known, seen))
    written = {
        operator.output.name: tuple(operator.sizes[a] for a in operator.axes)
        for operator in operators
    }
    return found | written


def _group(
    operators: Sequence[TileOperator],
    tile: Mapping[str, int],
    kept: tuple[str, ...],
    weight: Mapping[str, float],
    stream: str | None,
    chunk: int,
    extents: Mapping[str, tuple[int, ...]],
) -> TileGroup:
    last = operators[-1]
    parts = {
        last.output.name: _Part(
            tuple(tile[a] for a in last.axes), tuple(a == stream for a in last.axes), ()
        )
    }
    flops = sum(_needs(operator, parts, weight, chunk, extents) for operator in reversed(operators))
    passes = math.prod(-(-last.sizes[a] // tile[a]) for a in last.axes if a != stream)
    made = {operator.output.name for operator in operators}
    read = [tensor.name for operator in operators for tensor in operator.inputs]
    overwritten = {
        tensor.name
        for operator in operators
        for tensor in operator.inputs
        if tensor.dimensions == operator.output.dimensions and read.count(tensor.name) == 1
    }
    loads, stores, footprint = {}, {}, 0.0
    for name, part in parts.items():
        words = weight.get(name, 1.0)
        if name not in made:
            sides = zip(part.sides, part.moves, extents[name], strict=True)
            loads[name] = (
                passes * words * math.prod(whole if moves else side for side, moves, whole in sides)
            )
        elif name in kept or name == last.output.name:
            stores[name] = words * math.prod(extents[name])
        if name in overwritten & made - set(kept):
            continue  # its only reader writes in its place, entry by entry
        whole_tile = stream is not None or name in made
        footprint += words * (math.prod(part.sides) if whole_tile else 2 * math.prod(part.held))
    names = tuple(operator.name for operator in operators)
    return TileGroup(names, dict(tile), loads, stores, float(footprint), passes * flops)


class _Part(NamedTuple):
    """What one tile needs of a tensor, where the stream moves, and what is held of it in chunks."""

    sides: tuple[int, ...]
    moves: tuple[bool, ...]
    held: tuple[int, ...]

    def join(self, other: _Part) -> _Part:
        """What two readers need."""
        both = zip(self, other, strict=True)
        sides, moves, held = (tuple(map(max, mine, others)) for mine, others in both)
        return _Part(sides, tuple(map(bool, moves)), held)


def _needs(
    operator: TileOperator,
    parts: dict[str, _Part],
    weight: Mapping[str, float],
    chunk: int,
    extents: Mapping[str, tuple[int, ...]],
) -> float:
    """Enter what an operator reads for its tile; return its operations on all tiles of a stream."""
    if operator.output.name not in parts:
        raise ValueError(
            f"operators must be connected, got {operator.name} whose {operator.output.name} nobody "
            "reads"
        )
    made = parts[operator.output.name]
    sizes = dict(operator.sizes) | dict(zip(operator.axes, made.sides, strict=True))
    streamed = {axis for axis, moves in zip(operator.axes, made.moves, strict=True) if moves}
    for name, dimensions in operator.inputs:
        sides = tuple(
            min(span(e, sizes), w) for e, w in zip(dimensions, extents[name], strict=True)
        )
        summed = [not any(axis in operator.axes for _, axis in entry) for entry in dimensions]
        held = tuple(min(side, chunk) if s else side for side, s in zip(sides, summed, strict=True))
        found = _Part(
            sides, tuple(any(a in streamed for _, a in entry) for entry in dimensions), held
        )
        parts[name] = parts[name].join(found) if name in parts else found
    sparse = math.prod(weight.get(tensor.name, 1.0) for tensor in operator.inputs)
    points = math.prod(operator.sizes[a] if a in streamed else size for a, size in sizes.items())
    return operator.flops * sparse * points


def tile_schedule(
    operators: Sequence[TileOperator],
    memory: float,
    *,
    density: Mapping[str, float] | None = None,
    stream: bool = False,
    chunk: int = 16,
    connect: bool = True,
) -> TileSchedule:
    """Groups of connected operators, and their tiles, that move least while all fits on a chip.

    The chip holds ``memory`` words, and ``density`` says how many an entry of a sparse tensor takes
    on average, its coordinates included. With ``stream`` tiles follow each other along the second
    axis of every output, one row at a time; without it, ``chunk`` entries of a summed axis are on
    the chip at a time, and two chunks are held. Without ``connect`` each operator is a group of its
    own. No division into consecutive groups with tiles of powers of two, or whole axes, moves less.
    Shi et al., "Welder", OSDI 2023, section 4.

    >>> sizes = dict(m=1024, n=1024, k=256)
    >>> gemm = TileOperator(name="product", writes="C[m,n]", reads=("A[m,k]", "B[k,n]"), sizes=sizes)
    >>> gelu = TileOperator(name="gelu", writes="D[m,n]", reads=("C[m,n]",), sizes=dict(m=1024, n=1024))
    >>> alone, together = (tile_schedule([gemm, gelu], 65536, connect=c).words for c in (False, True))
    >>> (alone - together) / 1024**2
    2.0
    """
    weight, extents, n = density or {}, _extents(operators), len(operators)
    best: dict[tuple[int, int], TileGroup] = {}
    for stop in range(1, n + 1):
        for start in range(stop) if connect else [stop - 1]:
            kept, group = _needed(operators, start, stop), operators[start:stop]
            axis = group[-1].axes[1] if stream else None
            if any(
                o.output.name not in {t.name for later in group for t in later.inputs}
                for o in group[:-1]
            ):
                continue  # not connected
            tried = (
                _group(group, t, kept, weight, axis, chunk, extents)
                for t in _tiles(group[-1], axis)
            )
            fits = [found for found in tried if found.footprint <= memory]
            if fits:
                best[start, stop] = min(fits, key=lambda found: (found.words, found.footprint))
    words = np.full((n + 1, n), np.inf)
    for (start, stop), chosen in best.items():
        words[stop, start] = chosen.words
    found = best_chains(n, lambda stop, used, k: (words[stop, :stop], -np.inf))
    if not np.isfinite(found.value):
        raise ValueError(
            f"memory must hold the smallest tiles of every operator, got {memory:g} words"
        )
    return TileSchedule(tuple(best[start, stop] for start, stop, _ in found.groups()))


def _tiles(operator: TileOperator, stream: str | None) -> Iterator[dict[str, int]]:
    """Tiles of powers of two, and whole axes."""
    sides = [
        [1]
        if a == stream
        else sorted({2**i for i in range(operator.sizes[a].bit_length())} | {operator.sizes[a]})
        for a in operator.axes
    ]
    for chosen in product(*sides):
        yield dict(zip(operator.axes, chosen, strict=True))


def _needed(operators: Sequence[TileOperator], start: int, stop: int) -> tuple[str, ...]:
    """Outputs of a group that are read behind it, or by nobody."""
    read = [{tensor.name for tensor in operator.inputs} for operator in operators]
    names = [operator.output.name for operator in operators]
    behind, every = set().union(*read[stop:]), set().union(*read)
    return tuple(name for name in names[start:stop] if name in behind or name not in every)
