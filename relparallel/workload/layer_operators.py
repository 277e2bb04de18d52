"""The distinct operators of a model: what each computes, moves and stores.

An operator that every layer repeats is one row with a count, so the table does not grow with the
number of layers. M rows and N columns of the result, K terms of each sum (1 where nothing is
contracted).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from relparallel._checks import Result, require_choice, require_instance
from relparallel.hardware import Accelerator

KINDS: Final = ("contraction", "normalisation", "element-wise")
"""Classes (Ivanov et al. 2021, section 3): matrix products; means, norms and softmax; the rest."""

_PHASES: Final = ("forward", "backward", "training")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """One distinct operator of a model.

    ``m`` rows of all its results, ``n`` columns and ``k`` terms of each sum; ``batch`` results with
    operands of their own; ``times`` applications in a forward pass; ``weights`` and ``parameters``
    of all its copies; FLOPs and numbers read or written of one application. Ivanov et al., MLSys
    2021, table 1 and appendix.
    """

    name: str
    kind: str
    m: int
    n: int
    k: int = 1
    batch: int = 1
    times: int = 1
    weights: int = 0
    parameters: int = 0
    forward_flops: int
    backward_flops: int
    forward_elements: int
    backward_elements: int

    def flops(self, phase: str = "training") -> int:
        """Return the FLOPs of all its applications in the forward or backward pass, or in both."""
        return self.times * _of_phase(phase, self.forward_flops, self.backward_flops)

    def elements(self, phase: str = "training") -> int:
        """Return the numbers read or written by all its applications, by phase."""
        return self.times * _of_phase(phase, self.forward_elements, self.backward_elements)


def _of_phase(phase: str, forward: int, backward: int) -> int:
    require_choice(_PHASES, phase=phase)
    return {"forward": forward, "backward": backward, "training": forward + backward}[phase]


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorTable(Result):
    """All operators of a model for one pass of a batch; ``element_bytes``: width of a number."""

    name: str
    operators: tuple[Operator, ...]
    element_bytes: float = 2.0

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(row.parameters for row in self.operators)

    @property
    def weights(self) -> int:
        """Entries of the matrices that stand in products."""
        return sum(row.weights for row in self.operators)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the matrix products in one forward pass."""
        return self.flops("forward", "contraction") // 2

    def flops(self, phase: str = "training", kind: str | None = None) -> int:
        """Return the FLOPs of one batch, of one class of `KINDS` only where given."""
        return self._total(lambda row: row.flops(phase), kind)

    def bytes(self, phase: str = "training", kind: str | None = None) -> float:
        """Return the bytes of a batch that operators read and write in memory, each on its own."""
        return self.element_bytes * self._total(lambda row: row.elements(phase), kind)

    def _total(self, count: Callable[[Operator], int], kind: str | None) -> int:
        if kind is not None:
            require_choice(KINDS, kind=kind)
        return sum(count(row) for row in self.operators if kind in (None, row.kind))

    def to_frame(self) -> pd.DataFrame:
        """Return the table: sizes, counts, FLOPs, bytes and FLOPs per byte of every operator."""
        frame = pd.DataFrame([self._line(row) for row in self.operators])
        moved = frame["bytes forward"] + frame["bytes backward"]
        frame["FLOP/byte"] = (frame["FLOPs forward"] + frame["FLOPs backward"]) / moved
        return frame

    def _line(self, row: Operator) -> dict[str, float | str]:
        sizes = {
            "M": row.m / row.batch,
            "N": row.n,
            "K": row.k,
            "batch": row.batch,
            "times": row.times,
        }
        line = {"operator": row.name, "class": row.kind} | sizes | {"parameters": row.parameters}
        for phase in ("forward", "backward"):
            line[f"FLOPs {phase}"] = float(row.flops(phase))
            line[f"bytes {phase}"] = self.element_bytes * row.elements(phase)
        return line

    def roofline(self, accelerator: Accelerator, number: str = "bf16") -> pd.DataFrame:
        """Return `to_frame` with attainable rate, least time of a training pass and what bounds it.

        An operator of intensity I runs at min(peak, I x memory bandwidth) at best; ``number`` is
        the format of the products. Williams, Waterman and Patterson, "Roofline", CACM 2009.
        """
        require_instance(Accelerator, accelerator=accelerator)
        peak = accelerator.peak[require_choice(tuple(accelerator.peak), number=number)]
        frame = self.to_frame()
        streamed = frame["FLOP/byte"] * accelerator.memory_bandwidth
        moved = frame["bytes forward"] + frame["bytes backward"]
        work = frame["FLOPs forward"] + frame["FLOPs backward"]
        frame["attainable"] = streamed.clip(upper=peak)
        frame["time"] = (work / peak).clip(lower=moved / accelerator.memory_bandwidth)
        frame["bound"] = (streamed < peak).map({True: "memory", False: "compute"})
        return frame
