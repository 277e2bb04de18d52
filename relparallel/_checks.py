"""Argument checks: every refusal names the argument, the value and what is allowed.

Each function takes the arguments to check as keywords, so the name in the message is the name in the
caller's signature, and returns the checked value (a tuple of them when several are given)::

    stages = require_int(stages=stages, at_least=1)

Arrays are checked element by element and come back as float64 (or int64) arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any, Final

import numpy as np

__all__ = [
    "require_choice",
    "require_flag",
    "require_instance",
    "require_int",
    "require_probability",
    "require_real",
    "require_rng",
]


def require_int(*, at_least: int | None = None, at_most: int | None = None, **named: Any) -> Any:
    """Return the named arguments as Python integers inside [at_least, at_most].

    Raises
    ------
    TypeError
        If a value is not an integer (booleans and floats are not).
    ValueError
        If a value is outside the range.

    Examples
    --------
    >>> require_int(k=4, at_least=2)
    4
    >>> require_int(k=1, at_least=2)
    Traceback (most recent call last):
    ...
    ValueError: k must be an integer >= 2, got 1
    """
    return _each(named, _integer, at_least, at_most)


def require_real(
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    infinite: bool = False,
    **named: Any,
) -> Any:
    """Return the named arguments as floats (arrays as float64 arrays) inside the given bounds.

    NaN is always refused; infinity only passes with ``infinite=True``.

    Raises
    ------
    TypeError
        If a value is not a real number or an array of them.
    ValueError
        If a value is NaN, infinite (unless allowed) or outside the bounds.

    Examples
    --------
    >>> require_real(mtbf=3600, above=0)
    3600.0
    >>> require_real(mtbf=-1.0, above=0)
    Traceback (most recent call last):
    ...
    ValueError: mtbf must be a number > 0, got -1.0
    """
    return _each(named, _real, (above, at_least, below, at_most), infinite)


def require_probability(**named: Any) -> Any:
    """Return the named arguments as floats (arrays as float64 arrays) inside [0, 1].

    Examples
    --------
    >>> require_probability(link_up=0.99)
    0.99
    """
    return _each(named, _real, _UNIT, False, "a probability in [0, 1]")


def require_choice(allowed: Collection[Any], /, **named: Any) -> Any:
    """Return the named arguments if each is one of ``allowed``.

    Examples
    --------
    >>> require_choice(("young", "daly"), method="young")
    'young'
    """
    return _each(named, _choice, allowed)


def require_flag(**named: Any) -> Any:
    """Return the named arguments if each is True or False."""
    return _each(named, _flag)


def require_instance(kind: type | tuple[type, ...], /, **named: Any) -> Any:
    """Return the named arguments if each is an instance of ``kind``."""
    return _each(named, _instance, kind)


def require_rng(**named: Any) -> Any:
    """Return the named arguments if each is a ``numpy.random.Generator``."""
    return _each(named, _generator)


def _each(named: dict[str, Any], check: Any, *allowed: Any) -> Any:
    """Check every named value; one value comes back bare, several as a tuple in the order given."""
    values = [check(name, value, *allowed) for name, value in named.items()]
    return values[0] if len(values) == 1 else tuple(values)


def _choice(name: str, value: Any, allowed: Collection[Any]) -> Any:
    for option in allowed:
        if value is option or (type(value) is type(option) and value == option):
            return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {_shown(value)}")


def _generator(name: str, value: Any) -> np.random.Generator:
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be Generator from numpy.random.default_rng(seed), got {_shown(value)}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def _instance(name: str, value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise TypeError(f"{name} must be {' or '.join(k.__name__ for k in kinds)}, got {_shown(value)}")
    return value


def _integer(name: str, value: Any, at_least: int | None, at_most: int | None) -> int:
    if type(value) is int and _inside(value, None, at_least, None, at_most):  # most values
        return value
    allowed = "an integer" + _range(at_least, at_most)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {allowed}, got {_shown(value)}") from None
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number


Bounds = tuple[float | None, float | None, float | None, float | None]  # above, at least, below, at most

_UNIT: Final[Bounds] = (None, 0.0, None, 1.0)
_SIGNS: Final = (">", ">=", "<", "<=")
_COMPARE: Final = (np.greater, np.greater_equal, np.less, np.less_equal)


def _real(name: str, value: Any, bounds: Bounds, infinite: bool, allowed: str | None = None) -> Any:
    """The value as a float or a float64 array; ``allowed`` says what the bounds are, None: the bounds."""
    if type(value) is float and _inside(value, *bounds):  # most values: without the detour through an array
        return value
    given = [(sign, bound) for sign, bound in zip(_SIGNS, bounds, strict=True) if bound is not None]
    allowed = allowed or "a number" + " and".join(f" {sign} {bound:g}" for sign, bound in given)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.size == 0 or np.ma.is_masked(value):  # a mask would be lost
        raise TypeError(f"{name} must be {allowed}, got {_shown(value)}")
    array = array.astype(np.float64)
    good = ~np.isnan(array) if infinite else np.isfinite(array)
    for compare, bound in zip(_COMPARE, bounds, strict=True):
        if bound is not None:
            good &= compare(array, bound)
    if not good.all():
        raise ValueError(f"{name} must be {allowed}, got {_shown(array[~good].flat[0])}")
    return float(array) if array.ndim == 0 else array


def _inside(
    value: float, above: float | None, at_least: float | None, below: float | None, at_most: float | None
) -> bool:
    """Whether a number is finite and keeps the bounds."""
    return (
        -math.inf < value < math.inf
        and (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (below is None or value < below)
        and (at_most is None or value <= at_most)
    )


def _range(at_least: float | None, at_most: float | None) -> str:
    if at_least is not None and at_most is not None:
        return f" in [{at_least}, {at_most}]"
    if at_least is not None:
        return f" >= {at_least}"
    return f" <= {at_most}" if at_most is not None else ""


def _shown(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 80 else text[:77] + "..."
