"""How long one training step takes, part by part.

The numbers come from the formula of ``step_parts.py``, with parameters calibrated on measured runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import Result, require_choice, require_instance, require_real
from relparallel.hardware import Accelerator, Cluster
from relparallel.parallel.feasibility import pipeline_of
from relparallel.parallel.gpu_memory import Verdict, stage_memory
from relparallel.parallel.group_bandwidth import placement_slowdowns
from relparallel.parallel.layer_times import seen_of_offload
from relparallel.parallel.machine_parameters import Calibration
from relparallel.parallel.past_runs import REACH, experience, features, sizes
from relparallel.parallel.quantities import Machine, Numbers, Sizes, Split
from relparallel.parallel.simulated_steps import Rows, simulated_parts, simulated_passes
from relparallel.parallel.step_formula import PARTS, step_parts
from relparallel.parallel.strategy import Placement, Strategy
from relparallel.parallel.strategy_text import notation
from relparallel.parallel.timeline import Timeline
from relparallel.topology import Topology
from relparallel.workload import Transformer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTime(Result):
    """Time of a step [s], by what it is spent on; the parts sum to `total`.

    ``compute`` and ``recompute`` are the kernels of the layers on the slowest stage, and those run
    again; ``launch`` is waiting for the host to launch kernels; ``head`` is output layer, loss and
    what a micro-batch costs besides layers. ``tensor``, ``context``, ``expert`` and ``pipeline``
    are communication inside the layers that nothing hides, and transfers between stages;
    ``pipeline_bubble`` is waiting for the first and the last micro-batch. ``data`` are gradients
    (and sharded parameters) on their way between replicas, as far as nothing hides it;
    ``optimizer`` is the update of the parameters, ``overhead`` what a step costs besides all that.

    ``log_errors`` are levels, each with the bound of abs(log(predicted / measured)) that held for
    that share of runs. ``mfu``: model FLOP/s over the peak of the GPUs that the strategy uses.
    ``nearest``: measured run on the same kind of accelerator that is most alike, at a ``distance``
    between logarithms of sizes and degrees, 1 for another recomputation or number format; errors
    stay alike over 2. ``memory``: whether the largest stage fits. ``notes``: what was assumed, and
    what speaks against the number.
    """

    compute: float
    recompute: float
    launch: float
    head: float
    tensor: float
    context: float
    expert: float
    pipeline: float
    pipeline_bubble: float
    data: float
    optimizer: float
    overhead: float
    log_errors: tuple[tuple[float, float], ...] = ()
    software: str = ""
    mfu: float = math.nan
    nearest: str = ""
    distance: float = math.nan
    memory: Verdict | None = None
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the largest stage fits into the memory of a GPU."""
        return self.memory is None or self.memory.fits

    def _parts(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in PARTS}

    @property
    def total(self) -> float:
        """Time of the step [s]."""
        return math.fsum(self._parts().values())

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Bounds [s] between which the measured time lies in that share of cases.

        Total times exp(-b) and exp(b), b being the error within which as many runs stayed that were
        left out of the calibration: alone with their like where measured runs with the software are
        near, else with all of their publisher, or of their accelerator where this one is new.
        """
        require_real(level=level, above=0, below=1)
        levels, bounds = zip((0.0, 0.0), *self.log_errors, strict=True)
        bound = float(np.interp(level, levels, bounds))
        return self.total * math.exp(-bound), self.total * math.exp(bound)

    def to_frame(self) -> pd.DataFrame:
        """Seconds and share of the total of every part."""
        import pandas as pd

        seconds = pd.Series(self._parts()).rename_axis("part")
        return pd.DataFrame({"seconds": seconds, "share": seconds / self.total})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the parts that take time."""
        from relparallel.plotting import bars

        seconds = self.to_frame()["seconds"]
        return bars(seconds[seconds > 0], "time of a step [s]", ax)

    def explain(self) -> str:
        """Time, interval and peak use in a sentence; then the assumptions and what does not fit."""
        return "\n".join([f"{self._said()}.", *(f"{note}." for note in self.notes)])

    def _said(self) -> str:
        low, high = self.interval(0.9)
        time = (
            f"{self.total:.4g} s per step, 90 % interval {low:.4g} to {high:.4g} s, MFU "
            f"{self.mfu:.1%}"
        )
        return f"{time}, {self.software}"


