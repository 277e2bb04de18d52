"""What the choices share: one number, checked."""

from typing import Any

import numpy as np

from relparallel._checks import require_real


def one_number(name: str, value: Any, **bounds: float) -> float:
    """The value as one number inside the bounds of `require_real`."""
    checked = require_real(**{name: value}, **bounds)  # type: ignore[arg-type]
    if np.ndim(checked):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return float(checked)
