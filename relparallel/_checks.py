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
from typing import Any

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
    allowed = "an integer" + _range(at_least, at_most)
    return _each(named, lambda name, value: _integer(name, value, allowed, at_least, at_most))


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
    bounds = {">": above, ">=": at_least, "<": below, "<=": at_most}
    return _each(named, lambda name, value: _real(name, value, None, bounds, infinite))


def require_probability(**named: Any) -> Any:
    """Return the named arguments as floats (arrays as float64 arrays) inside [0, 1].

    Examples
    --------
    >>> require_probability(link_up=0.99)
    0.99
    """
    return _each(
        named,
        lambda name, value: _real(name, value, "a probability in [0, 1]", {">=": 0.0, "<=": 1.0}, False),
    )


def require_choice(allowed: Collection[Any], /, **named: Any) -> Any:
    """Return the named arguments if each is one of ``allowed``.

    Examples
    --------
    >>> require_choice(("young", "daly"), method="young")
    'young'
    """

    def check(name: str, value: Any) -> Any:
        if not any(type(value) is type(option) and value == option for option in allowed):
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {_shown(value)}")
        return value

    return _each(named, check)


def require_flag(**named: Any) -> Any:
    """Return the named arguments if each is True or False."""

    def check(name: str, value: Any) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {_shown(value)}")
        return bool(value)

    return _each(named, check)


def require_instance(kind: type | tuple[type, ...], /, **named: Any) -> Any:
    """Return the named arguments if each is an instance of ``kind``."""
    kinds = kind if isinstance(kind, tuple) else (kind,)

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{name} must be {' or '.join(k.__name__ for k in kinds)}, got {_shown(value)}")
        return value

    return _each(named, check)


def require_rng(**named: Any) -> Any:
    """Return the named arguments if each is a ``numpy.random.Generator``."""
    return require_instance(np.random.Generator, **named)


def _each(named: dict[str, Any], check: Any) -> Any:
    """Check every named value; one value comes back bare, several as a tuple in the order given."""
    values = [check(name, value) for name, value in named.items()]
    return values[0] if len(values) == 1 else tuple(values)


def _integer(name: str, value: Any, allowed: str, at_least: int | None, at_most: int | None) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {allowed}, got {_shown(value)}") from None
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number


_COMPARE = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
_PLAIN = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def _real(name: str, value: Any, allowed: str | None, bounds: dict[str, float | None], infinite: bool) -> Any:
    """The value as a float or a float64 array; ``allowed`` says what the bounds are, None: the bounds."""
    if type(value) is float and math.isfinite(value):  # most values: without the detour through an array
        for sign, bound in bounds.items():
            if bound is not None and not _PLAIN[sign](value, bound):
                break
        else:
            return value
    allowed = allowed or "a number" + " and".join(f" {s} {b:g}" for s, b in bounds.items() if b is not None)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.size == 0 or np.ma.is_masked(value):  # a mask would be lost
        raise TypeError(f"{name} must be {allowed}, got {_shown(value)}")
    array = array.astype(np.float64)
    good = ~np.isnan(array) if infinite else np.isfinite(array)
    for sign, bound in bounds.items():
        if bound is not None:
            good &= _COMPARE[sign](array, bound)
    if not good.all():
        raise ValueError(f"{name} must be {allowed}, got {_shown(array[~good].flat[0])}")
    return float(array) if array.ndim == 0 else array


def _range(at_least: float | None, at_most: float | None) -> str:
    if at_least is not None and at_most is not None:
        return f" in [{at_least}, {at_most}]"
    if at_least is not None:
        return f" >= {at_least}"
    return f" <= {at_most}" if at_most is not None else ""


def _shown(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 80 else text[:77] + "..."
