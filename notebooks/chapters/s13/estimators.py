"""Every estimator of a small unreliability on one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import ndtri

from relparallel.reliability.bounding.cut_families import TINY
from relparallel.reliability.problem import LinkChance, Terminals
from relparallel.reliability.sampling.estimation import SAMPLED, estimate
from relparallel.reliability.sampling.moments import Estimator
from relparallel.topology import Topology

_CONFIDENCE: Final = 0.95


def estimator_table(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance = 1.0,
    *,
    rng: np.random.Generator,
    methods: Sequence[Estimator] = SAMPLED,
    samples: int = 1000,
) -> pd.DataFrame:
    """Accuracy against work of several estimators on one network, one row per method.

    Columns are those of `UnreliabilityEstimate.to_frame`, ``work_per_sample``, and its product with
    the relative variance of one sample ``work_variance``: the less the better. The network and the
    interval are as in `estimate`.

    >>> import networkx as nx
    >>> table = estimator_table(nx.petersen_graph(), "all", 0.99, rng=np.random.default_rng(1))
    >>> bool(table.set_index("method").work_variance["recursive"] < 1e3)
    True
    """
    rows = []
    for method in methods:
        found = estimate(
            graph,
            terminals,
            link_up,
            method=method,
            rng=rng,
            samples=samples,
            confidence=_CONFIDENCE,
        )
        row = found.to_frame()
        row["work_per_sample"] = found.work / max(found.samples, 1)
        quantile = float(ndtri((1 + _CONFIDENCE) / 2))
        spread = (found.relative_error - found.bias_bound / max(found.value, TINY)) / quantile
        row["work_variance"] = spread**2 * found.work
        rows.append(row)
    return pd.concat(rows, ignore_index=True)
