"""The square-root law of spares."""

import math
from typing import Any

import numpy as np
import scipy

from relparallel._checks import bare, require_choice, require_real
from relparallel.training._arguments import Real
from relparallel.training.spares import KINDS


def spares_law(load: Real, shortage: Real, kind: str = "cold") -> Real:
    """Square-root rule for the number of spares: rho + z sqrt(rho), the normal limit of Poisson.

    Of ``load`` rho = N lam r nodes under repair on average, and the admitted share of time with a
    shortage, in (0, 1/2]. Hot: P(Z > z) = shortage for a standard normal Z. Cold: density(z) / P(Z
    < z) = shortage sqrt(rho), because failures stop during a shortage. For shortages from 1e-6 to
    1e-2 and loads from 0.1 to 10,000 it is at most 3 (cold) or 6 (hot, a million nodes) from
    `spares_needed`. Hot: Whitt, Management Science 38, 1992. Cold: Jagerman, Bell System Technical
    Journal 53, 1974.

    >>> np.round(spares_law(3.79e-3 * np.array([128, 2048, 12500]), shortage=1e-3), 1).tolist()
    [3.0, 16.5, 67.0]
    """
    require_choice(KINDS, kind=kind)
    root, allowed = (
        np.sqrt(np.asarray(load)),
        np.asarray(require_real(shortage=shortage, above=0, at_most=0.5)),
    )
    return bare(
        root**2
        + (_loss_quantile(allowed * root) if kind == "cold" else -scipy.special.ndtri(allowed))
        * root
    )


def _loss_quantile(hazard: Any) -> Any:
    """Where density(z) / P(Z < z) of a standard normal falls to a value."""
    from scipy.optimize.elementwise import find_root

    def above(z: Any, wanted: Any) -> Any:
        return -(z**2) / 2 - scipy.special.log_ndtr(z) - wanted

    with np.errstate(divide="ignore"):
        wanted = np.maximum(np.log(hazard * math.sqrt(2 * math.pi)), -800.0)
    return find_root(above, (-1 - hazard, 40.0), args=(wanted,)).x
