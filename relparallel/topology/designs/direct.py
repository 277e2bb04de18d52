"""Direct networks: the nodes themselves are the switches, or most of them.

``dims`` are the lengths k_1..k_d of the dimensions; ``a``, ``b`` the columns and rows of a board of
a HammingMesh, ``x``, ``y`` those of boards.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from relparallel._checks import require_flag, require_instance, require_int
from relparallel.topology._arrays import IntArray
from relparallel.topology.description import Description, design, planned
from relparallel.topology.designs._shared import alike, blocks, exchange, flat, rolled, rolls, wired
from relparallel.topology.fabric import Topology
from relparallel.topology.parts import SharedRisk

CUBE: Final = 4  # chips along each dimension of a cube of a TPU v4 pod
_POD_CUBES: Final = 64


def _torus(dims: Sequence[int], wrap: bool | Sequence[bool] = True) -> Description:
    lengths, around = require_dims(dims=dims), _around(dims, wrap)
    nodes, shape = math.prod(lengths), list(zip(lengths, around, strict=True))
    most = sum(min(k - 1, 2) for k in lengths)
    least = most - sum(k > 2 and not ring for k, ring in shape)
    total = sum((3 * (k**2 // 4) if ring else k**2 - 1) * (nodes // k) for k, ring in shape)
    # Cables across the middle of each dimension: the fewest are the bisection if its length is
    # even.
    fewest, odd = min((nodes * (2 if ring and k > 2 else 1) / k, k % 2) for k, ring in shape)
    return Description(
        parameters={"dims": lengths} if all(around) else {"dims": lengths, "wrap": around},
        nodes={"node": nodes},
        degrees={"node": tuple(range(least, most + 1)) if least < most else most},
        links=sum(nodes // k * (k - (not ring or k < 3)) for k, ring in shape),
        diameter=sum(k // 2 if ring else k - 1 for k, ring in shape),
        mean_hops=total / (3 * (nodes - 1)) if nodes > 1 else None,
        bisection=None if odd else int(fewest),
        host_connectivity=least,
    )


def _torus_moves(dims: Sequence[int], wrap: Sequence[bool] = ()) -> list[IntArray]:
    """Next node along wrapped dimensions; every dimension backwards; like neighbours exchanged."""
    grid, around = blocks(tuple(dims)), wrap or (True,) * len(dims)
    shifts = [rolled(grid, (axis,)) for axis in range(len(dims)) if around[axis]]
    mirrors = [np.flip(grid[0], axis).ravel() for axis in range(len(dims))]
    swaps = [np.swapaxes(grid[0], a, b).ravel() for a, b in alike(zip(dims, around, strict=True))]
    return [*shifts, *mirrors, *swaps]


def _round_the_edge(t: Topology) -> IntArray:
    """Stripes: cables round the edge, but not those of a ring."""
    dims = [length for length in t.meta.parameters["dims"] if length > 1] or [1]
    place = np.array(np.unravel_index(t.edges, dims))
    apart = np.abs(np.diff(place, axis=2)).max(axis=0, initial=0)[:, 0]
    return np.where(len(dims) > 1, apart > 1, False).astype(np.int64)


def _torus_sizes(hosts: int) -> list[dict[str, Any]]:
    side = round(hosts ** (1 / 3))
    return [{"dims": (side, side + i, side + j)} for i, j in ((0, 0), (0, 1), (1, 1))]


@design(
    closed_form=_torus,
    symmetries=_torus_moves,
    layout="torus",
    stripes=_round_the_edge,
    sizes=_torus_sizes,
    paper="adiga2005torus",
)
def torus(dims: Sequence[int], wrap: bool | Sequence[bool] = True) -> Topology:
    """Torus: nodes are points of a grid, joined to the next in every dimension, round the edge.

    Parameters
    ----------
    dims : sequence of int
        Length of every dimension, at least 1. A dimension of length 2 has one cable per pair, not
        two; a dimension of length 1 has none.
    wrap : bool or sequence of bool, optional
        Whether cables run round the edge, in all dimensions or in each; without any it is a mesh.

    Returns
    -------
    Topology
        prod(dims) nodes in row-major order, all endpoints, all forwarding; d cables per node where
        every dimension is at least 3, fewer at an edge that is not wrapped. ``pod`` is the
        coordinate in the first dimension.

    Notes
    -----
    Nodes are at most sum(floor(k_i/2)) apart, and as many disjoint paths as a node has cables join
    any two. A dimension that is not wrapped adds k_i - 1, and a corner has one cable in it. N/k_i
    cables cross the middle of an even dimension, twice as many of a wrapped one of 4 or more. The
    least of these is the bisection: routes one dimension after the other pass at most N k_i/4 pairs
    over any cable of it (N k_i/8 over one of a ring), and N^2/4 pairs have to cross. Source: Adiga
    et al., IBM Journal of Research and Development 49, 2005.

    Examples
    --------
    >>> torus(dims=(4, 4, 4))
    <Topology torus(dims=(4, 4, 4)): 64 hosts, 0 switches, 192 links>
    >>> torus(dims=(4, 4, 4), wrap=False).num_links
    144
    """
    form, lengths, around = (
        planned("torus", dims, wrap),
        require_dims(dims=dims),
        _around(dims, wrap),
    )
    grid = np.arange(form.hosts).reshape(lengths)
    lines = [
        _line_of(grid, axis, around[axis]) for axis, length in enumerate(lengths) if length > 1
    ]
    return wired(
        form,
        *(("node", u, "node", v) for u, v in lines),
        pod={"node": grid // (form.hosts // lengths[0])},
        hosts_forward=True,
    )


def _tpu_v4(dims: Sequence[int], cubes: Sequence[int] | None = None) -> Description:
    lengths, chosen = _slice(dims, cubes)
    return replace(_torus(lengths), parameters={"dims": lengths, "cubes": chosen})


@design(
    closed_form=_tpu_v4,
    symmetries=lambda dims, cubes: _torus_moves(dims),
    layout="torus",
    stripes=_round_the_edge,
    sizes=lambda hosts: [{"dims": (CUBE * a,) * 3} for a in range(1, 5)],
    paper="jouppi2023tpuv4",
)
def tpu_v4(dims: Sequence[int], cubes: Sequence[int] | None = None) -> Topology:
    """TPU v4 slice: a three-dimensional torus of 4 x 4 x 4 chip cubes, joined by optical switches.

    Inside a cube cables are electrical. Opposite faces of all 64 cubes of a pod end in the same
    switch, chip by chip: it joins each cube to the next of the slice, the last to the first,
    wherever they stand.

    Parameters
    ----------
    dims : sequence of int
        Chips along three dimensions: multiples of 4, at most 64 cubes in all.
    cubes : sequence of int, optional
        Which cube of the pod, 0 to 63, each cube of the slice is, in row-major order; the first
        ones if not given. To replace a failed cube, name another: the switches are set anew, no
        cable moves.

    Returns
    -------
    Topology
        prod(dims) chips in row-major order, all endpoints, all forwarding, 6 cables each. ``pod``
        is the cube of the pod, ``edge_attributes["optical"]`` tells which cables run through a
        switch, and the cables of one switch share its risk: 16 for each dimension, 48.

    Notes
    -----
    A circuit switch forwards light, not packets: it is no node, and distances are those of the
    torus. Each cube has 96 optical cable ends. Source: Jouppi et al., ISCA 2023, section 2.

    Examples
    --------
    >>> t = tpu_v4(dims=(4, 8, 4), cubes=(7, 3))
    >>> t, len(t.shared_risk)
    (<Topology tpu_v4(dims=(4, 8, 4), cubes=(7, 3)): 128 hosts, 0 switches, 384 links>, 48)
    """
    form = planned("tpu_v4", dims, cubes)
    lengths, chosen = form.parameters.values()
    t = torus(lengths)
    place = np.stack(np.unravel_index(np.arange(t.num_nodes), lengths))
    cube = np.ravel_multi_index(tuple(place // CUBE), tuple(length // CUBE for length in lengths))
    within = place[:, t.edges] % CUBE  # [axis, cable, end]
    step = np.abs(within[:, :, 0] - within[:, :, 1])
    axis = step.argmax(axis=0)
    optical = step.max(axis=0) == CUBE - 1
    others = np.array([[1, 2], [0, 2], [0, 1]])[axis]
    face = (
        within[others[:, 0], np.arange(axis.size), 0] * CUBE
        + within[others[:, 1], np.arange(axis.size), 0]
    )
    switch = np.where(optical, axis * CUBE**2 + face, -1)
    return on_switches(replace(t, pod=np.array(chosen)[cube], meta=form.meta), switch)


def on_switches(t: Topology, switch: IntArray) -> Topology:
    """Slice of which cable i runs through circuit switch[i], or through none where that is -1."""
    risks = (
        SharedRisk(name=f"optical switch {i:02}", edges=tuple(np.flatnonzero(switch == i).tolist()))
        for i in np.unique(switch[switch >= 0])
    )
    return replace(t, edge_attributes={"optical": switch >= 0}, shared_risk=tuple(risks))


def _hammingmesh(a: int, b: int, x: int, y: int) -> Description:
    require_int(a=a, b=b, x=x, y=y, at_least=1)
    rows, columns = b * y, a * x
    nodes = rows * columns
    (across, wide), (down, high) = _line(a, x), _line(b, y)
    return Description(
        nodes={"accelerator": nodes, "row": rows, "column": columns},
        degrees={"accelerator": 4, "row": 2 * x, "column": 2 * y},
        links=x * y * (2 * a * b + a + b),
        diameter=wide + high,
        mean_hops=(rows**2 * across + columns**2 * down) / (nodes * (nodes - 1))
        if nodes > 1
        else None,
        host_connectivity=2 * (rows > 1) + 2 * (columns > 1),
    )


def _hammingmesh_moves(a: int, b: int, x: int, y: int) -> list[IntArray]:
    """Next row and column of boards, their first two exchanged; all boards mirrored either way."""
    parts = blocks((y, b, x, a), (y, b), (x, a))
    grid, row, column = parts
    moves = rolls(parts, [(0, 0, None), (2, None, 0)])
    swaps = [
        flat([grid[exchange(y)], row[exchange(y)], column]),
        flat([grid[:, :, exchange(x)], row, column[exchange(x)]]),
    ]
    mirrors = [
        flat([grid[:, ::-1], row[:, ::-1], column]),
        flat([grid[..., ::-1], row, column[:, ::-1]]),
    ]
    return [*moves, *swaps, *mirrors]


def _hammingmesh_sizes(hosts: int) -> list[dict[str, int]]:
    """Boards of four by four, or fewer, in a square."""
    board = 4 if hosts >= 1000 else 2
    side = math.isqrt(hosts) // board
    return [{"a": board, "b": board, "x": length, "y": length} for length in (side, side + 1)]


def _to_switches(t: Topology) -> IntArray:
    """Stripes: cables to the switches of rows, and to those of columns."""
    return np.asarray(t.node_kind[t.edges].max(axis=1), dtype=np.int64)


@design(
    closed_form=_hammingmesh,
    symmetries=_hammingmesh_moves,
    layout="boards",
    stripes=_to_switches,
    sizes=_hammingmesh_sizes,
    paper="hoefler2022hxmesh",
)
def hammingmesh(a: int, b: int, x: int, y: int) -> Topology:
    """HammingMesh: mesh boards; each accelerator row and column has a switch at the board edges.

    Parameters
    ----------
    a, b : int
        Columns and rows of accelerators of a board, at least 1.
    x, y : int
        Columns and rows of boards, at least 1.

    Returns
    -------
    Topology
        a b x y accelerators in row-major order of the whole grid, all forwarding, then the switches
        of the b y rows and of the a x columns. Each accelerator has 4 cables. ``pod`` is the board.

    Notes
    -----
    A row switch meets the first and the last accelerator of its row on every board: both ends of a
    board of one column are two cables of one accelerator. Rows wider than the ports of a switch (2x
    of them) would be trees; here each is one switch. Distances are sums of those along a row and
    along a column. Source: Hoefler et al., SC 2022, section 3.

    Examples
    --------
    >>> hammingmesh(a=2, b=2, x=16, y=16)
    <Topology hammingmesh(a=2, b=2, x=16, y=16): 1024 hosts, 64 switches, 3072 links>
    """
    form = planned("hammingmesh", a, b, x, y)
    row, column = np.arange(form.nodes["row"]), np.arange(form.nodes["column"])
    grid = np.arange(form.hosts).reshape(row.size, column.size)
    along, down = column[:-1][column[1:] % a > 0], row[:-1][row[1:] % b > 0]
    first, top = column[::a], row[::b]
    return wired(
        form,
        ("accelerator", grid[:, along], "accelerator", grid[:, along + 1]),
        ("accelerator", grid[down], "accelerator", grid[down + 1]),
        *(("accelerator", grid[:, edge], "row", row[:, None]) for edge in (first, first + a - 1)),
        *(("accelerator", grid[edge], "column", column) for edge in (top, top + b - 1)),
        tier={
            "accelerator": np.zeros_like(grid),
            "row": np.ones_like(row),
            "column": np.ones_like(column),
        },
        pod={"accelerator": row[:, None] // b * x + column // a},
        hosts_forward=True,
    )


def require_dims(*, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths as a tuple of one or more integers of at least 1."""
    require_instance((Sequence, np.ndarray), dims=dims)
    if len(dims) == 0 or isinstance(dims, str):
        raise ValueError(f"dims must be one or more integers >= 1, got {dims!r}")
    return tuple(require_int(dims=length, at_least=1) for length in dims)