def step_time(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    *,
    software: str | None = None,
    precision: str = "bf16",
    calibrated: Calibration | None = None,
    placement: Placement | None = None,
    network: Topology | None = None,
    alive: ArrayLike | None = None,
    stage_layers: Sequence[int] | str | None = None,
    offload: str = "none",
) -> StepTime:
    """Predict the time of one training step.

    Parameters
    ----------
    model : Transformer
        What is trained.
    strategy : Strategy
        How it is split; it may leave GPUs of the cluster idle. Tensor-parallel ranks are
        neighbours, then context, data and pipeline, the default of `Placement`.
    cluster : Cluster
        With an accelerator and the bandwidth of its network.
    global_batch : int
        Sequences of a step.
    software : str, optional
        One of `softwares`: kernels, what overlaps, and the measured factor of that generation. The
        newest one that was measured on the accelerator where omitted; of one that was not, the
        interval is wider.
    precision : {"bf16", "fp8", "fp4"}
        Number format of the products with weights, of which the accelerator has a rate.
    calibrated : Calibration, optional
        Parameters of the machine; by default the shipped ones of the accelerator.
    placement : Placement, optional
        Which GPU runs which rank; the default order where omitted. Its strategy is the one above.
    network : Topology, optional
        How the GPUs are wired, hosts being GPUs; two levels of links as the cluster has them where
        omitted.
    alive : array_like, optional
        What works of the network, as `group_links` takes it.
    stage_layers : sequence of int or str, optional
        Layers of every stage, or of every chunk in the order of the model, p v numbers that sum to
        the layers of the model, or as in "4x15+1". Where omitted, they are dealt out as `Strategy`
        says.
    offload : {"none", "activations"}
        Whether what layers keep for the backward pass waits in the host's memory, as `memory`
        counts it.

    Returns
    -------
    StepTime
        Seconds by part, intervals, use of the peak, and whether it fits, with the storage of
        `memory`. Where it does not, the notes say by how much, on which stage, and the changes on
        as many GPUs with which it fits and is fastest, with its time: of up to three of sequence
        parallelism, ZeRO stage and shard group, recomputation, micro-batch, chunks per stage,
        activations in the host's memory, and larger degrees with fewer replicas; else of four.

    Notes
    -----
    A layer costs its matrix products (tiles in waves over the processors, or bytes), its
    element-wise traffic and its collectives (ring, ranks of a node sharing the network), or the
    launches of the host if those take longer. A step is m micro-batches on the slowest stage, (p -
    1)/v on the others, the transfers between them, gradients as far as nothing hides them, and the
    optimizer. O(1). Groups that a placement or a network gives less bandwidth than the default
    order on the cluster are slower by that ratio (`group_links`). Activations that leave the GPU go
    under the kernels of the forward passes and come back under those of the backward passes; what
    is seen of that is overhead.

    With ``stage_layers`` the passes are simulated. Compute to expert, head and pipeline are then
    the work of the stage that has most of it; `pipeline_bubble` is makespan less work, or the
    period of steps that overlap (zero bubble); none where nothing is flushed. Gradients and
    optimizer are those of the stage on which they take longest. O(n log n) for n passes. Equal
    layers take as long as the closed form with gpipe, 1f1b, dapple, eager_1f1b and
    interleaved_1f1b, and 2 (p - 1) transfers less without a flush. In zb_h1, zb_2p, zb_v and
    chimera the waiting stages hide part of the output layer, which the closed form adds; v_half and
    v_min, made for equal passes, can be slower by half. Narayanan et al., SC 2021, section 3.
    Korthikanti et al. 2022, section 4 and 5.

    Examples
    --------
    >>> from relparallel.hardware import cluster
    >>> gpt = Transformer(layers=128, hidden=25600, heads=160, vocabulary=51200, sequence=2048)
    >>> split = Strategy(tensor=8, pipeline=64, data=6, recompute="full")
    >>> machine = cluster("a100-80gb-selene", gpus=3072)
    >>> low, high = step_time(gpt, split, machine, 3072, software="megatron-2021").interval(0.9)
    >>> low < 102.6 < high  # measured
    True
    """
    split = pipeline_of(
        model, strategy, require_instance(Cluster, cluster=cluster), global_batch, stage_layers
    )
    slow = placement_slowdowns(strategy, cluster, placement, network, alive)
    machine = Machine.of(model, cluster, software, precision, calibrated)
    numbers = Split.of(strategy, global_batch)
    rows = Rows(Sizes.of(model), machine.rates.slowed(slow or {}), numbers)
    parts: Sequence[Numbers] = step_parts(*rows)
    if split.said is not None and rows.split.pipeline > 1:
        parts = simulated_parts(rows, split).tolist()
    away = require_choice(("none", "activations"), offload=offload)
    held = stage_memory(split, machine.software.name, precision, offload=away)
    if offload != "none":
        device = require_instance(Accelerator, accelerator=cluster.accelerator)
        if not device.host_link:
            raise ValueError(
                f"offload must be 'none' on {device.name}, whose link to the host is not known"
            )
        out, layers = float(held.transfer.max()) / 2, float(split.layers.max())
        seen = seen_of_offload(*rows, out, layers, device.host_link)
        parts = *parts[:-1], parts[-1] + seen  # the last one is overhead
    time = step_of(
        parts, machine, model, global_batch, strategy.gpus, rows.split, held.fits(cluster)
    )
    if time.fits:
        return time
    told = {"calibrated": calibrated, "network": network, "alive": alive, "offload": away}
    said = advice(step_time, machine, model, strategy, cluster, global_batch, **told)
    return replace(time, notes=(*time.notes, said))


