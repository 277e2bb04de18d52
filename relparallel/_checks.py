"""Argument checks: every refusal names the argument, the value and what is allowed.

Each function takes the arguments to check as keywords, so the name in the message is the name in
the caller's signature, and returns the checked value (a tuple of them when several are given);
arrays are checked element by element and come back as float64 (or int64) arrays::

    stages = require_int(stages=stages, at_least=1)

What users build is a `record`: a frozen keyword-only dataclass whose fields carry their range::

    @record
    class Level:
        copies: int = whole(at_least=1)
        cost: float = real(at_least=0)
        kind: str = choice(("local", "remote"), default="local")

A field with ``default=None`` also takes None. A ``__post_init__`` of the class runs after these
checks, for what concerns several fields. What only functions build checks nothing: where it has a
table or a picture of its own it is a frozen dataclass with the base `Result`, which says in a line
what was found; two or three numbers are a NamedTuple.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Final, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from relparallel._tables import latex_table

MOST_BYTES: Final = 1024.0  # of one number, in any format
MOST_DEVICES: Final = 2**24  # more than any cluster has
_MANY, _LONGEST = 24, 280  # names that a message lists, characters of the line of a result

if TYPE_CHECKING:
    import pandas as pd


def require_int(*, at_least: int | None = None, at_most: int | None = None, **named: Any) -> Any:
    """Return the named arguments as Python integers inside [at_least, at_most]."""
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
    """
    return _each(named, _real, (above, at_least, below, at_most), infinite)


def require_probability(**named: Any) -> Any:
    """Return the named arguments as floats (arrays as float64 arrays) inside [0, 1]."""
    return _each(named, _real, _UNIT, False, "a probability in [0, 1]")


def require_choice(allowed: Collection[Any], /, **named: Any) -> Any:
    """Return the named arguments if each is one of ``allowed``."""
    return _each(named, _choice, allowed)


def require_flag(**named: Any) -> Any:
    """Return the named arguments if each is True or False."""
    return _each(named, _flag)


def require_instance(kind: Any, /, **named: Any) -> Any:
    """Return the named arguments if each is an instance of ``kind``."""
    return _each(named, _instance, kind)


def require_rng(**named: Any) -> Any:
    """Return the named arguments if each is a ``numpy.random.Generator``."""
    return _each(named, _generator)


def require_number(
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    infinite: bool = False,
    **named: Any,
) -> Any:
    """Return the named arguments as floats; arrays are refused."""
    return _each(named, _number, (above, at_least, below, at_most), infinite)


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
    *, at_least: float, at_most: float = 2.0**53, infinite: bool = False, **named: Any
) -> Any:
    """Return named arguments, numbers or arrays, as float64 arrays of whole numbers <= 2**53."""
    checked = []
    for name, value in named.items():
        number = require_real(at_least=at_least, infinite=infinite, **{name: value})
        finite: dict[str, Any] = {name: np.where(np.isinf(number), at_most, number)}
        require_real(at_most=at_most, **finite)
        if np.any(number != np.floor(number)):
            raise ValueError(f"{name} must be whole, got {value!r}")
        checked.append(np.asarray(number))
    return checked[0] if len(checked) == 1 else checked


