"""Strategies, models, machines and storage as numbers: what the formulas of time and memory take.

A formula asks records for their fields and computes with what it finds: the numbers of one
strategy, columns of many, or columns along axes of their own. These broadcast, so that a term is
computed once for all strategies that share what it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import MOST_DEVICES, require_choice, require_instance
from relparallel.hardware import Cluster
from relparallel.parallel.machine_parameters import (
    Calibration,
    Software,
    calibration,
    newest_software,
    software as known_software,
    usual_options,
)
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.strategy import ENDS, RECOMPUTE, Strategy
from relparallel.workload import Transformer
from relparallel.workload.mixers import attended

Numbers = Any
"""A number, or an array of them."""
Columns = TypeVar("Columns", bound=tuple[Numbers, ...])

WORDS: Final[dict[str, tuple[Any, ...]]] = {
    "sequence_parallel": (False, True),
    "recompute": RECOMPUTE,
    "schedule": SCHEDULES,
    "ends_as_layers": ENDS,
    "experts_over_tensor": (False, True),
}
"""Fields of `Strategy` whose values stand in columns by their places."""


CHIMERA: Final = SCHEDULES.index("chimera")
_FOLDED: Final = min(SCHEDULES.index(name) for name in V_SHAPED)  # and those next to it


class Split(NamedTuple):
    """The fields of a `Strategy` as numbers, with the micro-batches of a replica."""

    tensor: Numbers
    pipeline: Numbers
    data: Numbers
    context: Numbers
    expert: Numbers
    shard: Numbers
    micro_batch: Numbers
    virtual_stages: Numbers
    sequence_parallel: Numbers
    recompute: Numbers
    zero_stage: Numbers
    schedule: Numbers
    ends_as_layers: Numbers
    experts_over_tensor: Numbers
    micro_batches: Numbers

    @classmethod
    def of(cls, strategy: Strategy, global_batch: int | None = None) -> Split:
        """One strategy; no micro-batches without a batch."""
        codes: dict[str, Any] = {name: getattr(strategy, name) for name in ROW.names or ()}
        codes["shard"] = strategy.shard_group
        for name, words in WORDS.items():
            codes[name] = words.index(codes[name])
        return cls(
            **codes,
            micro_batches=0 if global_batch is None else strategy.micro_batches(global_batch),
        )

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, NDArray[Any]] | NDArray[Any], global_batch: int
    ) -> Split:
        """Rows of a grid, or its columns by name; no micro-batches where the batch is too small.

        A column that holds one number becomes that number: what depends on it alone is computed
        once.
        """
        fields: dict[str, Any] = {name: columns[name].astype(np.int64) for name in ROW.names or ()}
        fields["micro_batches"] = global_batch // (fields["data"] * fields["micro_batch"])
        for name in ROW.names or ():
            if fields[name].size and fields[name].min() == fields[name].max():
                fields[name] = fields[name].flat[0]
        return cls(**fields)

    @property
    def expert_tensor(self) -> Numbers:
        """Ranks that split one expert."""
        return where(self.experts_over_tensor == 1, 1, self.tensor)


ROW: Final = np.dtype(
    [
        (name, np.int8 if name in WORDS or name == "zero_stage" else np.int32)
        for name in Split._fields[:-1]
    ],
    align=True,
)
"""One strategy of a grid: the fields of `Strategy`."""


def bounds(name: str) -> tuple[int, int]:
    """Lowest and highest number of a field."""
    if name in WORDS:
        return 0, len(WORDS[name]) - 1
    return (0, 3) if name == "zero_stage" else (1, MOST_DEVICES)


def by_kind(recompute: Numbers, *kinds: Numbers) -> Numbers:
    """The value for a kind of recomputation, given one for each in the order of `RECOMPUTE`."""
    found = kinds[0]
    for code, value in enumerate(kinds[1:], start=1):
        if some(recompute == code):
            found = where(recompute == code, value, found)
    return found


def where(condition: Numbers, yes: Numbers, no: Numbers) -> Numbers:
    """One of two values, in a column by a column of conditions."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def some(condition: Numbers) -> bool:
    """Whether a condition holds anywhere: what holds nowhere need not be computed."""
    return bool(condition.any() if isinstance(condition, np.ndarray) else condition)


def folded(schedule: Numbers) -> Numbers:
    """Whether the path of a schedule goes down the stages and up again."""
    return (schedule >= _FOLDED) & (schedule < _FOLDED + len(V_SHAPED))


