"""Checkpoints of a whole job: what one costs, and how often to write it.

The job computes W seconds, writes a checkpoint in C seconds, and so on. Failures strike at rate 1/M, while
it computes, writes and restarts. A failure costs D seconds of standstill, R seconds of restart and all work
since the last checkpoint.

========  ==================================================  ================
letter    meaning                                             argument
========  ==================================================  ================
W         work between two checkpoints [s]                    ``interval``
C         blocking time of one checkpoint [s]                 ``checkpoint``
M         mean time between failures of the job [s]           ``mtbf``
R         restart: load the checkpoint, warm up [s]           ``restart``
D         down: nothing runs and nothing fails [s]            ``down``
========  ==================================================  ================

Every function broadcasts over its arguments.
"""

from typing import Final

import numpy as np

from relparallel._checks import require_choice, require_real
from relparallel.training._arguments import Real, plain, require_time, require_together

METHODS: Final = ("exact", "daly", "young")


def checkpoint_time(parameters: Real, bandwidth: Real, bytes_per_parameter: Real = 14.0) -> Real:
    """Blocking time to write the training state of a model.

    Parameters
    ----------
    parameters : float or array
        Parameters of the model.
    bandwidth : float or array
        Rate at which the job as a whole writes [bytes/s].
    bytes_per_parameter : float or array
        14 with Adam in mixed precision: 2 for the weights, 4 each for master weights and two moments.

    Returns
    -------
    float or numpy.ndarray
        Time C of one checkpoint [s]; no gradients, each byte once, whatever the number of replicas.

    References
    ----------
    Rajbhandari et al., "ZeRO", SC 2020, section 3.1: 2 + 2 + 12 bytes, gradients included.

    Examples
    --------
    >>> round(checkpoint_time(parameters=1.008e12, bandwidth=57.5e9), 1)
    245.4
    """
    require_real(parameters=parameters, at_least=1.0, at_most=1e18)
    require_real(bandwidth=bandwidth, at_least=1.0, at_most=1e18)
    require_real(bytes_per_parameter=bytes_per_parameter, above=0.0, at_most=1e3)
    require_together(parameters=parameters, bandwidth=bandwidth, bytes_per_parameter=bytes_per_parameter)
    return plain(np.multiply(parameters, bytes_per_parameter) / bandwidth)


def checkpoint_interval(checkpoint: Real, mtbf: Real, method: str = "exact") -> Real:
    """Work between two checkpoints that makes the expected time per unit of work smallest.

    Parameters
    ----------
    checkpoint : float or array
        Blocking time C of one checkpoint [s].
    mtbf : float or array
        Mean time M between failures of the job [s].
    method : {"exact", "daly", "young"}
        Optimum of the exact model, or one of its two classical approximations.

    Returns
    -------
    float or numpy.ndarray
        Interval W [s], not counting the checkpoint itself.

    Notes
    -----
    Exact: W = M (1 + W_0(-e^{-1-C/M})) with Lambert's W_0, whatever R and D are. With s = sqrt(2C/M) its
    series is M (s - s^2/3 + s^3/36 + s^4/270 + ...): Young keeps the first term, Daly the first three.
    Close to the branch point, where W_0 loses half its digits, the series is summed instead; the relative
    error stays below 1e-13.

    References
    ----------
    Young, Commun. ACM 17(9), 1974. Daly, Future Gener. Comput. Syst. 22(3), 2006, eq. 37.

    Examples
    --------
    >>> [round(float(checkpoint_interval(60, 10800, m)), 3) for m in ("young", "daly", "exact")]
    [1138.42, 1098.771, 1098.776]
    """
    checkpoint, mtbf = require_time(checkpoint=checkpoint), require_time(mtbf=mtbf, positive=True)
    require_choice(METHODS, method=method)
    require_together(checkpoint=checkpoint, mtbf=mtbf)
    if method == "exact":
        return plain(mtbf * lost_share(checkpoint / mtbf))
    s = np.sqrt(2 * checkpoint / mtbf)
    if method == "young":
        return plain(mtbf * s)
    return (
        mtbf * np.where(s < 2, s - s**2 / 3 + s**3 / 36, 1.0)[()]
    )  # Daly 2006, eq. 37: W = M from C = 2M on


def lost_share(ratio: Real) -> Real:
    """Optimal W/M for a given C/M: the root y of -log(1 - y) - y = C/M."""
    from scipy.special import lambertw

    ratio = np.asarray(ratio, dtype=np.float64)
    s = np.sqrt(2 * ratio)
    near = s * np.polynomial.polynomial.polyval(np.minimum(s, 0.1), _SERIES)
    far = 1 + lambertw(-np.exp(-1 - np.maximum(ratio, 0.005))).real
    return np.where(s < 0.1, near, far)[()]


# W/M in powers of s = sqrt(2C/M), from s on: minus Temme's expansion of lambda - 1 - log(lambda) = s^2/2.
_SERIES: Final = (
    1.0, -1 / 3, 1 / 36, 1 / 270, 1 / 4320, -1 / 17010, -139 / 5443200, -1 / 204120, -571 / 2351462400,
)  # fmt: skip


def availability_optimal_interval(checkpoint: Real, mtbf: Real, restart: Real) -> Real:
    """Time between checkpoints that maximises a first-order availability, restart included.

    References
    ----------
    Saxena et al., arXiv:2410.18124, 2024.
    """
    checkpoint, restart = require_time(checkpoint=checkpoint, restart=restart)
    mtbf = require_time(mtbf=mtbf, positive=True)
    require_together(checkpoint=checkpoint, mtbf=mtbf, restart=restart)
    return plain(checkpoint + np.sqrt(2 * (mtbf + restart) * checkpoint + checkpoint**2))
