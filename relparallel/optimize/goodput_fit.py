"""Throughput times statistical efficiency of data-parallel training, and its fit to measured steps (Pollux).

K replicas on N nodes, m samples on each, s accumulation steps before the last one; batch M = K m (s + 1).
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from relparallel._checks import real, record, require_instance, require_int, require_real, whole
from relparallel.training import statistical_efficiency

FloatArray = NDArray[np.float64]
_TIMES = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
_COSTS = ("compute", "compute_per_sample", "nodes", "nodes_per_replica", "local", "local_per_replica")


@record
class StatisticalGoodput:
    """What a data-parallel job gains per second, by the seven numbers of its step time and its noise scale.

    Parameters
    ----------
    compute, compute_per_sample : float
        Forward and backward pass of m samples takes compute + m compute_per_sample [s].
    nodes, nodes_per_replica : float
        Gradient sum of K replicas on several nodes takes nodes + (K - 2) nodes_per_replica [s].
    local, local_per_replica : float
        The same on a single node [s].
    overlap : float
        Exponent gamma, 1 (one after the other) to 10 (as good as the longer one alone).
    noise : float
        Gradient noise scale [samples].
    batch : int
        Samples M0 of the batch that progress is counted in.

    References
    ----------
    Qiao et al., "Pollux", OSDI 2021, equations 4 to 8.

    Examples
    --------
    >>> job = StatisticalGoodput(
    ...     compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.01,
    ...     local_per_replica=0.001, overlap=2, noise=1280, batch=128)
    >>> [round(float(x), 3) for x in (job.throughput(2, 8, 32), job.efficiency(256), job.goodput(2, 8, 32))]
    [598.759, 0.917, 548.862]
    """

    compute: float = real(at_least=0)
    compute_per_sample: float = real(at_least=0)
    nodes: float = real(at_least=0)
    nodes_per_replica: float = real(at_least=0)
    local: float = real(at_least=0)
    local_per_replica: float = real(at_least=0)
    overlap: float = real(at_least=1, at_most=10)
    noise: float = real(at_least=0, at_most=1e30)
    batch: int = whole(at_least=1)

    def step_time(self, nodes: Any, replicas: Any, samples: Any, accumulation: Any = 0) -> FloatArray:
        """Seconds of an optimizer step: s passes, then one whose gradients are summed meanwhile."""
        gradients = self.compute + self.compute_per_sample * np.asarray(samples)
        summed = self._sum(np.asarray(nodes), np.asarray(replicas))
        last = (gradients**self.overlap + summed**self.overlap) ** (1 / self.overlap)
        return np.asarray(accumulation * gradients + last)

    def _sum(self, nodes: NDArray[Any], replicas: NDArray[Any]) -> FloatArray:
        """Seconds of a gradient sum; nothing for one replica."""
        far = self.nodes + self.nodes_per_replica * (replicas - 2)
        near = self.local + self.local_per_replica * (replicas - 2)
        return np.where(replicas > 1, np.where(nodes > 1, far, near), 0.0)

    def throughput(self, nodes: Any, replicas: Any, samples: Any, accumulation: Any = 0) -> FloatArray:
        """Samples per second."""
        batch = np.asarray(replicas) * samples * (np.asarray(accumulation) + 1)
        return np.asarray(batch / self.step_time(nodes, replicas, samples, accumulation))

    def efficiency(self, batch: Any) -> FloatArray:
        """Progress per sample of a batch M over that of M0: (noise + M0) / (noise + M)."""
        batch = require_real(batch=batch, at_least=self.batch)
        return 1 / np.asarray(statistical_efficiency(self.batch / batch, self.noise / batch))

    def goodput(self, nodes: Any, replicas: Any, samples: Any, accumulation: Any = 0) -> FloatArray:
        """Samples per second, each worth one of the batch M0."""
        batch = np.asarray(replicas) * samples * (np.asarray(accumulation) + 1)
        return self.throughput(nodes, replicas, samples, accumulation) * self.efficiency(batch)


def statistical_goodput_fit(times: pd.DataFrame, *, noise: float, batch: int) -> StatisticalGoodput:
    """The step time of Pollux fitted to measured steps, given in the columns of `_TIMES` [s].

    ``sync_time`` is the part of the step that waits for gradients. Of least mean square error of the
    logarithms of ``step_time - sync_time`` and of ``step_time`` (Qiao et al., OSDI 2021, section 4.1).
    """
    require_real(noise=noise, at_least=0, at_most=1e30)
    require_int(batch=batch, at_least=1)
    nodes, replicas, samples, step, waited = _measured(times)

    def fitted(x: FloatArray) -> StatisticalGoodput:
        costs = dict(zip(_COSTS, np.exp(x[:6]).tolist(), strict=True))
        return StatisticalGoodput(overlap=float(x[6]), noise=noise, batch=batch, **costs)

    def errors(x: FloatArray) -> FloatArray:
        model = fitted(x)
        alone = np.exp(x[0]) + np.exp(x[1]) * samples
        both = np.log(alone / (step - waited)), np.log(model.step_time(nodes, replicas, samples) / step)
        return np.concatenate(both)

    start = np.array([*np.log([0.1, 0.01] * 3), 1.5])
    bounds = [-25.0] * 6 + [1.0], [10.0] * 6 + [10.0]
    return fitted(np.clip(least_squares(errors, start, bounds=bounds).x, *bounds))


def _measured(times: pd.DataFrame) -> tuple[FloatArray, ...]:
    """The columns, checked."""
    require_instance(pd.DataFrame, times=times)
    if missing := [name for name in _TIMES if name not in times]:
        raise ValueError(f"times must have the columns {', '.join(_TIMES)}, got none called {missing[0]}")
    columns = {name: np.asarray(times[name], dtype=float) for name in _TIMES}
    for name, column in columns.items():
        require_real(at_least=0, **{f"times[{name!r}]": column})  # type: ignore[arg-type]
    nodes, replicas, _, step, waited = columns.values()
    if not ((nodes > 1).any() and ((nodes == 1) & (replicas > 1)).any() and (replicas == 1).any()):
        raise ValueError("times must hold steps on one GPU, on one node and on several nodes")
    if (bad := step <= waited).any():
        row = int(bad.argmax())
        raise ValueError(f"times must have step_time above sync_time, got {step[row]:g} in row {row}")
    return tuple(columns.values())
