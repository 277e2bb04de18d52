"""Checks that this package needs beside the common ones: single numbers, columns, whole numbers."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_real

LARGEST_WHOLE: Final = 2.0**53  # up to here every whole number is a float
MOST_BYTES: Final = 1024.0  # of one number, in any format
MOST_DEVICES: Final = 2**24  # more than any cluster has


def require_number(
    *, above: float | None = None, at_least: float | None = None, below: float | None = None,
    at_most: float | None = None, **named: Any,
) -> Any:  # fmt: skip
    """Return the named arguments as floats; arrays are refused."""
    numbers = []
    bounds: dict[str, Any] = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    for name, value in named.items():
        number = require_real(**bounds, **{name: value})
        if not isinstance(number, float):
            raise TypeError(f"{name} must be one number, got {value!r}")
        numbers.append(number)
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def require_column(
    name: str, values: Any, size: int, *, above: float | None = None, at_least: float | None = None
) -> NDArray[np.float64]:
    """Return float64 of shape (size,) from one number or ``size`` of them."""
    array = np.asarray(require_real(above=above, at_least=at_least, **{name: values}))
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name} must be one number or {size} of them, got shape {array.shape}")
    return np.broadcast_to(array, (size,)).astype(np.float64)


def require_indices(name: str, values: Any, below: int | None = None) -> NDArray[np.int64]:
    """Return a list of whole numbers as int64, in [0, below) where a limit is given."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a list of integers, got {values!r}")
    array = array.astype(np.int64)
    if below is not None and array.size and (array.min() < 0 or array.max() >= below):
        raise ValueError(f"{name} must be at least 0 and below {below}, got {values!r}")
    return array


def require_whole(
    *, at_least: float, at_most: float = LARGEST_WHOLE, infinite: bool = False, **named: Any
) -> Any:
    """Return the named arguments, numbers or arrays, as float64 arrays of whole numbers."""
    checked = []
    for name, value in named.items():
        number = require_real(at_least=at_least, infinite=infinite, **{name: value})
        finite: dict[str, Any] = {name: np.where(np.isinf(number), at_most, number)}
        require_real(at_most=at_most, **finite)
        if np.any(number != np.floor(number)):
            raise ValueError(f"{name} must be whole, got {value!r}")
        checked.append(np.asarray(number))
    return checked[0] if len(checked) == 1 else checked


def bare(values: Any) -> Any:
    """Return an array of one number as a float, any other array as it is."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