def _around(dims: Sequence[int], wrap: bool | Sequence[bool]) -> tuple[bool, ...]:
    """Whether each dimension is wrapped."""
    require_instance((bool, np.bool_, Sequence, np.ndarray), wrap=wrap)
    flags = [wrap] * len(dims) if isinstance(wrap, bool | np.bool_) else list(wrap)
    if len(flags) != len(dims):
        raise ValueError(f"wrap must be one flag for each of {len(dims)} dimensions, got {wrap!r}")
    return tuple(require_flag(wrap=flag) for flag in flags)


def _line_of(grid: IntArray, axis: int, around: bool) -> tuple[IntArray, IntArray]:
    """Every node and its next one along an axis; the cable round the edge only from length 3."""
    ends = grid, np.roll(grid, -1, axis=axis)
    if around and grid.shape[axis] > 2:
        return ends
    here, following = (np.delete(end, -1, axis=axis) for end in ends)
    return here, following


def _slice(
    dims: Sequence[int], cubes: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths of a slice in chips, and the cubes of the pod it is made of."""
    lengths = require_dims(dims=dims)
    count = math.prod(length // CUBE for length in lengths)
    if len(lengths) != 3 or any(length % CUBE for length in lengths) or count > _POD_CUBES:
        raise ValueError(
            f"dims must be three multiples of {CUBE}, at most {_POD_CUBES} cubes, got {lengths}"
        )
    require_instance((Sequence, np.ndarray, type(None)), cubes=cubes)
    named = range(count) if cubes is None else cubes
    chosen = tuple(require_int(cubes=cube, at_least=0, at_most=_POD_CUBES - 1) for cube in named)
    if len(set(chosen)) != count or len(chosen) != count:
        raise ValueError(f"cubes must be {count} different cubes for dims {lengths}, got {cubes}")
    return lengths, chosen


def _line(length: int, boards: int) -> tuple[int, int]:
    """Sum and maximum of distances in a row of boards; a board's row and the switch are a ring."""
    # all distances to the switch, and the largest
    out, far = (length + 1) ** 2 // 4, (length + 1) // 2
    largest = 2 * far if boards > 1 else far * (length > 1)
    return boards * out * (length - 1 + 2 * (boards - 1) * length), largest
