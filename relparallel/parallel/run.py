"""A measured training step: what was trained, where, how, and how long a step took."""

from relparallel._checks import choice, instance, real, record, whole
from relparallel.hardware import Cluster
from relparallel.parallel.machine_parameters import software as known_software
from relparallel.parallel.strategy import Strategy
from relparallel.units import MILLISECOND, TFLOP
from relparallel.workload import Transformer


@record
class Run:
    """One measured training step [s]: its row, set of measurements, what was trained and how.

    ``memory`` is the peak of the fullest GPU [bytes], 0 where nobody measured it; ``said`` is what a
    reader of its log said.
    """

    id: str = instance(str)
    source: str = instance(str)
    model: Transformer = instance(Transformer)
    strategy: Strategy = instance(Strategy)
    cluster: Cluster = instance(Cluster)
    global_batch: int = whole(at_least=1)
    software: str = instance(str)
    time: float = real(above=0)
    precision: str = choice(("bf16", "fp8", "fp4"), default="bf16")
    memory: float = real(default=0.0, at_least=0)
    said: str = instance(str, default="")

    @property
    def family(self) -> str:
        """Accelerators on which it took place."""
        return "" if self.cluster.accelerator is None else self.cluster.accelerator.family

    @property
    def throughput(self) -> float:
        """Tokens per second of all GPUs."""
        return self.global_batch * self.model.sequence / self.time

    @property
    def least_time(self) -> float:
        """Time that the operations of the model take at the peak rate of its number format [s]."""
        device = self.cluster.accelerator
        assert device is not None
        rate = device.peak[self.precision] * self.strategy.gpus
        share = known_software(self.software).passes / 3
        return share * self.model.flops_per_iteration(self.global_batch) / rate


def step_seconds(speed: float, unit: str, model: Transformer, batch: int, gpus: int) -> float:
    """Time of a step [s], of which a source prints the time or a rate in one of some units."""
    tokens, flops = batch * model.sequence, model.flops_per_iteration(batch)
    return {
        "s": speed,
        "ms": speed * MILLISECOND,
        "tokens/s": tokens / speed,
        "tokens/s/GPU": tokens / (speed * gpus),
        "TFLOP/s/GPU": flops / (speed * TFLOP * gpus),
    }[unit]
