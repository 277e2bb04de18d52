"""Which class of parts decides: importance measures of component classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


def importance(
    names: Sequence[str],
    rates: NDArray[np.float64],
    interrupts: NDArray[np.bool_],
    elasticities: NDArray[np.float64],
    goodput: float,
) -> pd.DataFrame:
    """Table of importance by class from the elasticities of its kinds of parts.

    Notes
    -----
    Elasticities of the kinds of a class add. Birnbaum's measure is the derivative of the goodput by the
    probability that a part fails; here by the rate: -goodput * elasticity / rate, in seconds.

    References
    ----------
    Birnbaum, "On the importance of different components in a multicomponent system", 1969.
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
