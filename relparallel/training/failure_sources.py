"""Where failures come from, apart from constant rates: events that nodes share, lives, a record.

A `FailureModel` has one of these as its ``source``. Formulas take `SharedEvents`; `simulate` takes
all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    flag,
    instance,
    real,
    record,
    require_instance,
    require_probability,
    require_real,
    whole,
)
from relparallel.training._arguments import LONGEST, SHORTEST
from relparallel.training.factors import fading
from relparallel.training.lifetimes import Ages, Lifetime, require_ages
from relparallel.units import DAY

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
_ROUNDED: Final = 1e-9  # how far shares may miss 1
_FEW_MONTHS: Final = 6  # with fewer, rates that differ are not told from chance
_CHANCE: Final = 0.01  # that months of one rate are said to differ
_PHASES: Final = 12  # of a random rate
_NEVER: Final = 1e-9  # share of time of a phase that is left out


@record
class SharedEvents:
    """Failures of nodes that come in events, each of which takes one node or several.

    Parameters
    ----------
    sizes : sequence of float
        Share of the events that take 1, 2, ... nodes.
    together : bool
        Whether the nodes of an event come back at one moment, or each after a repair of its own.
    neighbours : bool
        Whether they stand in a row, as behind a leaf or in a rack, or anywhere.
    phases : sequence of (float, float)
        Share of the time and factor of the rate in it, 1 in the mean: months differ.
    lasting : float
        Mean length of a phase [s]; the numbers of nodes down take it as long beside a repair.

    Notes
    -----
    A node fails as often as without events, L times per second: events come N L / E[B] times per
    second, B being the nodes of one. If all nodes can always fail, the number under repair is
    compound Poisson. Parts of j nodes under repair in the mean, with N L r = rho nodes down: rho
    P(B = j) / E[B] where an event is repaired as a whole after r in the mean, any distribution;
    rho P(B >= j) / (j E[B]) where each node is repaired on its own, after exponential times: the
    generating function exp(v r int_z^1 (P(w) - 1)/(1 - w) dw) of an infinite-server queue with
    batches, term by term. Over the phases it is a mixture.

    References
    ----------
    Holman, Chaudhry, Kashyap, Eur. J. Oper. Res. 13, 1983: batch arrivals at infinitely many
    servers. Panjer, ASTIN Bulletin 12, 1981.

    Examples
    --------
    >>> events = SharedEvents(sizes=(0.8, 0.1, 0.1))
    >>> round(events.mean_size, 3), {n: round(load, 3) for n, load in events.loads(1.3).items()}
    (1.3, {1: 0.8, 2: 0.1, 3: 0.1})
    """

    sizes: Sequence[float] = instance((tuple, list, np.ndarray))
    together: bool = flag(default=True)
    neighbours: bool = flag(default=False)
    phases: Sequence[tuple[float, float]] = instance((tuple, list), default=((1.0, 1.0),))
    lasting: float = real(at_least=SHORTEST, at_most=LONGEST, default=30 * DAY)

    def __post_init__(self) -> None:
        sizes = np.atleast_1d(require_probability(sizes=np.asarray(self.sizes)))
        if sizes.ndim != 1 or not sizes.size or abs(sizes.sum() - 1) > _ROUNDED:
            raise ValueError(
                f"sizes must be shares of events of 1, 2, ... nodes with sum 1, got {self.sizes!r}"
            )
        sizes = np.trim_zeros(sizes, "b")
        object.__setattr__(self, "sizes", tuple((sizes / sizes.sum()).tolist()))
        phases = np.asarray(self.phases, dtype=np.float64)
        if phases.ndim != 2 or phases.shape[1] != 2 or not len(phases):
            raise ValueError(
                f"phases must be pairs of share and factor, at least one, got {self.phases!r:.80}"
            )
        require_probability(phases=phases[:, 0])
        require_real(phases=phases[:, 1], at_least=0, at_most=1e6)
        for total, what in ((phases[:, 0].sum(), "shares"), (phases.prod(axis=1).sum(), "mean")):
            if abs(total - 1) > 1e-6:
                raise ValueError(f"phases must have {what} of 1, got {total:g}")
        object.__setattr__(self, "phases", tuple(map(tuple, phases.tolist())))

    @property
    def mean_size(self) -> float:
        """Nodes of an event in the mean, E[B]."""
        return sum(size * share for size, share in enumerate(self.sizes, start=1))

    def rates(self, rate: float) -> dict[int, float]:
        """Events per second by their nodes, if nodes fail ``rate`` times per second in all."""
        each = rate / self.mean_size
        return {size: each * share for size, share in enumerate(self.sizes, start=1) if share}

    def loads(self, down: float) -> dict[int, float]:
        """Parts under repair in the mean by their nodes, with ``down`` nodes down in the mean."""
        whole_parts = self.rates(down)
        return whole_parts if self.together else alone(whole_parts)

    def drift(self, down: Array, month: float, repair: float) -> float | None:
        """Shape of a gamma-distributed rate, by what months differ beyond events of one rate.

        ``down`` are the mean numbers of nodes down of months of one length [s]; None where six are
        not reached, or chance alone may have it.
        """
        from scipy.stats import chi2

        if down.size < _FEW_MONTHS or not down.any():
            return None
        spread = sum(size**2 * parts for size, parts in self.loads(float(down.mean())).items())
        # Of a mean over a month, where what is down is forgotten within a repair.
        noise = spread * 2 * repair / month * float(fading(month, repair))
        if down.var(ddof=1) * (down.size - 1) <= chi2.isf(_CHANCE, down.size - 1) * noise:
            return None
        return float(np.clip(down.mean() ** 2 / (down.var(ddof=1) - noise), 0.05, 1e4))

    @staticmethod
    def drifting(shape: float) -> tuple[tuple[float, float], ...]:
        """Return phases of a rate that is gamma distributed, of mean 1 and variance 1/shape.

        Gauss-Laguerre nodes; those of less than 1e-9 of the time are left out.
        """
        from scipy.special import roots_genlaguerre

        shape = float(require_real(shape=shape, at_least=0.05, at_most=1e4))
        if shape > 100:  # the nodes overflow; all but normal there
            point, weight = np.polynomial.hermite_e.hermegauss(_PHASES)
            factor = np.maximum(1 + point / math.sqrt(shape), 0.0)
        else:
            point, weight = roots_genlaguerre(_PHASES, shape - 1)
            factor = point / shape
        share = weight / weight.sum()
        kept = share > _NEVER
        share, factor = share[kept] / share[kept].sum(), factor[kept]
        return tuple(zip(share.tolist(), (factor / (share @ factor)).tolist(), strict=True))


def alone(parts: Mapping[int, float]) -> dict[int, float]:
    """Loads of an event's nodes that come back each on its own, from those of whole events.

    While j of them are left the next comes back after r / j, so that an event of b nodes is one of
    j <= b nodes for r / j.
    """
    most = max(parts, default=0)
    more = np.cumsum([parts.get(size, 0.0) for size in range(most, 0, -1)])[::-1]
    return {size: float(more[size - 1]) / size for size in range(1, most + 1)}


@record(eq=False)
class NodeLives:
    """Nodes fail by distributions of lives and repairs of their own.

    Parameters
    ----------
    lifetimes : Lifetime, optional
        Distribution of the lives of nodes; its shape counts, the mean is the model's. Exponential
        where omitted.
    ages : {"stationary", "new"} or array
        State of the nodes at the beginning; array: one age per node and spare [s].
    repairs : Lifetime, optional
        Distribution of the repairs; its shape counts. Exponential where omitted.

    Examples
    --------
    >>> NodeLives(lifetimes=Lifetime.weibull(mean=1.0, shape=0.7)).ages
    'stationary'
    """

    lifetimes: Lifetime | None = instance(Lifetime, default=None)
    ages: Ages = "stationary"
    repairs: Lifetime | None = instance(Lifetime, default=None)

    def __post_init__(self) -> None:
        require_ages(self.ages, np.size(self.ages))


@record(eq=False)
class Replay:
    """Nodes fail as a record says, and nothing else stops the job; `FailureLog.replay` makes one.

    Parameters
    ----------
    records : pandas.DataFrame
        Columns node (0, 1, ...), start and end [s since the observation window began]. Nodes are those of the
        placement, then the spares.
    nodes : int
        Nodes that were observed; those of a job and its spares are no more.
    span : float
        Length of the observation window [s]; the record begins again after it.
    shuffled : bool
        Whether each replication begins at a random time of the record with nodes in a random order,
        of which as many are drawn as the job and its spares have; else the record as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"node": [0], "start": [10 * DAY], "end": [20 * DAY]})
    >>> Replay(records=one, nodes=16, span=30 * DAY).shuffled
    True
    """

    records: pd.DataFrame
    nodes: int = whole(at_least=1, at_most=10**6)
    span: float = real(at_least=SHORTEST, at_most=LONGEST)
    shuffled: bool = flag(default=True)

    def __post_init__(self) -> None:
        from relparallel.training.log_columns import check_records

        check_records(self.records, self.nodes)

    def drawn(
        self, rng: np.random.Generator, total: int, length: float
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """Starts, ends and nodes of one replication of a length [s], in order of the starts."""
        columns = (self.records[name].to_numpy(dtype=np.float64) for name in ("start", "end"))
        (start, end), node = columns, self.records["node"].to_numpy(dtype=np.int64)
        late, order = 0.0, np.arange(self.nodes)
        if self.shuffled:
            late, order = float(rng.random() * self.span), rng.permutation(self.nodes)
        rounds = np.arange(-1 if self.shuffled else 0, math.ceil((length + late) / self.span) + 1)
        shift = np.repeat(rounds * self.span - late, start.size)
        first, last = np.tile(start, rounds.size) + shift, np.tile(end, rounds.size) + shift
        seat = np.tile(order[node], rounds.size)
        kept = ((first >= 0) | (last > 0)) & (first < length) & (seat < total)
        first, last, seat = np.maximum(first[kept], 0.0), last[kept], seat[kept]
        sorted_ = np.argsort(first, kind="stable")
        return first[sorted_], last[sorted_], seat[sorted_]


Source = SharedEvents | NodeLives | Replay


def events_only(source: Any) -> SharedEvents | None:
    """Refuse a source of failures that has no formula."""
    if isinstance(source, (NodeLives, Replay)):
        raise ValueError(
            "source must be SharedEvents, or left out, for a formula; `simulate` takes "
            f"{type(source).__name__}"
        )
    found: SharedEvents | None = require_instance((SharedEvents, type(None)), source=source)
    return found
