"""Arguments of this package: functions, single numbers, and arrays that go together."""

from __future__ import annotations

from typing import Any

import numpy as np

from relparallel._checks import require_real


def require_callable(**named: Any) -> None:
    """Refuse what cannot be called."""
    for name, value in named.items():
        if not callable(value):
            raise TypeError(f"{name} must be a function, got {value!r}")


def require_number(
    *, above: float | None = None, at_least: float | None = None, below: float | None = None, **named: Any
) -> float:
    """Return the one named argument as a float; arrays are refused."""
    ((name, value),) = named.items()
    number = require_real(above=above, at_least=at_least, below=below, **named)
    if not isinstance(number, float):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return number


def require_broadcast(**named: Any) -> None:
    """Refuse arrays whose shapes do not broadcast against each other."""
    shapes = {name: np.shape(value) for name, value in named.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{', '.join(shapes)} must have shapes that broadcast, got {given}") from None
