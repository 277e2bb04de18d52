"""Tiles: what the model says is what an execution on arrays counts, and no schedule moves less."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s62.tiles import TileOperator, tile_group, tile_schedule
from relparallel.hardware import accelerator

SIDE = st.sampled_from([4, 8, 16])


def gemm(m, n, k, names="ABC"):
    a, b, c = names
    return TileOperator(
        name=c, writes=f"{c}[m,n]", reads=(f"{a}[m,k]", f"{b}[k,n]"), sizes={"m": m, "n": n, "k": k}
    )


def pair(m, k, n, p):
    """A B, then (A B) D."""
    return [gemm(m, n, k), gemm(m, p, n, "CDE")]


@given(m=SIDE, n=SIDE, k=SIDE, tm=st.sampled_from([1, 2, 4]), tn=st.sampled_from([1, 2, 4]))
def test_a_product_moves_what_its_execution_in_tiles_loads_and_stores(m, n, k, tm, tn):
    a, b = np.arange(m * k).reshape(m, k), np.arange(k * n).reshape(k, n)
    c, loads = np.zeros((m, n)), {"A": 0, "B": 0}
    for i, j in product(range(0, m, tm), range(0, n, tn)):
        left, right = a[i : i + tm], b[:, j : j + tn]
        loads["A"], loads["B"] = loads["A"] + left.size, loads["B"] + right.size
        c[i : i + tm, j : j + tn] = left @ right
    found = tile_group([gemm(m, n, k)], {"m": tm, "n": tn})
    assert np.array_equal(c, a @ b)
    assert found.loads == loads
    assert found.stores == {"C": c.size}
    assert found.flops == 2 * m * n * k
    assert found.footprint == tm * tn + 2 * min(k, 16) * (tm + tn)  # two chunks of the summed axis


@given(m=SIDE, k=SIDE, n=SIDE, p=SIDE, tm=st.sampled_from([1, 2, 4]), tp=st.sampled_from([1, 2, 4]))
def test_connected_products_keep_the_middle_on_the_chip_and_compute_it_for_every_tile(
    m, k, n, p, tm, tp
):
    rng = np.random.default_rng(0)
    a, b, d = rng.random((m, k)), rng.random((k, n)), rng.random((n, p))
    e, moved, flops = np.zeros((m, p)), 0, 0
    for i, j in product(range(0, m, tm), range(0, p, tp)):
        middle = a[i : i + tm] @ b
        e[i : i + tm, j : j + tp] = middle @ d[:, j : j + tp]
        moved += tm * k + b.size + n * tp
        flops += 2 * tm * n * (k + tp)
    found = tile_group(pair(m, k, n, p), {"m": tm, "n": tp})
    assert np.allclose(e, a @ b @ d)
    assert "C" not in found.loads
    assert found.words == moved + e.size
    assert found.flops == flops


@given(
    rows=st.integers(6, 14),
    window=st.integers(1, 3),
    stride=st.integers(1, 2),
    tile=st.integers(1, 3),
)
def test_a_tile_of_a_convolution_needs_its_halo(rows, window, stride, tile):
    out = (rows - window) // stride + 1
    tile = min(tile, out)
    sizes = {"y": out, "r": window}
    one = TileOperator(name="conv", writes="Y[y]", reads=(f"X[{stride}y+r]", "W[r]"), sizes=sizes)
    touched = [
        {stride * y + r for y in range(i, i + tile) for r in range(window)}
        for i in range(0, out, tile)
    ]
    spans = [max(rows) - min(rows) + 1 for rows in touched]
    found = tile_group([one], {"y": tile})
    assert found.loads["X"] == sum(spans)
    assert tile_group([one], {"y": tile}, stream="y").loads["X"] == stride * (out - 1) + window


@settings(max_examples=20, deadline=None)
@given(m=SIDE, k=SIDE, n=SIDE, p=SIDE, memory=st.sampled_from([80, 200, 600, 3000]))
def test_no_division_into_groups_and_no_tiles_move_less_than_the_schedule(m, k, n, p, memory):
    operators = [
        *pair(m, k, n, p),
        TileOperator(name="F", writes="F[m,n]", reads=("E[m,n]",), sizes={"m": m, "n": p}),
    ]
    best = np.inf
    for cuts in product((False, True), repeat=2):
        ends = [*(i + 1 for i, cut in enumerate(cuts) if cut), 3]
        words = 0.0
        for start, stop in zip([0, *ends], ends, strict=False):
            group = operators[start:stop]
            sides = [[2**i for i in range(5) if 2**i <= group[-1].sizes[axis]] for axis in "mn"]
            tried = [tile_group(group, {"m": a, "n": b}, chunk=4) for a, b in product(*sides)]
            words += min((t.words for t in tried if t.footprint <= memory), default=np.inf)
        best = min(best, words)
    if np.isfinite(best):
        assert tile_schedule(operators, memory, chunk=4).words == best
    else:
        with pytest.raises(ValueError, match="memory must hold the smallest tiles"):
            tile_schedule(operators, memory, chunk=4)


@settings(max_examples=30, deadline=None)
@given(m=SIDE, k=SIDE, n=SIDE, p=SIDE, memory=st.sampled_from([300, 1000, 4000]))
def test_connecting_never_moves_more_nor_does_a_larger_chip(m, k, n, p, memory):
    operators = pair(m, k, n, p)
    fused, apart = (
        tile_schedule(operators, memory, chunk=4, connect=c).words for c in (True, False)
    )
    assert fused <= apart
    assert tile_schedule(operators, 2 * memory, chunk=4).words <= fused


@given(m=SIDE, n=SIDE, k=SIDE, memory=st.sampled_from([100, 300, 1000]))
def test_no_tile_beats_the_bound_of_hong_and_kung(m, n, k, memory):
    """2 MNK / sqrt(memory), since a tile of the output is held whole."""
    assert tile_schedule([gemm(m, n, k)], memory, chunk=1).words >= 2 * m * n * k / memory**0.5


def test_a_pointwise_operator_behind_a_product_costs_two_passes_over_its_tensor_less():
    product_, gelu = (
        gemm(64, 64, 16),
        TileOperator(name="gelu", writes="D[m,n]", reads=("C[m,n]",), sizes={"m": 64, "n": 64}),
    )
    tile = {"m": 16, "n": 16}
    apart = tile_group([product_], tile).words + tile_group([gelu], tile).words
    assert apart - tile_group([product_, gelu], tile).words == 2 * 64 * 64
    kept = tile_group([product_, gelu], tile, kept=["C"])
    assert apart - kept.words == 64 * 64
    assert set(kept.stores) == {"C", "D"}
    alone = tile_group([product_], tile)
    assert tile_group([product_, gelu], tile).footprint == alone.footprint  # in place
    assert kept.footprint == alone.footprint + 16 * 16


def test_streamed_layers_read_weights_once_and_hold_windows_of_rows():
    first = TileOperator(
        name="1",
        writes="Y[d,y]",
        reads=("X[c,y+r]", "V[d,c,r]"),
        sizes={"d": 3, "y": 8, "c": 2, "r": 3},
    )
    second = TileOperator(
        name="2",
        writes="Z[d,y]",
        reads=("Y[c,y+r]", "W[d,c,r]"),
        sizes={"d": 4, "y": 6, "c": 3, "r": 3},
    )
    found = tile_group([first, second], {"d": 4, "y": 1}, stream="y", density={"X": 0.5, "V": 0.25})
    assert found.loads == {"X": 0.5 * 2 * 10, "V": 0.25 * 18, "W": 36}
    assert found.words == 10 + 4.5 + 36 + 24
    # rows of Z, Y and X, and all weights
    assert found.footprint == 4 + 3 * 3 + 0.5 * 2 * 5 + 4.5 + 36
    plan = tile_schedule([first, second], 100, stream=True)
    assert [group.operators for group in plan.groups] == [("1", "2")]


def test_steps_are_priced_by_bytes_and_operations():
    gpu = accelerator("a100-40gb")
    plan = tile_schedule(pair(64, 32, 64, 16), 8192)
    steps = plan.steps(gpu)
    assert list(steps["step"][:4]) == ["Allocate", "LoadTiles", "ComputeTiles", "StoreTiles"]
    moved = steps[steps["step"].isin(["LoadTiles", "StoreTiles"])]
    assert moved["bytes"].sum() == 2 * plan.words
    assert moved["time"].sum() == pytest.approx(2 * plan.words / gpu.memory_bandwidth, rel=1e-12)
    assert steps["flops"].sum() == sum(group.flops for group in plan.groups)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"writes": "C[m,q]"},
            r"writes must be written as X\[c,2y\+r\] with axes of \['k', 'm', 'n'\], got",
        ),
        ({"writes": "C[2m,n]"}, r"writes must have single axes, got 'C\[2m,n\]'"),
    ],
)
def test_what_is_no_loop_nest_is_refused(changes, message):
    given_ = {
        "name": "x",
        "writes": "C[m,n]",
        "reads": ("A[m,k]",),
        "sizes": {"m": 2, "n": 2, "k": 2},
    }
    with pytest.raises(ValueError, match=message):
        TileOperator(**given_ | changes)


def test_unconnected_operators_and_wrong_tiles_are_refused():
    with pytest.raises(ValueError, match="operators must be connected, got C whose C nobody reads"):
        tile_group([gemm(4, 4, 4), gemm(4, 4, 4, "XYZ")], {"m": 2, "n": 2})
    with pytest.raises(ValueError, match=r"tile and stream must be of the axes \['m', 'n'\]"):
        tile_group([gemm(4, 4, 4)], {"m": 2, "n": 2}, stream="k")
