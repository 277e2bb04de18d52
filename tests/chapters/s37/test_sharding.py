"""Layouts and movements: dense matrices, serial layers, every product of tensors run on a mesh."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s37.sharding import mesh_product, movement, shards

TINY = 1e-14
LAYOUTS = [
    {},
    {"x": "r"},
    {"y": "r"},
    {"x": "c"},
    {"y": "c"},
    {"x": "r", "y": "c"},
    {"y": "r", "x": "c"},
]


def norm(parts) -> float:
    return float(np.sqrt(sum((np.asarray(part) ** 2).sum() for part in parts)))


def dot(one, other) -> float:
    return float(sum((np.asarray(a) * b).sum() for a, b in zip(one, other, strict=True)))


def blocks(tensor, boxes):
    """What each worker holds of a tensor."""
    return [tensor[tuple(slice(*side) for side in box)] for box in boxes.tolist()]


def close(parts, expected) -> bool:
    return all(
        np.abs(a - b).max(initial=0.0) <= TINY * max(norm(expected), 1.0)
        for a, b in zip(parts, expected, strict=True)
    )


@given(
    x=st.integers(1, 7),
    y=st.integers(1, 7),
    r=st.integers(1, 3),
    c=st.integers(1, 3),
    ways=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
    margin=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_a_movement_gives_every_worker_its_box_and_its_adjoint_the_transpose(
    x, y, r, c, ways, margin, seed
):
    rng, dims, mesh = np.random.default_rng(seed), {"x": x, "y": y}, {"r": r, "c": c}
    before, after = shards(dims, mesh, ways[0]), shards(dims, mesh, ways[1], {"x": margin})
    move, tensor = movement(before, after), rng.normal(size=(x, y))
    assert close(move(blocks(tensor, before)), blocks(tensor, after))
    matrix = np.zeros((move.source.size, sum(map(prod, move.inputs))))
    matrix[np.arange(move.source.size), move.source] = 1
    back = [rng.normal(size=shape) for shape in move.outputs]
    turned = matrix.T @ np.concatenate([part.ravel() for part in back])
    assert np.allclose(
        np.concatenate([p.ravel() for p in move.adjoint(back)]), turned, rtol=0, atol=1e-13
    )
    held = [rng.normal(size=shape) for shape in move.inputs]
    error = abs(dot(move(held), back) - dot(held, move.adjoint(back)))
    assert error <= TINY * max(
        norm(move(held)) * norm(back), norm(held) * norm(move.adjoint(back)), 1e-300
    )


def test_traffic_counts_what_comes_from_others():
    dims, mesh = {"x": 8, "y": 8}, {"w": 4}
    rows, columns = shards(dims, mesh, {"x": "w"}), shards(dims, mesh, {"y": "w"})
    assert movement(rows, columns).traffic.tolist() == np.full((4, 4), 4).tolist()  # all-to-all
    halo = movement(rows, shards(dims, mesh, {"x": "w"}, {"x": (1, 0)})).traffic
    assert (halo - np.diag(np.diag(halo))).tolist() == (8 * np.eye(4, k=1)).tolist()
    copies = movement(rows, shards(dims, mesh, {})).traffic  # all-gather: each gets the other 3/4
    assert (copies.sum(axis=0) - np.diag(copies)).tolist() == [48] * 4


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_pooling_by_parts_is_the_serial_one_forward_and_back(workers):
    """Windows of three that begin at every second point: the last worker's margins differ."""
    rng, points = np.random.default_rng(workers), 17
    windows = shards({"o": 8}, {"w": workers}, {"o": "w"})
    wide = np.stack([2 * windows[..., 0], 2 * windows[..., 1] + 1], axis=-1)
    move = movement(shards({"x": points}, {"w": workers}, {"x": "w"}), wide)
    x, back = rng.normal(size=points), rng.normal(size=8)
    serial = np.array([x[2 * o : 2 * o + 3].max() for o in range(8)])
    parts = move(blocks(x, shards({"x": points}, {"w": workers}, {"x": "w"})))
    pooled = [np.array([p[2 * o : 2 * o + 3].max() for o in range(len(p) // 2)]) for p in parts]
    assert close(pooled, blocks(serial, windows))
    gradient = np.zeros(points)
    for o in range(8):
        gradient[2 * o + x[2 * o : 2 * o + 3].argmax()] += back[o]
    local = []
    for part, g in zip(parts, blocks(back, windows), strict=True):
        local.append(np.zeros(len(part)))
        for o in range(len(g)):
            local[-1][2 * o + part[2 * o : 2 * o + 3].argmax()] += g[o]
    assert close(
        move.adjoint(local), blocks(gradient, shards({"x": points}, {"w": workers}, {"x": "w"}))
    )


@given(
    terms=st.sampled_from(["bx,xh->bh", "bh,hx->bx", "bx,bh->xh", "bh,h->b"]),
    r=st.integers(1, 3),
    c=st.integers(1, 3),
    layout=st.sampled_from(
        [
            {},
            {"b": "r"},
            {"h": "r"},
            {"b": "r", "h": "c"},
            {"x": "c", "h": "r"},
            {"x": "r", "b": "c"},
        ]
    ),
)
@settings(deadline=None)
def test_a_product_over_a_mesh_needs_the_all_reduce_that_its_layout_says(terms, r, c, layout):
    rng, dims, mesh = np.random.default_rng(3), {"b": 6, "x": 5, "h": 4}, {"r": r, "c": c}
    inputs, output = terms.split("->")
    names = [*inputs.split(","), output]
    boxes = [shards({k: dims[k] for k in name}, mesh, layout) for name in names]
    tensors = [rng.normal(size=[dims[k] for k in name]) for name in names[:2]]
    parts = [blocks(tensor, box) for tensor, box in zip(tensors, boxes, strict=False)]
    partial = [np.einsum(terms, *pair) for pair in zip(*parts, strict=True)]
    cost = mesh_product(terms, dims, mesh, layout, 1.0)
    assert cost.held == tuple(max(prod(np.diff(box).ravel()) for box in every) for every in boxes)
    place = np.indices((r, c)).reshape(2, -1)
    fixed = [place["rc".index(k)] for k in "rc" if k not in cost.mesh]
    group = sum(fixed, np.zeros(r * c, int)) if len(fixed) < 2 else np.arange(r * c)
    summed = [sum(p for p, g in zip(partial, group, strict=True) if g == mine) for mine in group]
    assert close(summed, blocks(np.einsum(terms, *tensors), boxes[-1]))
    assert cost.ranks == prod(mesh[k] for k in cost.mesh)


def test_what_is_not_held_cannot_be_moved():
    rows = shards({"x": 4}, {"w": 2}, {"x": "w"})
    with pytest.raises(ValueError, match="before must hold all of after"):
        movement(rows[:1], rows)
    with pytest.raises(ValueError, match="layout must map dimensions to different ones"):
        shards({"x": 4, "y": 4}, {"w": 2}, {"x": "w", "y": "w"})
    with pytest.raises(ValueError, match="parts must have the shapes"):
        movement(rows, rows)([[1.0, 2.0]])