def advice(
    predict: Callable[..., StepTime],
    machine: Machine,
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    **options: Any,
) -> str:
    """With what a strategy fits, and how long its step takes then, as somebody predicts it."""
    from relparallel.parallel.remedies import best_changes  # and pandas with it

    away = options.get("offload", "none")
    found = best_changes(model, strategy, cluster, global_batch, machine, away)
    if found is None:
        return "no four changes make it fit: more GPUs"
    changes, other = found
    options |= {"software": machine.software.name, "precision": machine.precision}
    options["offload"] = changes.get("offload", away)
    then = predict(model, other, cluster, global_batch, **options)
    said = ", ".join(f"{name} {value!r}" for name, value in changes.items())
    name = f"{notation(other)}, {then.total:.4g} s per step, MFU {then.mfu:.1%}"
    return f"it fits with {said}: {name}"


def step_of(
    parts: Sequence[Numbers],
    machine: Machine,
    model: Transformer,
    global_batch: int,
    gpus: int,
    s: Split,
    held: Verdict | None = None,
) -> StepTime:
    """Parts of a step [s] with what is known of them."""
    named: dict[str, Any] = dict(zip(PARTS, map(float, parts), strict=True))
    total, name, known = math.fsum(named.values()), machine.software.name, machine.known
    flops = machine.software.passes / 3 * model.flops_per_iteration(global_batch)
    mfu = flops / (total * gpus * machine.peak)
    family, measured, place = known.family, experience(), features(model, machine.precision, s)
    precision, own, borrowed = machine.precision, known.borrowed or family, known.borrowed
    nearest, distance = measured.nearest(place, own)
    notes = measured.beyond(sizes(model, precision, s)[0], mfu, own, precision)
    if distance > 2 * REACH:
        notes.append(f"far from all measured runs: the nearest is {nearest}, {distance:.1f} away")
    if borrowed:
        this = f"this {family}" if borrowed == family else family
        notes.append(
            f"no run on {this} was measured: parameters of the {borrowed}, interval of such loans"
        )
    if machine.assumed:
        notes.append(f"software {name} was assumed, the newest measured on {own}")
    if not known.measured(name) and not borrowed:
        notes.append(
            f"software {name} was not measured on {family}: the interval is that of other software"
        )
    if model.kind and (own, model.kind) not in measured.kinds:
        notes.append(
            f"no model with layers of its kinds ({model.kind}) was measured on {own}: the interval is "
            "wider for that"
        )
    if held is not None and not held.fits:
        notes.append(f"the strategy {held.reason}")
    return StepTime(
        **named,
        log_errors=measured.log_errors(place, mfu, known, precision, name, model.kind),
        software=name,
        mfu=mfu,
        nearest=nearest,
        distance=distance,
        memory=held,
        notes=tuple(notes),
    )


def step_timeline(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    *,
    software: str | None = None,
    precision: str = "bf16",
    calibrated: Calibration | None = None,
    stage_layers: Sequence[int] | str | None = None,
) -> Timeline:
    """Every pass of the micro-batches of a step, simulated with the layers stages really have.

    With equal chunks and a schedule that flushes (Chimera apart) the makespan is that of the closed
    form.
    """
    split = pipeline_of(
        model, strategy, require_instance(Cluster, cluster=cluster), global_batch, stage_layers
    )
    rates = Machine.of(model, cluster, software, precision, calibrated).rates
    rows = Rows(Sizes.of(model), rates, Split.of(strategy, global_batch))
    return simulated_passes(rows, split)


def slowed_step(
    model: Transformer,
    strategy: Strategy,
    cluster: Cluster,
    global_batch: int,
    slow: Mapping[str, float],
    software: str | None = None,
) -> float:
    """Seconds of a step whose groups of each degree have 1/slow of the bandwidth of the cluster."""
    pipeline_of(model, strategy, cluster, global_batch)
    rates = Machine.of(model, cluster, software).rates.slowed(slow)
    parts = step_parts(Sizes.of(model), rates, Split.of(strategy, global_batch))
    return float(np.array(parts).sum())