def part(condition: NDArray[np.bool_], shape: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
    """Places along every axis of a shape at which a condition, broadcast to it, holds for something."""
    condition = np.reshape(
        condition, (1,) * (len(shape) - np.ndim(condition)) + np.shape(condition)
    )
    axes = range(len(shape))
    every = (condition.any(axis=tuple(other for other in axes if other != axis)) for axis in axes)
    return np.ix_(*(np.broadcast_to(one, size) for one, size in zip(every, shape, strict=True)))


def taken(columns: Columns, rows: tuple[NDArray[np.int64], ...]) -> Columns:
    """The same of strategies at some places; columns along other axes stay as they are."""
    return type(columns)(*(_taken(column, rows) for column in columns))


def _taken(column: Numbers, rows: tuple[NDArray[np.int64], ...]) -> Numbers:
    if np.ndim(column) == 0:
        return column
    sizes = zip(column.shape, rows, strict=True)
    return column[tuple(row if size > 1 else row.ravel()[:1] * 0 for size, row in sizes)]


def rows_of(strategies: Iterable[Strategy]) -> NDArray[Any]:
    """Strategies as rows of a grid."""
    return np.array([Split.of(strategy)[:-1] for strategy in strategies], ROW)


_SAME: Final = ("layers", "hidden", "heads", "vocabulary", "sequence", "experts", "tied", "biases")

# times the bytes of fused kernels between products, forward, of Llama 3 8B: 36 bytes of a number in
# each norm, which are made in fp32, 6 in a residual sum, 20 in a rotation, 10 in a gate
_EAGER: Final = 2.9


class Sizes(NamedTuple):
    """Sizes of a model; ``matrices`` is 2, or 3 with a gate; ``positions``, ``tied``, ``biases`` 0 or 1.

    What layers do not share is a mean over all of them: the shares ``mixture`` with experts,
    ``dense`` with a dense block, ``attention`` with the own attention, whose queries look at
    ``span`` tokens (a masked half counted); weights, without and with those that expert parallelism
    splits; ``blocks`` in a layer over two; and of other mixers columns of products, FLOPs of a
    token besides (a masked half left out) and numbers it keeps. ``mtp`` layers of multi-token
    prediction come behind the last one.
    """

    layers: Numbers
    hidden: Numbers
    heads: Numbers
    kv_heads: Numbers
    head: Numbers
    queries: Numbers
    out: Numbers
    ffn: Numbers
    matrices: Numbers
    vocabulary: Numbers
    sequence: Numbers
    experts: Numbers
    active: Numbers
    shared: Numbers
    expert_ffn: Numbers
    routed: Numbers
    mixture: Numbers
    layer_weights: Numbers
    expert_weights: Numbers
    positions: Numbers
    tied: Numbers
    biases: Numbers
    attention: Numbers
    span: Numbers
    dense: Numbers
    blocks: Numbers
    mixer: Numbers
    core: Numbers
    kept: Numbers
    mtp: Numbers

    @classmethod
    def of(cls, model: Transformer) -> Sizes:
        """Sizes of one model."""
        L, mixers = model.layers, model.mixers
        out = model.heads * (model.latent.value if model.latent else model.head_width)
        # expert parallelism splits these
        own = model.mixture_layers * model.experts * model.expert_weights
        plain = model.ffn_blocks - model.mixture_layers
        full = (model.attentions - model.windowed) * model.sequence
        window = 2 * attended(model.sequence, model.window, causal=True)
        sizes = cls(
            **{name: getattr(model, name) for name in _SAME},
            kv_heads=model.key_value_heads,
            head=model.head_width,
            queries=model.attention_weights / model.hidden - out,
            out=out,
            ffn=model.ffn_hidden,
            matrices=2 + model.gated,
            active=model.active_experts,
            shared=model.shared_experts,
            expert_ffn=model.expert_hidden,
            routed=model.routed or model.hidden,
            mixture=model.mixture_layers / L,
            layer_weights=(model.layer_weights - own) / L,
            expert_weights=own / L,
            positions=model.learned_positions,
            attention=model.attentions / L,
            span=(full + model.windowed * window) / L,
            dense=1 - (L - plain) / L,
            blocks=(model.attentions + model.mixed + model.ffn_blocks) / (2 * L),
            mixer=sum(m.layers * m.weights for m in mixers) / (model.hidden * L),
            core=model.other_flops(model.sequence, causal=True) / L,
            kept=sum(m.layers * m.kept for m in mixers) / L,
            mtp=model.mtp_layers,
        )
        return cls(*map(float, sizes))._replace(layers=L, mtp=model.mtp_layers)  # these are counted


class Rates(NamedTuple):
    """What a machine and its software can do; weight products may run in a smaller number format.

    First the data sheet, then what calibration finds (see `Calibration`), how much slower than in
    the default placement on this cluster the groups of a degree are, and the software.
    """

    peak: Numbers
    weight_peak: Numbers
    precise_peak: Numbers
    memory_bandwidth: Numbers
    processors: Numbers
    node: Numbers
    node_link: Numbers
    network: Numbers

    gemm: Numbers
    grouped: Numbers
    depth: Numbers
    batched: Numbers
    flash: Numbers
    fused: Numbers
    misaligned: Numbers
    hbm: Numbers
    traffic: Numbers
    link_share: Numbers
    network_share: Numbers
    round: Numbers
    hop: Numbers
    host: Numbers
    host_backward: Numbers
    host_wide: Numbers
    micro: Numbers
    step: Numbers
    overlap: Numbers
    exposed: Numbers
    late: Numbers
    exchange_share: Numbers
    exchanged: Numbers
    sync: Numbers
    precise: Numbers

    flash_attention: Numbers
    gradient_bytes: Numbers
    scatter: Numbers
    bucketed: Numbers
    elementwise: Numbers
    tensor_overlap: Numbers
    pipeline_overlap: Numbers
    expert_launch: Numbers
    node_dispatch: Numbers
    exchange_overlap: Numbers
    graphs: Numbers
    adapters: Numbers
    factor: Numbers

    tensor_slow: Numbers = 1.0
    context_slow: Numbers = 1.0
    data_slow: Numbers = 1.0
    pipeline_slow: Numbers = 1.0

    @property
    def weight_rate(self) -> Numbers:
        """Peak rate of products with weights, of which recipes keep a share in a larger format."""
        return 1 / ((1 - self.precise) / self.weight_peak + self.precise / self.precise_peak)

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        calibration: Calibration,
        software: Software,
        precision: str = "bf16",
        kind: str = "",
    ) -> Rates:
        """Rates of a cluster with its software, for layers of a kind.

        A smaller number format speeds products with weights up by as much as has been measured for
        large ones.
        """
        device = cluster.accelerator
        if device is None or cluster.network_bandwidth is None:
            raise ValueError(
                f"cluster must have an accelerator and a network_bandwidth, got {cluster!r}"
            )
        require_choice(tuple(device.matmul), precision=precision)
        products = "bf16" if software.rowwise else precision
        precise = "fp8" if products == "fp4" else products
        return cls(
            peak=device.peak["bf16"],
            weight_peak=device.peak["bf16"] * device.matmul[products] / device.matmul["bf16"],
            precise_peak=device.peak["bf16"] * device.matmul[precise] / device.matmul["bf16"],
            memory_bandwidth=device.memory_bandwidth,
            processors=float(device.multiprocessors),
            node=float(cluster.gpus_per_node),
            node_link=device.node_link,
            network=cluster.network_bandwidth,
            flash_attention=software.flash_attention + software.fused_attention,
            gradient_bytes=float(software.gradient_bytes),
            scatter=software.scatter_gather,
            bucketed=software.bucketed,
            elementwise=_EAGER if software.eager else 0.7 if software.fused_elementwise else 1.0,
            tensor_overlap=software.tensor_overlap,
            pipeline_overlap=software.pipeline_overlap,
            expert_launch=software.expert_launch,
            node_dispatch=software.node_dispatch,
            exchange_overlap=software.exchange_overlap,
            graphs=software.graphs,
            adapters=software.adapters,
            factor=calibration.factor(software.name, kind),
            **calibration.values,
        )

    def slowed(self, slow: Mapping[str, Numbers]) -> Rates:
        """The same where the groups of each degree have less bandwidth by a factor."""
        return self._replace(
            **{f"{name}_slow": getattr(self, f"{name}_slow") * by for name, by in slow.items()}
        )


