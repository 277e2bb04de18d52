"""Nodes of a job as a Markov chain: limited repair crews, spares that fail, and a second failure in a pause.

A state is (k, s): k nodes are under repair, and the job stands in a pause (s = 1) or not.

========  =======================================================  =====================
letter    meaning                                                  field of `NodeChain`
========  =======================================================  =====================
N, S      nodes of the job, spares                                 ``nodes``, ``spares``
L_n       failures per second that take n nodes, with all up       ``rates``
r         mean time of a repair [s], of one node by one crew       ``repair``
c         crews                                                    ``crews``
t         mean pause [s]                                           ``pause``
v(k)      share of the throughput with k nodes missing             ``speed``
========  =======================================================  =====================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import flag, instance, real, record, require_int, require_probability, whole
from relparallel.reliability.repair.stationary import stationary_distribution
from relparallel.training._arguments import LONGEST, SHORTEST, Real, require_rate, require_time
from relparallel.training.down_nodes import able_to_fail, reach, speeds

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST: Final = 10**5  # states
_TAIL: Final = 1e-16


@record(eq=False)
class NodeChain:
    """Nodes that fail alone or several at once, are repaired by crews, and stop or slow a job.

    Parameters
    ----------
    nodes, spares : int
        Nodes N of the job, and S besides.
    rates : mapping of int to float
        By the nodes that one failure takes: failures per second with all nodes up.
    repair : float
        Mean time until a crew has repaired a node [s].
    speed : numpy.ndarray
        Share v of the throughput with 0, 1, ... nodes missing; the last value stands for more.
    hot : bool
        Whether all N + S nodes can always fail. False: only those that work for the job.
    waits : bool
        Whether nothing fails while the job is short of nodes; cold spares.
    pause : float
        Mean standstill after each failure [s]; another failure begins it anew.
    crews : int, optional
        Repairs at once; any number where omitted.

    Notes
    -----
    From k nodes under repair failures of size n come at rate L_n a(k), where a is the share of nodes that can
    fail, and repairs end at rate min(k, c)/r, node by node. In a state in which the job waits, its pause does
    not pass. Without a pause, with n = 1 and enough crews it is Erlang's B (cold), the binomial law (hot) and
    E[v] = a^g (elastic, shrinking batch).

    References
    ----------
    Barlow and Proschan, "Mathematical Theory of Reliability", 1965, chapter 5: the repairman's model.

    Examples
    --------
    >>> cold = NodeChain(nodes=2048, spares=8, rates={1: 2048 * 0.00379}, repair=1.0,
    ...                  speed=np.array([1.0, 0.0]), waits=True)
    >>> round(cold.waiting, 6)
    0.160858
    """

    nodes: int = whole(at_least=1, at_most=10**6)
    spares: int = whole(at_least=0, at_most=10**6, default=0)
    rates: Mapping[int, float] = instance(Mapping)
    repair: float = real(at_least=SHORTEST, at_most=LONGEST)
    speed: NDArray[np.float64] = instance(np.ndarray)
    hot: bool = flag(default=False)
    waits: bool = flag(default=False)
    pause: float = real(at_least=0, at_most=LONGEST, default=0.0)
    crews: int | None = whole(at_least=1, at_most=10**6, default=None)

    def __post_init__(self) -> None:
        for size, rate in self.rates.items():
            require_int(rates=size, at_least=1, at_most=self.nodes)
            require_rate(rates=rate)
        require_probability(speed=self.speed)
        if self.speed.ndim != 1 or not self.speed.size:
            raise ValueError(
                f"speed must hold a share for each number of nodes, got shape {self.speed.shape}"
            )

    def _most(self) -> int:
        """Largest number of nodes under repair that is kept."""
        top, widest = self.nodes + self.spares, max(self.rates, default=1)
        if self.waits and not self.hot:
            return min(top, self.spares + widest)
        if self.crews is None:
            return reach({n: rate * self.repair for n, rate in self.rates.items()}, top)
        work = sum(n * rate for n, rate in self.rates.items()) * self.repair
        if work < 0.9 * self.crews:  # a queue with a geometric tail
            return int(
                min(top, self.crews + widest * (60 + np.log(_TAIL) / np.log(work / self.crews + 1e-9)))
            )
        return top

    def generator(self) -> csr_array:
        """Return the rates between the states, ordered (0, running), (0, pausing), (1, running), ..."""
        from scipy.sparse import csr_array

        most = self._most()
        if 2 * most + 2 > _MOST:
            raise ValueError(f"nodes must leave at most {_MOST} states, got {2 * most + 2}")
        down = np.arange(most + 1)
        able, running = (
            able_to_fail(down, self.nodes, self.spares, self.hot, self.waits),
            speeds(down, self.spares, self.speed) > 0,
        )
        crews = most if self.crews is None else self.crews
        moves: list[tuple[Any, Any, Any]] = []
        for size, rate in self.rates.items():
            fits = down[: most + 1 - size]
            for state in (0, 1):
                after = 1 if self.pause > 0 else state
                moves.append((2 * fits + state, 2 * (fits + size) + after, rate * able[fits]))
        for state in (0, 1):
            moves.append(
                (2 * down[1:] + state, 2 * down[:-1] + state, np.minimum(down[1:], crews) / self.repair)
            )
        ends = np.where(running | (down == 0), 1 / self.pause if self.pause else 1 / self.repair, 0.0)
        moves.append((2 * down + 1, 2 * down, ends))
        row, column, rate_of = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        shape = (2 * most + 2, 2 * most + 2)
        rates = csr_array((rate_of, (row, column)), shape=shape)
        return csr_array(
            rates - csr_array((rates.sum(axis=1), (range(shape[0]), range(shape[0]))), shape=shape)
        )

    def stationary(self) -> NDArray[np.float64]:
        """Return the share of time in each state."""
        return stationary_distribution(self.generator()).reshape(-1, 2)

    def shares(self) -> tuple[float, float, float]:
        """Return the shares of time that the job waits, pauses and would need at full speed."""
        law = self.stationary()
        speed = speeds(np.arange(len(law)), self.spares, self.speed)
        return float(law[speed == 0].sum()), float(law[speed > 0, 1].sum()), float(law[:, 0] @ speed)

    @property
    def waiting(self) -> float:
        """Share of the time in which no speed is left."""
        return self.shares()[0]

    @property
    def throughput(self) -> float:
        """Mean share of the full throughput."""
        return self.shares()[2]

    def transient(self, times: Real) -> NDArray[np.float64]:
        """Return the mean throughput at given times after a start with all nodes up.

        The exponential of the generator times a vector, by scaling and truncated Taylor series.
        """
        from scipy.sparse.linalg import expm_multiply

        when = np.atleast_1d(require_time(times=times))
        rates = self.generator()
        speed = np.zeros(rates.shape[0])
        speed[::2] = speeds(np.arange(rates.shape[0] // 2), self.spares, self.speed)
        return np.array([expm_multiply(rates * float(time), speed)[0] for time in when])
