"""Pipeline schedules of PyTorch on four processes, whose passes sleep, beside `simulate_schedule`."""

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import lazy_loader
import numpy as np
import pandas as pd

from relparallel.parallel import simulate_schedule
from relparallel.rehearsal import processes

torch: Any = lazy_loader.load("torch")

STAGES: Final = 4
PASS: Final = 0.06  # s, slept by every pass of a chunk: forward, for the inputs, for the weights
SCHEDULES: Final = {  # of PyTorch: the name here, chunks of a stage
    "GPipe": ("gpipe", 1),
    "1F1B": ("1f1b", 1),
    "Interleaved1F1B": ("interleaved_1f1b", 2),
    "InterleavedZeroBubble": ("zb_h1", 1),
    "ZBVZeroBubble": ("zb_v", 2),
}
SIZES: Final = (4, 8, 16)  # micro-batches
_REPEATS: Final = 5


def measure() -> pd.DataFrame:
    """Shortest of some makespans of every schedule and number of micro-batches [s]."""
    with processes.stage("torch") as folder:
        import_module("torch.distributed.pipelining")
        calls = [(rank, folder) for rank in range(STAGES)]
        return pd.DataFrame(processes.answers(_rank, calls)[0])


def _rank(rank: int, folder: Path) -> list[dict[str, Any]]:
    """Run every schedule as one of the ranks."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = torch.distributed.FileStore(str(folder / "store"), STAGES)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=STAGES)
    return [
        {"schedule": name, "micro_batches": size, "makespan": _makespan(name, rank, size)}
        for name in SCHEDULES
        for size in SIZES
    ]


def _makespan(name: str, rank: int, size: int) -> float:
    """Shortest time from the first start of a rank to the last end."""
    pipelining, chunks = torch.distributed.pipelining, SCHEDULES[name][1]
    places = (
        [rank, 2 * STAGES - 1 - rank]
        if name == "ZBVZeroBubble"
        else range(rank, chunks * STAGES, STAGES)
    )
    device = torch.device("cpu")
    stages = [
        pipelining.PipelineStage(_sleeper(), place, chunks * STAGES, device) for place in places
    ]
    single = name in ("GPipe", "1F1B")
    schedule = getattr(pipelining, f"Schedule{name}")(
        stages[0] if single else stages, size, loss_fn=lambda found, target: (found - target).sum()
    )
    batch = torch.zeros(size, 8)
    inputs = [batch.clone().requires_grad_()] if 0 in places else []
    target = {"target": batch} if chunks * STAGES - 1 in places else {}
    times = []
    for _ in range(_REPEATS):
        torch.distributed.barrier()
        start = time.monotonic()
        schedule.step(*inputs, **target)
        ends = torch.tensor([-start, time.monotonic()], dtype=torch.float64)
        torch.distributed.all_reduce(ends, op=torch.distributed.ReduceOp.MAX)
        times.append(float(ends.sum()))
    return min(times)


def _sleeper() -> Any:
    """A chunk of the model: the gradient of its weight is a node of its own, so that it can wait."""

    class Asleep(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, values: Any) -> Any:
            return values.clone()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            time.sleep(PASS)
            return gradient.contiguous()

    class Chunk(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(8))

        def forward(self, values: Any) -> Any:
            time.sleep(PASS)
            return Asleep.apply(values) + Asleep.apply(self.weight)

    return Chunk()


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Makespans beside those of `simulate_schedule`, with two numbers fitted on 1F1B alone.

    They are what a pass takes besides its sleep and what a message takes [s].
    """
    from scipy.optimize import least_squares

    def makespan(name: str, size: int, extra: Any) -> float:
        own, chunks = SCHEDULES[name]
        seconds = chunks * (PASS + extra[0])
        given = {"forward": seconds, "backward": 2 * seconds, "communication": extra[1]}
        return float(simulate_schedule(own, STAGES, size, chunks, **given).makespan)

    names, sizes = table["schedule"].tolist(), table["micro_batches"].tolist()
    fitted = table[table["schedule"] == "1F1B"][["micro_batches", "makespan"]].to_numpy().tolist()

    def errors(extra: Any) -> list[float]:
        return [makespan("1F1B", int(size), extra) / found - 1 for size, found in fitted]

    extra = least_squares(errors, [1e-3, 1e-3], bounds=(0, PASS), x_scale=1e-3, gtol=1e-15).x
    expected = np.array([makespan(*pair, extra) for pair in zip(names, sizes, strict=True)])
    chunks = np.array([SCHEDULES[name][1] for name in names])
    busy = 3 * table["micro_batches"] * chunks * (PASS + extra[0])
    return table.assign(
        predicted=expected,
        error=expected / table["makespan"] - 1,
        bubble=1 - busy / table["makespan"],
        predicted_bubble=1 - busy / expected,
        per_pass=extra[0],
        per_message=extra[1],
    )
