"""Nodes that fail at unequal rates: what their counts say of the rates, and who should go.

The rate of a node is drawn from a gamma distribution of the fleet, its failures are Poisson:
counts have a negative binomial distribution, and given its count c_j of a window the rate of a node
has a gamma distribution of shape alpha + c_j. With mean count m the estimate of a node is shrunk to
the fleet by B = alpha / (alpha + m): 1 where all nodes are equal. The share of future failures that
a set of nodes has is a beta variable, whatever the rate of the fleet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import Result, require_int
from relparallel.metrics import Estimate
from relparallel.training.outages import Outages

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# B with a flat prior (Christiansen and Morris, JASA 92, 1997): no fleet is known to be equal
_SHRINKAGE: Final = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstNodes(Result):
    """What the nodes that failed most have of all failures; see `FailureLog.worst_nodes`."""

    nodes: tuple[str, ...]
    failures: tuple[int, ...]
    rates: tuple[float, ...]  # expected, over that of the mean node
    raw: float  # share of the failures of the log
    saved: Estimate  # share of the failures to come: posterior mean and 95 % interval
    equal: float  # the same where all nodes are equal
    shrinkage: float  # B, posterior mean: 0 each node by its own count, 1 all equal
    promised: Estimate  # the same of the nodes that failed most in the first half of the window
    kept: float  # what those had of the second half
    held_out: float  # nats per failure of the second half gained over equal rates

    def _said(self) -> str:
        saved, promised = self.saved, self.promised
        return (
            f"{len(self.nodes)} nodes that failed most: {100 * saved.value:.3g} % of the failures "
            f"to come ({100 * saved.lower:.3g} to {100 * saved.upper:.3g}), "
            f"{100 * self.raw:.3g} % of the log, {100 * self.equal:.3g} % if nodes are equal; "
            f"promised by the first half {100 * promised.value:.3g} %, had in the second "
            f"{100 * self.kept:.3g} %"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per node: failures, and its expected rate over that of the mean node."""
        import pandas as pd

        columns = {"failures": self.failures, "rate": self.rates}
        return pd.DataFrame(columns, index=list(self.nodes))


def worst_nodes(own: Outages, names: NDArray[np.str_], count: int) -> WorstNodes:
    """See `FailureLog.worst_nodes`."""
    require_int(count=count, at_least=1, at_most=own.nodes)
    early, node = own.start[0] < own.span / 2, own.node[0]
    before, after = (np.bincount(node[half], minlength=len(names)) for half in (early, ~early))
    if not before.any() or not after.any():
        raise ValueError("start must lie in both halves of the window, got failures in one alone")
    failures, nodes = before + after, own.nodes
    worst = np.argsort(-failures, kind="stable")[:count]
    shrinkage = float(_weights(failures, nodes) @ _SHRINKAGE)
    own_rates = failures[worst] * nodes / failures.sum()
    return WorstNodes(
        nodes=tuple(names[worst].tolist()),
        failures=tuple(failures[worst].tolist()),
        rates=tuple((shrinkage + (1 - shrinkage) * own_rates).tolist()),
        raw=float(failures[worst].sum() / failures.sum()),
        saved=_share(failures, nodes, count),
        equal=count / nodes,
        shrinkage=shrinkage,
        promised=_share(before, nodes, count),
        kept=_kept(before, after, nodes, count),
        held_out=_held_out(before, after, nodes),
    )


def _share(failures: Integers, nodes: int, count: int) -> Estimate:
    """Share of the failures to come of the nodes that failed most: a mixture of beta variables."""
    from scipy.optimize import brentq
    from scipy.special import betainc

    weight, alpha = _weights(failures, nodes), _alpha(int(failures.sum()), nodes)
    most = np.sort(failures)[::-1][:count].sum()
    first, rest = count * alpha + most, (nodes - count) * alpha + failures.sum() - most
    lower = upper = 1.0
    if count < nodes:
        lower, upper = (
            brentq(lambda x, tail=tail: weight @ betainc(first, rest, x) - tail, 0.0, 1.0)
            for tail in (0.025, 0.975)
        )
    value = float(weight @ (first / (first + rest)))
    method = "posterior of a gamma-Poisson fleet, 95 % interval"
    return Estimate(value=value, lower=lower, upper=upper, method=method, exact=False)


def _kept(before: Integers, after: Integers, nodes: int, count: int) -> float:
    """Share of the second half of the worst nodes of the first one; of equal ones some at random."""
    last = int(np.sort(before)[-count]) if count <= len(before) else 0
    above, tied = before > last, before == last
    many = tied.sum() if last else nodes - above.sum()
    of_tied = after[tied].sum() * (count - above.sum()) / many
    return float((after[above].sum() + of_tied) / after.sum())


def _alpha(many: int, nodes: int) -> Floats:
    """Shapes of the gamma distributions of `_SHRINKAGE`."""
    return np.asarray(many / nodes * _SHRINKAGE / (1 - _SHRINKAGE))


def _weights(failures: Integers, nodes: int) -> Floats:
    """Posterior weights of `_SHRINKAGE`: negative binomial likelihood of all counts."""
    from scipy.special import gammaln

    many = int(failures.sum())
    alpha, count = _alpha(many, nodes)[:, None], failures.astype(np.float64)
    likelihood = (gammaln(alpha + count) - gammaln(alpha)).sum(axis=1)
    likelihood += nodes * alpha[:, 0] * np.log(_SHRINKAGE) + many * np.log1p(-_SHRINKAGE)
    weight = np.exp(likelihood - likelihood.max())
    return np.asarray(weight / weight.sum())


def _held_out(before: Integers, after: Integers, nodes: int) -> float:
    """Nats per failure of the second half that rates of the first half gain over equal ones.

    Given the number of failures of the second half, so that drift does not matter.
    """
    from scipy.special import gammaln, logsumexp

    alpha = _alpha(int(before.sum()), nodes)[:, None]
    gain = (gammaln(alpha + before + after) - gammaln(alpha + before)).sum(axis=1)
    total = nodes * alpha[:, 0] + before.sum()
    gain += gammaln(total) - gammaln(total + after.sum()) + after.sum() * np.log(nodes)
    return float(logsumexp(gain, b=_weights(before, nodes)) / after.sum())
