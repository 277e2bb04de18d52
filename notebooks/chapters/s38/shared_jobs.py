"""Jobs that share a cluster: what their steps take, what a batch is worth, and how long they are.

K replicas on N nodes, m samples on each, s accumulation steps before the last one; batch M = K m (s
+ 1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from relparallel._checks import real, record, require_real, whole
from relparallel.training import statistical_efficiency

FloatArray = NDArray[np.float64]
Placement = tuple[int, ...]
Times = Callable[[Placement, int], tuple[float, float]]
_KEYS: Final = ["num_nodes", "num_replicas", "local_bsz"]
_SECONDS: Final = ["step_time", "sync_time"]
NODE: Final = 4  # GPUs of a node
_CANDIDATES: Final = 50  # batch sizes that are tried, from the least to the largest
# least square of a mean gradient over its variance: measured as 0, it is all noise
_NO_SIGNAL: Final = 1e-12
_TIMES: Final = (*_KEYS, *_SECONDS)
_COSTS: Final = (
    "compute",
    "compute_per_sample",
    "nodes",
    "nodes_per_replica",
    "local",
    "local_per_replica",
)


@record
class StatisticalGoodput:
    """What a data-parallel job gains per second: Qiao et al., "Pollux", OSDI 2021, equations 4-8.

    Forward and backward pass of m samples takes compute + m compute_per_sample [s], the gradient
    sum of K replicas on several nodes nodes + (K - 2) nodes_per_replica [s], on one node the same
    with ``local``. The exponent gamma of their ``overlap`` goes from 1 (one after the other) to 10
    (as good as the longer one alone). ``noise`` is the gradient noise scale [samples], ``batch``
    the samples M0 of the batch that progress is counted in.

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

    def step_time(
        self, nodes: Any, replicas: Any, samples: Any, accumulation: Any = 0
    ) -> FloatArray:
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

    def throughput(
        self, nodes: Any, replicas: Any, samples: Any, accumulation: Any = 0
    ) -> FloatArray:
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

    ``sync_time`` is the part of the step that waits for gradients. Of least mean square error of
    the logarithms of ``step_time - sync_time`` and of ``step_time`` (Qiao et al., OSDI 2021,
    section 4.1).
    """
    nodes, replicas, samples, step, waited = (
        np.asarray(times[name], dtype=float) for name in _TIMES
    )
    if not ((nodes > 1).any() and ((nodes == 1) & (replicas > 1)).any() and (replicas == 1).any()):
        raise ValueError("times must hold steps on one GPU, on one node and on several nodes")

    def fitted(x: FloatArray) -> StatisticalGoodput:
        costs = dict(zip(_COSTS, np.exp(x[:6]).tolist(), strict=True))
        return StatisticalGoodput(overlap=float(x[6]), noise=noise, batch=batch, **costs)

    def errors(x: FloatArray) -> FloatArray:
        model = fitted(x)
        alone = np.exp(x[0]) + np.exp(x[1]) * samples
        both = (
            np.log(alone / (step - waited)),
            np.log(model.step_time(nodes, replicas, samples) / step),
        )
        return np.concatenate(both)

    start = np.array([*np.log([0.1, 0.01] * 3), 1.5])
    bounds = [-25.0] * 6 + [1.0], [10.0] * 6 + [10.0]
    return fitted(np.clip(scipy.optimize.least_squares(errors, start, bounds=bounds).x, *bounds))


@dataclass(frozen=True, kw_only=True, eq=False)
class Application:
    """A kind of training job: seconds of its steps, worth of its batches, length."""

    name: str
    step_times: Times  # of GPUs per node and samples per GPU: seconds of a step, and of its wait
    progress: FloatArray  # at the end of every epoch, from 0 [steps of the smallest batch]
    batches: NDArray[np.int64]  # sizes at which gradients were measured, [B]
    square: FloatArray  # squared norm of the gradient, [B, epochs]
    variance: FloatArray  # of the gradient, [B, epochs]
    iterations: FloatArray  # optimizer steps until the end of every epoch, [B, epochs]
    smallest: int  # samples that a GPU may take at a time
    largest: int
    most: int  # GPUs that a scheduler may give, where it chooses the number
    model: StatisticalGoodput  # what a scheduler believes
    measured: pd.DataFrame | None = None  # steps that the model was fitted to
    _seen: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def marks(self) -> list[float]:
        """The progress as numbers, which a simulation reads a million times."""
        found: list[float] = self.progress.tolist()
        return found

    @cached_property
    def epochs(self) -> int:
        """Epochs until the job is done."""
        return self.progress.size - 1

    def noise(self, batch: int, epoch: int) -> float:
        """Gradient noise scale [samples], interpolated between measured batch sizes."""
        square = np.interp(batch, self.batches, self.square[:, epoch])
        variance = np.interp(batch, self.batches, self.variance[:, epoch])
        return float(variance / max(square, _NO_SIGNAL * variance, 1e-300) * self.batches[0])

    def steps_left(self, batch: int, epoch: int) -> float:
        """Optimizer steps of the epochs after this one; 1 in the last."""
        left = np.interp(batch, self.batches, self.iterations[:, -1] - self.iterations[:, epoch])
        return max(float(left), 1.0)

    def goodput(self, placement: Placement, samples: int, accumulation: int, epoch: int) -> float:
        """Steps of the smallest batch that a second is worth."""
        key = placement, samples, accumulation, epoch
        if key not in self._seen:
            step, waited = self.step_times(placement, samples)
            batch, base = sum(placement) * samples * (accumulation + 1), int(self.batches[0])
            noise = self.noise(batch, epoch)
            gain = batch / base * (noise + base) / (noise + batch)
            self._seen[key] = float(gain / (step + accumulation * (step - waited)))
        return self._seen[key]  # type: ignore[no-any-return]

    def split(self, batch: int, gpus: int) -> tuple[int, int]:
        """Samples per GPU and accumulation steps of a batch; one GPU accumulates a grown one."""
        each = -(-batch // gpus)
        accumulation = -(-each // self.largest) - 1
        if gpus == 1 and batch > self.batches[0]:
            accumulation = max(1, accumulation)
        samples = -(-each // (accumulation + 1))
        return min(samples, int(self.batches[-1]) // (gpus * (accumulation + 1))), accumulation

    @cached_property
    def candidates(self) -> tuple[NDArray[np.int64], ...]:
        """Samples per GPU, accumulation steps, batch and believed samples/s, [64, candidates]."""
        gpus = np.arange(1, 65)[:, None]
        least = np.minimum(np.maximum(self.batches[0], self.smallest * gpus), self.batches[-1])
        each = np.geomspace(least[:, 0], self.batches[-1], _CANDIDATES).T / gpus
        steps = np.ceil(each / self.largest - 1e-8) - 1
        steps = np.where((gpus == 1) & (each > self.batches[0] + 1e-8), np.maximum(steps, 1), steps)
        samples = np.ceil(each / (steps + 1) - 1e-8)
        batch = gpus * samples * (steps + 1)
        speed = self.model.throughput(-(-gpus // NODE), gpus, samples, steps)
        allowed = (
            (samples >= self.smallest) & (samples <= self.largest) & (batch <= self.batches[-1])
        )
        return (
            samples.astype(int),
            steps.astype(int),
            batch.astype(int),
            np.where(allowed, speed, 0.0),
        )

    def step_time(self, batch: int, gpus: int) -> float:
        """Seconds of a step of a batch on full nodes."""
        if (batch, gpus) not in self._seen:
            placement = (NODE,) * (gpus // NODE) + ((gpus % NODE,) if gpus % NODE else ())
            samples, accumulation = self.split(batch, gpus)
            step, waited = self.step_times(placement, samples)
            self._seen[batch, gpus] = step + accumulation * (step - waited)
        return float(self._seen[batch, gpus])

    def believed(self, noise: float) -> tuple[FloatArray, NDArray[np.int64]]:
        """Best goodput on 1 to 64 GPUs packed on nodes of 4, and the candidate that has it."""
        if noise not in self._seen:
            _, _, batch, speed = self.candidates
            goodput = speed * (noise + self.batches[0]) / (noise + batch)
            best = goodput.argmax(axis=1)
            self._seen[noise] = goodput[np.arange(64), best], best
        found: tuple[FloatArray, NDArray[np.int64]] = self._seen[noise]
        return found


def modelled_application(
    model: StatisticalGoodput,
    epochs: int,
    steps: float,
    limits: tuple[int, int, int],
    name: str = "modelled",
) -> Application:
    """An application whose steps take what a fitted model says, with constant gradient noise.

    It has ``epochs`` epochs, each worth so many ``steps`` of the smallest batch; ``limits`` are the
    fewest and most samples per GPU, and the largest batch.

    >>> model = StatisticalGoodput(
    ...     compute=0.1, compute_per_sample=0.01, nodes=0.05, nodes_per_replica=0.005, local=0.01,
    ...     local_per_replica=0.001, overlap=2, noise=1280, batch=128)
    >>> modelled_application(model, epochs=10, steps=100, limits=(16, 128, 1024)).step_time(256, 4)
    0.740...
    """
    smallest, largest, batch = limits
    if model.batch >= batch:
        raise ValueError(
            f"limits must end above the batch {model.batch} of the model, got {limits}"
        )
    # of a step over one of the smallest batch
    gain = float(batch / model.batch * model.efficiency(batch))

    @cache
    def times(placement: Placement, samples: int) -> tuple[float, float]:
        step = float(model.step_time(len(placement), sum(placement), samples))
        return step, step - model.compute - model.compute_per_sample * samples

    progress: FloatArray = steps * np.arange(epochs + 1.0)
    return Application(
        name=name,
        model=model,
        progress=progress,
        smallest=smallest,
        largest=largest,
        most=64,
        step_times=times,
        batches=np.array([model.batch, batch]),
        square=np.ones((2, epochs)),
        variance=np.full((2, epochs), model.noise / model.batch),
        iterations=steps * np.outer([1.0, 1 / gain], np.arange(1, epochs + 1)),
    )


def read_application(
    folder: str | PathLike[str], *, epochs: int, largest: int | None = None, most: int = 64
) -> Application:
    """Measured steps and gradients of an application in the format of Pollux's artefact.

    Its folder holds ``placements.csv``, ``scalability.csv`` and a ``validation-M.csv`` for each
    batch size M. Placements that were not measured are interpolated linearly between nodes,
    replicas and samples.
    """
    path = Path(folder)
    found = {
        int(file.stem.removeprefix("validation-")): file for file in path.glob("validation-*.csv")
    }
    runs = [
        _table(found[size], ["progress", "iteration", "grad_sqr", "grad_var"])
        for size in sorted(found)
    ]
    if (short := min(map(len, runs))) < epochs:
        raise ValueError(
            f"epochs must be at most {short}, the epochs measured in {path}, got {epochs}"
        )
    placed = _table(path / "placements.csv", ["placement", "local_bsz", *_SECONDS])
    digits = placed["placement"].astype(int).astype(str)
    placed = placed.assign(
        num_nodes=digits.str.len(), num_replicas=[sum(map(int, text)) for text in digits]
    )
    spread = _table(path / "scalability.csv", [*_KEYS, *_SECONDS])
    every = pd.concat(
        [placed.groupby(_KEYS)[_SECONDS].mean().reset_index(), spread], ignore_index=True
    )
    iterations, square, variance = (
        np.array([run[c][:epochs] for run in runs]) for c in ("iteration", "grad_sqr", "grad_var")
    )
    sizes = np.array(sorted(found))
    noise = float(np.median(variance[0] / np.maximum(square[0], 1e-300)) * sizes[0])
    return Application(
        name=path.name,
        step_times=_interpolated(placed, every),
        batches=sizes,
        square=square,
        progress=np.append(0.0, np.min([run["progress"][:epochs] for run in runs], axis=0)),
        variance=variance,
        iterations=iterations,
        most=most,
        smallest=int(placed["local_bsz"].min()),
        largest=largest or int(placed["local_bsz"].max()),
        model=statistical_goodput_fit(every, noise=noise, batch=int(sizes[0])),
        measured=every,
    )


def _interpolated(placed: pd.DataFrame, every: pd.DataFrame) -> Times:
    """Times between measured samples per GPU if the placement was measured, else between all."""
    digits = placed["placement"].astype(int)
    known = {tuple(map(int, str(text))): rows for text, rows in placed.groupby(digits)}
    between = scipy.interpolate.LinearNDInterpolator(
        every[_KEYS].to_numpy(), every[_SECONDS].to_numpy()
    )
    seen: dict[tuple[Placement, int], tuple[float, float]] = {}

    def times(placement: Placement, samples: int) -> tuple[float, float]:
        turned = min(placement[i:] + placement[:i] for i in range(len(placement)))
        if (turned, samples) not in seen:
            if (rows := known.get(turned)) is not None:
                found = [float(np.interp(samples, rows["local_bsz"], rows[c])) for c in _SECONDS]
            else:
                found = between([min(len(turned), 16), sum(turned), samples])[0].tolist()
            if np.isnan(found).any():
                raise ValueError(f"no time was measured around {samples} samples on GPUs {turned}")
            seen[turned, samples] = found[0], found[1]
        return seen[turned, samples]

    return times


def read_shared_jobs(path: str | PathLike[str]) -> pd.DataFrame:
    """Jobs of a workload in the format of Pollux's artefact: arrivals [s], GPUs wanted, batches."""
    return _table(Path(path), ["time", "num_replicas", "batch_size"], ["name", "application"])


def _table(path: Path, numbers: Sequence[str], texts: Sequence[str] = ()) -> pd.DataFrame:
    """Columns of a CSV file; numbers must be finite and not negative."""
    raw = pd.read_csv(path, dtype=str, keep_default_na=False)
    found = {name: pd.to_numeric(raw[name]) for name in numbers}
    for name, column in found.items():
        require_real(at_least=0, **{f"{name} of {path}": column})  # type: ignore[arg-type]
    return pd.DataFrame({name: raw[name] for name in texts} | found)
