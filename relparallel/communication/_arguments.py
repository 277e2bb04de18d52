"""Arguments of this package: functions, and arrays that go together."""

from __future__ import annotations

from typing import Any

import numpy as np


def require_callable(**named: Any) -> None:
    """Refuse what cannot be called."""
    for name, value in named.items():
        if not callable(value):
            raise TypeError(f"{name} must be a function, got {value!r}")


def require_broadcast(**named: Any) -> None:
    """Refuse arrays whose shapes do not broadcast against each other."""
    shapes = {name: np.shape(value) for name, value in named.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{', '.join(shapes)} must have shapes that broadcast, got {given}") from None
