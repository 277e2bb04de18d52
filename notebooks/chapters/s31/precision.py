"""What a number format costs and loses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relparallel.workload.precision import FORMATS, NumberFormat


def state_bytes_per_parameter(
    weights: str = "fp16", gradients: str = "fp16", *, master: bool = True, moments: int = 2
) -> int:
    """Bytes that training keeps for every parameter, 16 for mixed precision with Adam.

    Weights and gradients in formats of `FORMATS`; with ``master`` a copy of the weights in fp32 for
    the update; ``moments`` in fp32 of the optimizer: 2 for Adam, 1 for momentum, 0 for plain
    descent. Micikevicius et al., "Mixed Precision Training", 2018, section 3.1. Rajbhandari et al.,
    "ZeRO", 2020, section 3.1.

    >>> state_bytes_per_parameter(), state_bytes_per_parameter("fp32", "fp32", master=False)
    (16, 16)
    """
    return FORMATS[weights].bytes + FORMATS[gradients].bytes + 4 * master + 4 * moments


def lost_gradients(
    scale: Any, mean: float, deviation: float, number: NumberFormat = FORMATS["fp16"]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of gradient values that a format turns into zero, and into infinity.

    The decimal logarithm of their magnitudes is normal with this mean and deviation; the factor S
    (``scale``) is on the loss, and so on every gradient. Phi((log x0/(2 S) - mean) / deviation) and
    1 - Phi((log x1/S - mean) / deviation), x0 and x1 being the smallest subnormal and the largest
    number. Micikevicius et al., 2018, section 3.2 and figure 3.

    >>> under, over = lost_gradients([1, 8], mean=-6, deviation=1.5)
    >>> under.round(4)
    array([0.1545, 0.0527])
    """
    from scipy.special import ndtr

    S, mu, sigma = np.asarray(scale), mean, deviation
    low, high = np.log10(number.smallest / 2 / S), np.log10(number.largest / S)
    return np.asarray(ndtr((low - mu) / sigma)), np.asarray(ndtr((mu - high) / sigma))
