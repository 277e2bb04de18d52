"""What a number format costs and loses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_real,
)
from relparallel.workload.precision import FORMATS, NumberFormat


def state_bytes_per_parameter(
    weights: str = "fp16", gradients: str = "fp16", *, master: bool = True, moments: int = 2
) -> int:
    """Bytes that training keeps for every parameter.

    Parameters
    ----------
    weights, gradients : str
        Formats of `FORMATS`.
    master : bool
        Whether a copy of the weights is kept in fp32 for the update.
    moments : int
        Numbers in fp32 that the optimizer keeps: 2 for Adam, 1 for momentum, 0 for plain descent.

    Returns
    -------
    int
        Bytes; 16 for mixed precision with Adam. Micikevicius et al., "Mixed Precision Training",
        2018, section 3.1. Rajbhandari et al., "ZeRO", 2020, section 3.1.

    Examples
    --------
    >>> state_bytes_per_parameter(), state_bytes_per_parameter("fp32", "fp32", master=False)
    (16, 16)
    """
    require_choice(FORMATS, weights=weights)
    require_choice(FORMATS, gradients=gradients)
    require_flag(master=master)
    kept = int(require_int(moments=moments, at_least=0, at_most=100))
    return FORMATS[weights].bytes + FORMATS[gradients].bytes + 4 * master + 4 * kept


def lost_gradients(
    scale: Any, mean: float, deviation: float, number: NumberFormat = FORMATS["fp16"]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of gradient values that a format turns into zero, and into infinity.

    Parameters
    ----------
    scale, mean, deviation : float or array, float, float
        Factor S on the loss, and so on every gradient; mean and standard deviation of the decimal
        logarithm of their magnitudes, which is normal.
    number : NumberFormat
        What holds them.

    Returns
    -------
    underflow, overflow : arrays
        Phi((log x0/(2 S) - mean) / deviation) and 1 - Phi((log x1/S - mean) / deviation), x0 and x1
        being the smallest subnormal and the largest number. Micikevicius et al., 2018, section 3.2
        and figure 3.

    Examples
    --------
    >>> under, over = lost_gradients([1, 8], mean=-6, deviation=1.5)
    >>> under.round(4)
    array([0.1545, 0.0527])
    """
    from scipy.special import ndtr

    S = np.asarray(require_real(scale=scale, above=0, at_most=1e300))
    mu, sigma = require_real(mean=mean), require_real(deviation=deviation, above=0)
    require_instance(NumberFormat, number=number)
    low, high = np.log10(number.smallest / 2 / S), np.log10(number.largest / S)
    return np.asarray(ndtr((low - mu) / sigma)), np.asarray(ndtr((mu - high) / sigma))
