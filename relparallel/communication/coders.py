"""Bits that codes for whole numbers take: Elias's omega code for any, Golomb's for gaps between positions."""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import bare, require_real

_GOLDEN: Final = (np.sqrt(5) + 1) / 2


def golomb_bits(density: ArrayLike) -> Any:
    """Return the mean bits of the position of a sent number, Golomb-coded by the gap before it.

    Parameters
    ----------
    density : array_like
        Share p of the numbers that are sent, each independently, in (0, 1).

    Returns
    -------
    float or numpy.ndarray
        b + 1/(1 - (1 - p)**2**b) with b = 1 + floor(log2(log(phi - 1)/log(1 - p))), at least 0, and the
        golden ratio phi. Sattler et al., "Sparse Binary Compression", IJCNN 2019, equation 5.

    Examples
    --------
    >>> round(golomb_bits(density=0.001), 3)
    11.495
    """
    p = np.asarray(require_real(density=density, above=0, below=1))
    b = golomb_parameter(p)
    return bare(b - 1 / np.expm1(2.0**b * np.log1p(-p)))


def golomb_parameter(density: Any) -> NDArray[np.float64]:
    """Bits b of the remainder: gaps are counted in units of 2**b."""
    units = np.log(_GOLDEN - 1) / np.log1p(-np.asarray(density))
    return np.asarray(np.maximum(1 + np.floor(np.log2(units)), 0.0))


def golomb_lengths(gaps: NDArray[np.int64], b: int) -> NDArray[np.int64]:
    """Bits of every gap from 1 on: the whole units in ones, a zero, the rest in b bits."""
    return np.asarray((gaps - 1) // 2**b + 1 + b)


def elias_lengths(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Bits of every number from 1 on: its binary digits, before them how many less one, ..., a zero."""
    left = np.asarray(numbers, dtype=np.float64)
    bits = np.ones(left.shape, dtype=np.int64)
    while np.any(left > 1):  # Elias, IEEE Trans. Inf. Theory 21(2), 1975
        digits = np.where(left > 1, np.frexp(left)[1], 0)
        bits += digits
        left = np.maximum(digits - 1.0, 1.0)
    return bits
