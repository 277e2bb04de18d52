"""Where parts of a tensor lie, and what moves when they are to lie elsewhere, as linear operators.

A layout gives every worker a box of the tensor: a range of each dimension. Going from one layout to
another copies entries, so it is a matrix of zeros and ones with a single one in every row. Its
adjoint, the transpose, adds up what the copies have become. The operators of Hewett and Grady, "A
linear algebraic approach to model parallelism in deep learning", 2020, differ in the two layouts
alone:

| operator | before | after | its adjoint |
|---|---|---|---|
| broadcast | one holder | copies | sum-reduce |
| scatter | one holder | blocks | gather |
| all-gather | blocks | copies | reduce-scatter |
| all-to-all | blocks of one dimension | blocks of another | the all-to-all back |
| halo exchange | blocks | blocks with margins | margins added to the blocks |
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel.parallel.collectives import Whole, bounds

Shapes = tuple[tuple[int, ...], ...]


def shards(
    dims: Mapping[str, int],
    mesh: Mapping[str, int],
    layout: Mapping[str, str],
    halo: Mapping[str, tuple[int, int]] | None = None,
) -> Whole:
    """Boxes of a tensor that a layout gives to the workers of a mesh.

    Shazeer et al., NeurIPS 2018, section 3.

    ``dims`` and ``mesh`` name the sizes of the dimensions of the tensor and of the mesh, whose last
    one varies fastest from worker to worker; ``layout`` says over which dimension of the mesh one
    of the tensor is split, as evenly as whole numbers allow. The others are not split; along mesh
    dimensions that split nothing the workers hold copies. Entries for dimensions that the tensor
    has not are ignored, so that one layout serves all tensors of a model. ``halo`` has the entries
    below and above its own that a worker also needs, where the tensor has them. A box goes from the
    first entry to the one behind the last, [workers, dimensions, 2]. ("Mesh-TensorFlow".)

    >>> shards({"batch": 4, "hidden": 6}, {"row": 2}, {"hidden": "row"}).tolist()
    [[[0, 4], [0, 3]], [[0, 4], [3, 6]]]
    """
    split = {dim: along for dim, along in layout.items() if dim in dims}
    if not set(split.values()) <= set(mesh) or len(set(split.values())) < len(split):
        raise ValueError(
            f"layout must map dimensions to different ones of {list(mesh)}, got {layout!r}"
        )
    margins = halo or {}
    if not set(margins) <= set(dims):
        raise ValueError(f"halo must name dimensions of {list(dims)}, got {halo!r}")
    boxes = []
    for place in product(*map(range, mesh.values())):
        worker = dict(zip(mesh, place, strict=True))
        box = []
        for dim, size in dims.items():
            parts, part = (mesh[split[dim]], worker[split[dim]]) if dim in split else (1, 0)
            cut = bounds(parts, size)
            below, above = margins.get(dim, (0, 0))
            box.append((max(cut[part] - below, 0), min(cut[part + 1] + above, size)))
        boxes.append(box)
    return np.array(boxes, dtype=np.int64)


class Movement(NamedTuple):
    """Copies of entries from the workers of one layout to those of another: a linear operator.

    ``source`` is the entry of the input that each entry of the output copies, both counted through
    all workers; ``inputs`` and ``outputs`` are the shapes of what each worker holds before and
    after.
    """

    source: Whole
    inputs: Shapes
    outputs: Shapes

    def __call__(self, parts: Sequence[Any]) -> list[NDArray[np.float64]]:
        """What every worker holds afterwards, from what every worker holds."""
        return _cut(_flat(parts, self.inputs)[self.source], self.outputs)

    def adjoint(self, parts: Sequence[Any]) -> list[NDArray[np.float64]]:
        """Add up, for every entry of the input, what its copies hold: <F x, y> = <x, F* y>."""
        size = sum(map(prod, self.inputs))
        total = np.bincount(self.source, _flat(parts, self.outputs), size).astype(np.float64)
        return _cut(total, self.inputs)

    @property
    def traffic(self) -> Whole:
        """Entries each worker (column) gets from each worker (row); its own on the diagonal."""
        sender = np.repeat(np.arange(len(self.inputs)), list(map(prod, self.inputs)))[self.source]
        receiver = np.repeat(np.arange(len(self.outputs)), list(map(prod, self.outputs)))
        counted = np.zeros((len(self.inputs), len(self.outputs)), dtype=np.int64)
        np.add.at(counted, (sender, receiver), 1)
        return counted


def movement(before: ArrayLike, after: ArrayLike) -> Movement:
    """Operator that takes the parts of a tensor from one layout to another, boxes as from `shards`.

    A worker keeps what it has, and gets the rest from the next worker that holds it.

    >>> whole, blocks = shards({"x": 4}, {"all": 2}, {}), shards({"x": 4}, {"all": 2}, {"x": "all"})
    >>> gather = movement(blocks, whole)  # and the copies' gradients are summed and scattered:
    >>> [part.tolist() for part in gather.adjoint([[1, 2, 3, 4], [10, 20, 30, 40]])]
    [[11.0, 22.0], [33.0, 44.0]]
    """
    held, wanted = np.asarray(before, dtype=np.int64), np.asarray(after, dtype=np.int64)
    inputs, outputs = _shapes(held), _shapes(wanted)
    first = np.cumsum([0, *map(prod, inputs)])
    entries = [
        np.arange(prod(shape)).reshape(shape) + at for shape, at in zip(inputs, first, strict=False)
    ]
    source = []
    for worker, box in enumerate(wanted):
        found = np.full(outputs[worker], -1, dtype=np.int64)
        for holder in (np.arange(len(held)) + worker) % len(held):
            common = overlap(held[holder], box)
            mine, theirs = (
                found[_inside(common, box)],
                entries[holder][_inside(common, held[holder])],
            )
            np.copyto(mine, theirs, where=mine < 0)
        if (found < 0).any():
            raise ValueError(
                f"before must hold all of after, got nothing for parts of {box.tolist()}"
            )
        source.append(found.ravel())
    return Movement(np.concatenate(source), inputs, outputs)


class MeshProduct(NamedTuple):
    """What a layout makes of one product of tensors: the output's last.

    ``held`` are bytes of each tensor per worker, ``summed`` bytes per worker of the output that an
    all-reduce over the ``mesh`` dimensions (of ``ranks`` workers) adds up; none where ``mesh`` is
    empty. ``multiplications`` are those of a worker.
    """

    held: tuple[float, ...]
    mesh: tuple[str, ...]
    ranks: int
    summed: float
    multiplications: float


def mesh_product(
    terms: str,
    dims: Mapping[str, int],
    mesh: Mapping[str, int],
    layout: Mapping[str, str],
    element_bytes: float = 4,
) -> MeshProduct:
    """Bytes, multiplications and the all-reduce of a product of tensors under a layout.

    ``terms`` are the product as `numpy.einsum` writes it, such as "bx,xh->bh"; ``dims``, ``mesh``
    and ``layout`` are as in `shards`, with these letters as names. Every worker multiplies its
    boxes; where a dimension that is summed over is split, the products are partial, and an
    all-reduce over its mesh dimension completes the output. Shazeer et al., NeurIPS 2018, sections
    3 and 4.

    >>> mesh_product("bh,hx->bx", {"b": 8, "h": 6, "x": 4}, {"all": 2}, {"h": "all"})
    MeshProduct(held=(96.0, 48.0, 128.0), mesh=('all',), ranks=2, summed=128.0, multiplications=96.0)
    """
    inputs, output = terms.split("->")
    tensors = [*inputs.split(","), output]
    used = dict.fromkeys("".join(tensors))
    last = shards({dim: dims[dim] for dim in used}, mesh, layout)[-1]
    own = {dim: int(high - low) for dim, (low, high) in zip(used, last, strict=True)}
    partial = tuple(layout[dim] for dim in used if dim in layout and dim not in tensors[-1])
    held = tuple(float(element_bytes * prod(own[dim] for dim in name)) for name in tensors)
    ranks, summed = prod(mesh[name] for name in partial), held[-1] if partial else 0.0
    return MeshProduct(held, partial, ranks, summed, multiplications=float(prod(own.values())))


def overlap(one: Whole, other: Whole) -> Whole:
    """What two boxes share; empty where they share nothing."""
    low = np.maximum(one[..., 0], other[..., 0])
    return np.stack([low, np.maximum(low, np.minimum(one[..., 1], other[..., 1]))], axis=-1)


def _inside(part: Whole, box: Whole) -> tuple[slice, ...]:
    """Where a part of a box lies in the box."""
    return tuple(slice(*ends) for ends in (part - box[:, :1]).tolist())


def _shapes(boxes: Whole) -> Shapes:
    return tuple(map(tuple, (boxes[..., 1] - boxes[..., 0]).tolist()))


def _flat(parts: Sequence[Any], shapes: Shapes) -> NDArray[np.float64]:
    """What all workers hold as one vector."""
    arrays = [np.asarray(part) for part in parts]
    if [part.shape for part in arrays] != list(shapes):
        raise ValueError(
            f"parts must have the shapes {shapes}, got {[part.shape for part in arrays]}"
        )
    return np.concatenate([part.ravel() for part in arrays]).astype(np.float64)


def _cut(vector: NDArray[np.float64], shapes: Shapes) -> list[NDArray[np.float64]]:
    """What each worker holds of one vector."""
    ends = np.cumsum([prod(shape) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]
