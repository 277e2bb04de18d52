"""Nodes of a job as a Markov chain: limited repairmen, spares that fail, second failures in a pause."""

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
    """Nodes that fail alone or several at once, are repaired, and stop or slow a job.

    A state is (k, s): k nodes are under repair, and the job stands in a pause (s = 1) or not. From it
    failures of size n come at rate L_n a(k), where a is the share of nodes that can fail, and repairs end at
    rate min(k, c)/r, node by node. In a state in which the job waits, its pause does not pass. Without a
    pause, with n = 1 and enough repairmen it is Erlang's B (cold), the binomial distribution (hot) and E[v]
    = a^g (elastic, shrinking batch). Barlow and Proschan, "Mathematical Theory of Reliability", 1965,
    chapter 5: the repairman's model.
    """

    nodes: int = whole(at_least=1, at_most=10**6)  # N of the job
    spares: int = whole(at_least=0, at_most=10**6, default=0)  # S besides
    rates: Mapping[int, float] = instance(Mapping)  # by the n nodes of a failure, L_n with all nodes up [1/s]
    repair: float = real(at_least=SHORTEST, at_most=LONGEST)  # mean r until a repairman has repaired a node
    speed: NDArray[np.float64] = instance(np.ndarray)  # share v with 0, 1, ... missing; the last for more
    hot: bool = flag(default=False)  # all N + S nodes can always fail; False: those that work for the job
    waits: bool = flag(default=False)  # nothing fails while the job is short of nodes; cold spares
    pause: float = real(at_least=0, at_most=LONGEST, default=0.0)  # mean, begun anew by another failure [s]
    crews: int | None = whole(at_least=1, at_most=10**6, default=None)  # repairs c at once; None: any number

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
        """Return the rates [1/s] between the states (0, running), (0, pausing), (1, running), ..."""
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
        """Return the share of time in each state, shape (nodes under repair, 2): running and pausing."""
        return stationary_distribution(self.generator()).reshape(-1, 2)

    def shares(self) -> tuple[float, float, float]:
        """Return the shares of time that the job waits (no speed is left) and pauses, and its mean speed."""
        chance = self.stationary()
        speed = speeds(np.arange(len(chance)), self.spares, self.speed)
        return float(chance[speed == 0].sum()), float(chance[speed > 0, 1].sum()), float(chance[:, 0] @ speed)

    def transient(self, times: Real) -> NDArray[np.float64]:
        """Return the mean throughput at times [s] after a start with all nodes up, one share per time.

        The exponential of the generator times a vector (Al-Mohy and Higham, SIAM J. Sci. Comput. 33(2),
        2011).
        """
        from scipy.sparse.linalg import expm_multiply

        when = np.atleast_1d(require_time(times=times))
        rates = self.generator()
        speed = np.zeros(rates.shape[0])
        speed[::2] = speeds(np.arange(rates.shape[0] // 2), self.spares, self.speed)
        return np.array([expm_multiply(rates * float(time), speed)[0] for time in when])
