"""Means of independent replications with Student's interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from relparallel.metrics import Estimate


def mean_interval(values: Any) -> Estimate:
    """Mean of independent, equally distributed values with its 95 % interval."""
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=np.float64)
    mean = float(values.mean())
    half = float(stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / np.sqrt(values.size))
    told = f"mean of {values.size} replications, 95 % confidence"
    return Estimate(value=mean, lower=mean - half, upper=mean + half, method=told, exact=False)
