"""A pipeline that was planned: its stages, its time, and what becomes of it when devices fail."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_indices
from relparallel.training import ComponentClass
from relparallel.workload import LayerGraph

FloatArray = NDArray[np.float64]


class Stage(NamedTuple):
    """Links ``start`` to ``stop - 1`` of a chain on devices; ``inside`` divides them within one."""

    start: int
    stop: int
    devices: int
    inside: tuple["Stage", ...] = ()


class PipelinePlan(NamedTuple):
    """Stages of a pipeline in their order, and what becomes of it when devices fail."""

    chain: LayerGraph  # what was divided, one link for each level of the model
    stages: tuple[Stage, ...]  # they take the devices 0, 1, ... in turn
    # Of every stage on 0, 1, ..., all its devices: what bounds the rate of micro-batches, and what
    # a step with a flush pays besides, such as sums of gradients. What has no device left never
    # ends.
    seconds: tuple[FloatArray, ...]
    once: tuple[FloatArray, ...]
    # of a step that ends with a flush; None where there is no flush
    micro_batches: int | None = None

    @property
    def devices(self) -> int:
        """Devices of all stages."""
        return sum(stage.devices for stage in self.stages)

    @property
    def device_stage(self) -> NDArray[np.int64]:
        """Stage of every device."""
        return np.repeat(np.arange(len(self.stages)), [stage.devices for stage in self.stages])

    @property
    def layers(self) -> tuple[tuple[str, ...], ...]:
        """Names of the layers of each stage."""
        names = self.chain.names
        return tuple(
            tuple(name for link in names[stage.start : stage.stop] for name in link.split("+"))
            for stage in self.stages
        )

    @property
    def time(self) -> float:
        """Seconds between two samples; of a whole step where it ends with a flush."""
        return self.time_without(())

    def time_without(self, failed: ArrayLike) -> float:
        """Seconds when the devices of these numbers failed and the rest of their stages goes on."""
        lost = np.zeros(self.devices, dtype=np.bool_)
        lost[require_indices("failed", failed, lost.size)] = True
        missing = np.bincount(self.device_stage[lost], minlength=len(self.stages))
        left = [
            stage.devices - gone for stage, gone in zip(self.stages, missing.tolist(), strict=True)
        ]
        each = np.array([took[count] for took, count in zip(self.seconds, left, strict=True)])
        if self.micro_batches is None or np.isinf(each).any():
            return float(each.max())
        besides = sum(took[count] for took, count in zip(self.once, left, strict=True))
        return float(each.sum() + besides + (self.micro_batches - 1) * each.max())

    def slowdown(self, failed: ArrayLike = ()) -> float:
        """Time with failed devices over the usual time; infinite where a stage has none left."""
        usual, left = self.time, self.time_without(failed)
        return 1.0 if left == usual else left / usual if usual else float("inf")

    def component_classes(
        self, rate: float, repair: float | None = None
    ) -> tuple[ComponentClass, ...]:
        """What fails, for a `FailureModel`: devices of each stage, each ``rate`` times per second.

        A lost device slows a replicated stage down, and stops a job whose stage has no other.
        """
        first = np.cumsum([0, *(stage.devices for stage in self.stages)])
        found = []
        for number, stage in enumerate(self.stages):
            one = ComponentClass(
                name=f"device of stage {number}", level="gpu", rate=rate, repair=repair
            )
            slower = self.slowdown([first[number]])
            if np.isfinite(slower):
                one = replace(one, effect="degrade", slowdown=max(slower, 1.0), parts=stage.devices)
            else:
                one = replace(one, parts=1, gpus=(int(first[number]),))
            found.append(one)
        return tuple(found)