class Storage(NamedTuple):
    """How the software keeps numbers: bytes as in `Precision`, then what is true or not."""

    parameter: float
    gradient: float
    optimizer: float
    gathered: float
    setup: float
    logit: float
    loss: float
    product: float
    scratch: float
    bucket: float
    expert_copies: float
    sharded_storage: bool
    flash: bool
    dropout: bool
    offload_optimizer: bool
    offload_parameters: bool
    offload_activations: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Machine:
    """A cluster with its software: its rates, what is known, whether assumed, peak [FLOP/s]."""

    rates: Rates
    known: Calibration
    software: Software
    assumed: bool
    precision: str
    peak: float

    @classmethod
    def of(
        cls,
        model: Transformer,
        cluster: Cluster,
        software: str | None,
        precision: str = "bf16",
        calibrated: Calibration | None = None,
    ) -> Machine:
        """Check a cluster with its software; return its rates for a model, and what is known of both.

        Where no software is named, it is the newest that was measured on the accelerator, with
        layers as the model has if any was. Its options are those of the runs there.
        """
        device = require_instance(Cluster, cluster=cluster).accelerator
        if device is None:
            raise ValueError(f"cluster must have an accelerator, got {cluster!r}")
        name = newest_software(device, model.kind) if software is None else software
        chip = device.name.rpartition("-")[0]
        name = usual_options().get((chip, known_software(name).name, model.kind), name)
        programs = known_software(name)
        known = calibration(device) if calibrated is None else calibrated
        require_instance(Calibration, calibrated=known)
        return cls(
            rates=Rates.of(cluster, known, programs, precision, model.kind),
            known=known,
            software=programs,
            assumed=software is None,
            precision=precision,
            peak=device.peak.get(precision, device.peak["bf16"]),
        )
