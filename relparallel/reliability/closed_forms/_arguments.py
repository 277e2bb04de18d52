"""Arguments that closed forms share: single probabilities and the half radix of a fat-tree."""

from typing import Any

import numpy as np

from relparallel._checks import require_int, require_probability


def half_radix(k: int, at_most: int = 256) -> int:
    """Switches per group of a k-ary fat-tree."""
    require_int(k=k, at_least=2, at_most=at_most)
    if k % 2:
        raise ValueError(f"k must be an even integer in [2, {at_most}], got {k}")
    return k // 2


def single_probabilities(**named: Any) -> tuple[float, ...]:
    """The named arguments, each of them one probability."""
    for name, value in named.items():
        if np.ndim(require_probability(**{name: value})):
            raise TypeError(f"{name} must be one probability, got an array of shape {np.shape(value)}")
    return tuple(map(float, named.values()))
