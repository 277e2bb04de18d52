"""A model, a machine and storage as numbers: what formulas of time and memory take besides a `Split`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from relparallel._checks import require_choice, require_instance
from relparallel.hardware import Cluster
from relparallel.parallel.calibration import (
    Calibration,
    Software,
    calibration,
    newest_software,
    software as known_software,
)
from relparallel.parallel.columns import Numbers
from relparallel.workload import Transformer
from relparallel.workload.mixers import attended

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
    mixed_step: Numbers
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
        cls, cluster: Cluster, calibration: Calibration, software: Software, precision: str = "bf16"
    ) -> Rates:
        """Rates of a cluster with its software.

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
            graphs=software.graphs,
            adapters=software.adapters,
            factor=calibration.factor(software.name),
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
        cluster: Cluster,
        software: str | None,
        precision: str = "bf16",
        calibrated: Calibration | None = None,
        slow: Mapping[str, float] | None = None,
    ) -> Machine:
        """Check a cluster with its software; return its rates, and what is known of both.

        Where no software is named, it is the newest that was measured on the accelerator. ``slow``
        says how much less bandwidth the groups of a degree have than in the default placement.
        """
        device = require_instance(Cluster, cluster=cluster).accelerator
        if device is None:
            raise ValueError(f"cluster must have an accelerator, got {cluster!r}")
        name = newest_software(device) if software is None else software
        programs = known_software(name)
        known = calibration(device) if calibrated is None else calibrated
        require_instance(Calibration, calibrated=known)
        return cls(
            rates=Rates.of(cluster, known, programs, precision).slowed(slow or {}),
            known=known,
            software=programs,
            assumed=software is None,
            precision=precision,
            peak=device.peak.get(precision, device.peak["bf16"]),
        )