def bare(values: Any) -> float | NDArray[np.float64]:
    """Return an array of one number as a float, any other array as it is."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def require_broadcast(**named: Any) -> None:
    """Refuse arrays whose shapes do not broadcast against each other."""
    shapes = {name: np.shape(value) for name, value in named.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ValueError(
            f"{', '.join(shapes)} must have shapes that broadcast, got {given}"
        ) from None


def _each(named: dict[str, Any], check: Any, *allowed: Any) -> Any:
    """Check every named value; one value comes back bare, several as a tuple in the order given."""
    values = [check(name, value, *allowed) for name, value in named.items()]
    return values[0] if len(values) == 1 else tuple(values)


def _choice(name: str, value: Any, allowed: Collection[Any]) -> Any:
    for option in allowed:
        if value is option or (type(value) is type(option) and value == option):
            return value
    raise ValueError(f"{name} must be {among(allowed, value)}")


def among(allowed: Collection[Any], value: Any) -> str:
    """Say what is allowed, what was given and what may be meant; of many names only the first."""
    every = ", ".join([*map(repr, list(allowed)[:_MANY]), *["..."] * (len(allowed) > _MANY)])
    return f"one of {every}, got {_shown(value)}{meant(allowed, value)}"


def meant(allowed: Collection[Any], value: Any) -> str:
    """Names that hold what was given, else the closest, as a question; empty if none is close."""
    names, text = {str(one).lower(): one for one in allowed}, str(value).lower()
    close = [name for name in names if text in name] if len(text) > 2 else []
    close = [repr(names[name]) for name in (close or get_close_matches(text, names))[:3]]
    return f"; did you mean {' or '.join(close)}?" if close and isinstance(value, str) else ""


def _generator(name: str, value: Any) -> np.random.Generator:
    if isinstance(value, np.random.Generator):
        return value
    raise TypeError(
        f"{name} must be Generator from numpy.random.default_rng(seed), got {_shown(value)}"
    )


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def _instance(name: str, value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise TypeError(
            f"{name} must be {' or '.join(k.__name__ for k in kinds)}, got {_shown(value)}"
        )
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


# above, at least, below, at most
Bounds = tuple[float | None, float | None, float | None, float | None]

_UNIT: Final[Bounds] = (None, 0.0, None, 1.0)
_SIGNS: Final = (">", ">=", "<", "<=")
_COMPARE: Final = (np.greater, np.greater_equal, np.less, np.less_equal)


def _real(name: str, value: Any, bounds: Bounds, infinite: bool, allowed: str | None = None) -> Any:
    """The value as a float or float64 array; ``allowed``: the bounds in words, None: in numbers."""
    # most values: without the detour through an array
    if type(value) is float and _inside(value, *bounds):
        return value
    given = [(sign, bound) for sign, bound in zip(_SIGNS, bounds, strict=True) if bound is not None]
    allowed = allowed or "a number" + " and".join(f" {sign} {bound:g}" for sign, bound in given)
    array = np.asarray(value)
    # a mask would be lost
    if array.dtype.kind not in "iuf" or array.size == 0 or np.ma.is_masked(value):
        raise TypeError(f"{name} must be {allowed}, got {_shown(value)}")
    array = array.astype(np.float64)
    good = ~np.isnan(array) if infinite else np.isfinite(array)
    for compare, bound in zip(_COMPARE, bounds, strict=True):
        if bound is not None:
            good &= compare(array, bound)
    if not good.all():
        raise ValueError(f"{name} must be {allowed}, got {_shown(array[~good].flat[0])}")
    return float(array) if array.ndim == 0 else array


def _number(name: str, value: Any, bounds: Bounds, infinite: bool) -> float:
    number = _real(name, value, bounds, infinite)
    if not isinstance(number, float):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return number


def _inside(
    value: float,
    above: float | None,
    at_least: float | None,
    below: float | None,
    at_most: float | None,
) -> bool:
    """Whether a number is finite and keeps the bounds."""
    return (
        -math.inf < value < math.inf
        and (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (below is None or value < below)
        and (at_most is None or value <= at_most)
    )


def _range(at_least: int | None, at_most: int | None) -> str:
    if at_least is None:
        return "" if at_most is None else f" <= {at_most}"
    return f" >= {at_least}" if at_most is None else f" in [{at_least}, {at_most}]"


def _shown(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def _field(check: Callable[..., Any], default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"check": check})


def whole(*, default: Any = dataclasses.MISSING, **bounds: int | None) -> Any:
    """Field of a `record`: an integer inside the bounds of `require_int`."""
    return _field(partial(require_int, **bounds), default)


def real(*, default: Any = dataclasses.MISSING, **bounds: Any) -> Any:
    """Field of a `record`: one number inside the bounds of `require_real`."""
    return _field(partial(require_number, **bounds), default)


def reals(*, default: Any = dataclasses.MISSING, **bounds: Any) -> Any:
    """Field of a `record`: a number or an array of them inside the bounds of `require_real`."""
    return _field(partial(require_real, **bounds), default)


def choice(allowed: Collection[Any], *, default: Any = dataclasses.MISSING) -> Any:
    """Field of a `record`: one of ``allowed``."""
    return _field(partial(require_choice, allowed), default)


def flag(*, default: Any = dataclasses.MISSING) -> Any:
    """Field of a `record`: True or False."""
    return _field(require_flag, default)


def instance(kind: type | tuple[type, ...], *, default: Any = dataclasses.MISSING) -> Any:
    """Field of a `record`: an instance of ``kind``."""
    return _field(partial(require_instance, kind), default)


def each(kind: type | tuple[type, ...], *, default: Any = dataclasses.MISSING) -> Any:
    """Field of a `record`: a tuple of instances of ``kind``."""
    return _field(partial(_tuple_of, kind), default)


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(whole, real, reals, choice, flag, instance, each),
)
def record(cls: Any = None, /, *, eq: bool = True, slots: bool = True) -> Any:
    """Make a frozen keyword-only dataclass that checks the fields that carry a range.

    Examples
    --------
    >>> @record
    ... class Level:
    ...     copies: int = whole(at_least=1)
    >>> Level(copies=0)
    Traceback (most recent call last):
    ...
    ValueError: copies must be an integer >= 1, got 0
    """
    if cls is None:
        return partial(record, eq=eq, slots=slots)
    own: Callable[[Any], None] | None = cls.__dict__.get("__post_init__")

    def checked(self: Any) -> None:
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if "check" in entry.metadata and not (value is None and entry.default is None):
                entry.metadata["check"](**{entry.name: value})
        if own is not None:
            own(self)

    cls.__post_init__ = checked
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _line
    return dataclasses.dataclass(frozen=True, kw_only=True, eq=eq, slots=slots)(cls)


def _tuple_of(kind: type | tuple[type, ...], **named: Any) -> None:
    """Refuse what is not a tuple of instances."""
    for name, values in named.items():
        for value in require_instance(tuple, **{name: values}):
            require_instance(kind, **{name: value})


def _told(self: Any) -> str:
    """Fields that differ from their defaults, by name."""
    found = [(entry, getattr(self, entry.name)) for entry in dataclasses.fields(self) if entry.repr]
    return ", ".join(f"{e.name}={_brief(v)}" for e, v in found if _brief(v) != _brief(e.default))


class Result:
    """What a function found, as a line, a table, and LaTeX; a base for frozen dataclasses.

    The line names the fields, arrays by their size and range; `_said` may say it in words, with
    unit, interval and method. The table has a row for each field, unless a result has a table of
    its own.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Keep the short line: a dataclass would show its arrays in full."""
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _line  # type: ignore[method-assign]

    _said = _told

    def to_frame(self) -> pd.DataFrame:
        """One row for each field."""
        import pandas as pd

        rows = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}  # type: ignore[arg-type]
        plain = {
            name: value if np.isscalar(value) else _brief(value) for name, value in rows.items()
        }
        return pd.Series(plain, dtype=object).to_frame("value")

    def to_latex(self) -> str:
        """The table as a ``longtable`` with ``booktabs`` rules, numbers to six digits."""
        return latex_table(self.to_frame())

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(float_format="{:.6g}".format, max_rows=20)
        return f"<p>{escape(repr(self))}</p>{table}"


def _line(self: Any) -> str:
    """The line of a result or of a record."""
    said = self._said() if isinstance(self, Result) else _told(self)
    return f"{type(self).__name__}({said if len(said) <= _LONGEST else said[: _LONGEST - 1] + '…'})"


def _brief(value: Any) -> str:
    """A value in a few words: numbers to six digits, collections by size where they are long."""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray) and value.size > 4 and value.dtype.kind in "iuf":
        return f"<{value.size} numbers from {value.min():.6g} to {value.max():.6g}>"
    text = " ".join(
        repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value).split()
    )
    if len(text) <= 60 and "array(" not in text and " at 0x" not in text:
        return text
    if isinstance(value, str):
        return text[:59] + "…"
    size = f"{len(value)} " if isinstance(value, Collection) else ""
    return f"<{size}{type(value).__name__}>"
