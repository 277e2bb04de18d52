"""Which class of parts decides: importance measures of component classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["importance"]


def importance(
    names: Sequence[str],
    rates: NDArray[np.float64],
    interrupts: NDArray[np.bool_],
    elasticities: NDArray[np.float64],
    goodput: float,
) -> pd.DataFrame:
    """Table of importance by class from the elasticities of its kinds of parts.

    Parameters
    ----------
    names : sequence of str
        Class of every kind of parts; a class may have several.
    rates : numpy.ndarray
        Failures of a kind per second, above 0.
    interrupts : numpy.ndarray
        Whether a failure interrupts the job.
    elasticities : numpy.ndarray
        d ln goodput / d ln rate of a kind.
    goodput : float
        The goodput.

    Returns
    -------
    pandas.DataFrame
        Index class; columns ``rate`` [1/s], ``interrupts``, ``elasticity``, ``share`` (of the sum of all
        elasticities) and ``birnbaum``: productive seconds that one more failure costs.

    Notes
    -----
    Elasticities of the kinds of a class add. Birnbaum's measure is the derivative of the goodput by the
    probability that a part fails; here by the rate: -goodput * elasticity / rate, in seconds.

    References
    ----------
    Birnbaum, "On the importance of different components in a multicomponent system", 1969.

    Examples
    --------
    >>> import numpy as np
    >>> table = importance(["GPU", "rack"], np.array([2e-5, 1e-6]), np.array([True, True]),
    ...                    np.array([-0.03, -0.01]), goodput=0.9)
    >>> table["share"].tolist(), table["birnbaum"].round(1).tolist()
    ([0.75, 0.25], [1350.0, 9000.0])
    """
    import pandas as pd

    classes = {name: place for place, name in enumerate(dict.fromkeys(names))}
    kind = np.array([classes[name] for name in names], dtype=np.int64)
    rate, elasticity = (np.bincount(kind, values, len(classes)) for values in (rates, elasticities))
    total = elasticity.sum()
    columns = {
        "rate": rate,
        "interrupts": np.bincount(kind, interrupts, len(classes)) > 0,
        "elasticity": elasticity,
        "share": elasticity / total if total else np.zeros(len(classes)),
        "birnbaum": -goodput * elasticity / rate,
    }
    return pd.DataFrame(columns, index=list(classes))
