"""Checks of whole arrays: every refusal names the field, the value and what is allowed."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_instance, require_real

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


def integers(
    name: str,
    values: ArrayLike,
    *shape: int,
    at_least: int = 0,
    at_most: int | None = None,
    per: str = "",
) -> IntArray:
    """Check an integer array of the shape (-1: any length) and range, and return it as int64."""
    allowed = (
        f"integers >= {at_least}"
        + ("" if at_most is None else f" and <= {at_most}")
        + _of(shape, per)
    )
    array = _array(values)
    if array.size == 0 and shape[0] <= 0:
        array = np.empty((0, *shape[1:]), dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be {allowed}, got {_shown(values)}")
    _require_shape(name, array, shape, allowed)
    bad = (array < at_least) | (np.False_ if at_most is None else array > at_most)
    if bad.any():
        raise ValueError(f"{name} must be {allowed}, got {array[bad].flat[0]}")
    return array.astype(np.int64)


def flags(name: str, values: ArrayLike, length: int, per: str) -> BoolArray:
    """Check a bool array of that length."""
    array, allowed = _array(values), "booleans" + _of((length,), per)
    if array.dtype.kind != "b":
        raise TypeError(f"{name} must be {allowed}, got {_shown(values)}")
    return _require_shape(name, array, (length,), allowed).copy()


def reals(
    name: str,
    values: ArrayLike,
    length: int,
    per: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
) -> FloatArray:
    """Check an array of finite numbers of that length and range."""
    array = _array(values)
    if length == 0 and array.size == 0:
        return np.empty(0)
    named: dict[str, Any] = {name: array}
    checked = np.asarray(require_real(above=above, at_least=at_least, **named))
    return _require_shape(name, checked, (length,), "numbers" + _of((length,), per))


def names(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Check distinct names, at least one."""
    found = tuple(require_instance((tuple, list), **{name: values}))
    if (
        not found
        or not all(isinstance(value, str) for value in found)
        or len(set(found)) < len(found)
    ):
        raise ValueError(f"{name} must be distinct texts, at least one, got {found!r}")
    return found


def adjacency(edges: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Where each node's neighbours start, and the neighbours, ascending, of ordered pairs u < v."""
    from scipy.sparse import coo_array

    u, v = edges.T
    ends = np.concatenate([v, u]), np.concatenate([u, v])  # the lower neighbours first
    rows = coo_array((np.ones(ends[0].size, dtype=np.int8), ends), shape=(nodes, nodes)).tocsr()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64)


def parts(edges: IntArray, nodes: int) -> IntArray:
    """Connected part of every node, [nodes], numbered 0, 1, ... by first node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges), dtype=np.int8)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def levels(edges: IntArray, start: BoolArray) -> IntArray:
    """Links from the nearest node of a set, [nodes]; -1 where no path leads to one."""
    level = np.where(start, 0, -1)
    tail, head = np.concatenate([edges, edges[:, ::-1]]).T
    for depth in range(start.size):
        fresh = head[(level[tail] == depth) & (level[head] < 0)]
        if not fresh.size:
            break
        level[fresh] = depth + 1
    return level


def require_one_part(name: str, edges: IntArray, nodes: int) -> None:
    """Refuse an imported network whose nodes cables do not join."""
    sizes = np.sort(np.bincount(parts(edges, nodes)))[::-1]
    if sizes.size > 1:
        raise ValueError(
            f"{name} must be connected, got {sizes.size} parts of {', '.join(map(str, sizes[:8]))} "
            "nodes: "
            "join them, read one, or read all with strict=False"
        )


def ordered_pairs(edges: ArrayLike, n: int) -> IntArray:
    """Check joined pairs u < v < n, ascending, each once."""
    pairs = integers("edges", edges, -1, 2, at_most=n - 1)
    if np.any(pairs[:, 0] >= pairs[:, 1]) or np.any(np.diff(pairs[:, 0] * n + pairs[:, 1]) <= 0):
        raise ValueError(
            "edges must be pairs u < v in ascending order, each once (Topology.of sorts and "
            "merges), "
            f"got {_shown(pairs.tolist())}"
        )
    return pairs


def merged(edges: ArrayLike, n: int) -> tuple[IntArray, IntArray]:
    """Sort cables by ends and merge parallel ones: pairs [m, 2] and how many cables each has."""
    cables = np.sort(integers("edges", edges, -1, 2, at_most=n - 1), axis=1)
    loops = cables[:, 0] == cables[:, 1]
    if loops.any():
        raise ValueError(f"edges must join two different nodes, got {cables[loops][0].tolist()}")
    keys, counts = np.unique(cables[:, 0] * n + cables[:, 1], return_counts=True)
    return np.column_stack(np.divmod(keys, max(n, 1))), counts.astype(np.int64)


def distinct_labels(labels: Sequence[Hashable], n: int) -> Sequence[Hashable]:
    """Check n distinct labels; 0..n-1 is kept as a range."""
    if isinstance(labels, range) and labels == range(n):
        return labels
    found = tuple(require_instance((tuple, list, range), labels=labels))
    if len(found) != n or len(set(found)) != n:
        raise ValueError(f"labels must be {n} distinct labels, got {_shown(found)}")
    counted = all(type(label) is int for label in found) and found == tuple(range(n))
    return range(n) if counted else found


def columns(
    name: str, attributes: Mapping[str, Any], length: int, per: str
) -> dict[str, NDArray[Any]]:
    """Check named columns of that length; each becomes a read-only array."""
    checked = {}
    for key, values in require_instance(Mapping, **{name: attributes}).items():
        require_instance(str, **{name: key})
        column = _array(values).copy() if length else np.empty(0)
        allowed = "values" + _of((length,), per)
        checked[key] = read_only(_require_shape(f"{name}[{key!r}]", column, (length,), allowed))
    return checked


def column(values: Sequence[Any]) -> NDArray[Any]:
    """Array of Python values: bool, int64 or float64 if all are, else object (None if missing)."""
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    found = {type(value) for value in values}
    for kinds, dtype in (({bool}, np.bool_), ({int}, np.int64), ({int, float}, np.float64)):
        if found and found <= kinds:
            try:
                return np.array(values, dtype=dtype)
            except OverflowError:
                break
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """View of the array that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def same(left: Any, right: Any) -> bool:
    """Equality that also compares arrays and mappings of arrays, NaN equal to NaN."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        floats = left.dtype.kind == "f" and right.dtype.kind == "f"
        return np.array_equal(left, right, equal_nan=floats)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def joined(*cables: tuple[IntArray, IntArray]) -> IntArray:
    """Ends of cables [m, 2] from pairs of arrays that broadcast against each other."""
    flat = [[end.ravel() for end in np.broadcast_arrays(*pair)] for pair in cables]
    return np.concatenate(
        [np.empty((0, 2), dtype=np.int64), *(np.column_stack(ends) for ends in flat)]
    )


def _require_shape(
    name: str, array: NDArray[Scalar], shape: tuple[int, ...], allowed: str
) -> NDArray[Scalar]:
    fits = array.ndim == len(shape) and all(
        s in (-1, a) for s, a in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must be {allowed}, got shape {array.shape}")
    return array


def _array(values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # ragged
        return np.empty((), dtype=object)


def _of(shape: tuple[int, ...], per: str) -> str:
    lengths = ", ".join("any" if length < 0 else str(length) for length in shape)
    return f" of shape [{lengths}]" + (per and f", one for each of {per}")


def _shown(values: object) -> str:
    text = repr(values)
    return text if len(text) <= 80 else text[:77] + "..."
