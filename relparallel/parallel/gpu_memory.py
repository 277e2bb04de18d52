"""How much memory every stage of a strategy needs, and whether it fits.

The numbers come from the formula of ``stage_bytes.py``, which grids use too; `model_state_bytes`
and `activation_bytes_per_layer` are the published closed forms of single terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_real,
)
from relparallel.hardware import Cluster
from relparallel.parallel.bytes_by_part import (
    FRAGMENTATION,
    Dealt,
    StageBytes,
    mean_layer,
    stages,
)
from relparallel.parallel.feasibility import DEALT, RULES, broken_rules
from relparallel.parallel.machine_parameters import (
    Software,
    newest_software,
    software as known_software,
)
from relparallel.parallel.quantities import Sizes, Split, Storage
from relparallel.parallel.stages import (
    Pipeline,
    chunk_devices,
    even_chunks,
    kept_layers,
    require_stage_layers,
    stage_sums,
)
from relparallel.parallel.strategy import Strategy
from relparallel.units import GB
from relparallel.workload import Transformer
from relparallel.workload.precision import (
    PRECISIONS as PRECISIONS,
    PRODUCTS,
    Precision as Precision,
)

if TYPE_CHECKING:
    import pandas as pd

RESERVE: Final = 3.5 * GB
"""Of a GPU that no tensor can have: the driver's context, channels of the collectives, workspaces.

Chosen on the BLOOM runs: between 3.2 and 3.8 GB no verdict on them is wrong.
"""

_PARTS: Final = StageBytes._fields[:5]
_OFFLOAD: Final = ("none", "optimizer", "parameters", "activations")
_PLACES: Final = ("host", "nvme")


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether the largest stage fits, why in words, its bytes, and a GPU's after the reserve."""

    fits: bool
    reason: str
    stage: int
    needed: float
    available: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StageMemory(Result):
    """Bytes on a GPU of each pipeline stage, float64 [stages]; the first five parts sum to `total`.

    ``parameters``, ``gradients`` and ``optimizer`` are the state, or this GPU's shard of it;
    ``activations`` are kept for the backward pass of all micro-batches in flight, with what one
    layer computes again; ``buffers`` are held for a moment: gathered parameters, gradients before
    they are scattered, logits. ``setup`` is held before training starts, if that is more; ``host``
    and ``nvme`` are moved away from the GPU, ``transfer`` between the GPU and its host in a step,
    both ways. ``kept`` says in words how the software keeps them.
    """

    parameters: NDArray[np.float64]
    gradients: NDArray[np.float64]
    optimizer: NDArray[np.float64]
    activations: NDArray[np.float64]
    buffers: NDArray[np.float64]
    setup: NDArray[np.float64]
    host: NDArray[np.float64]
    nvme: NDArray[np.float64]
    transfer: NDArray[np.float64]
    kept: str = ""

    @property
    def total(self) -> NDArray[np.float64]:
        """Bytes of the five parts, while training; float64, shape (p,)."""
        return np.asarray(np.sum([getattr(self, name) for name in _PARTS], axis=0))

    @property
    def peak(self) -> NDArray[np.float64]:
        """Bytes that must be there; float64, shape (p,).

        `total` and 2 % of it, lost between the blocks of the allocator, or `setup` where that is
        more.
        """
        return np.maximum(self.total * (1 + FRAGMENTATION), self.setup)

    def fits(self, cluster: Cluster, reserve: float = RESERVE) -> Verdict:
        """Whether the largest stage fits a GPU less ``reserve`` bytes that tensors cannot have."""
        device = require_instance(Cluster, cluster=cluster).accelerator
        if device is None:
            raise ValueError(f"cluster must have an accelerator, got {cluster!r}")
        require_instance(
            float, reserve=require_real(reserve=reserve, at_least=0, at_most=device.memory)
        )
        stage, available = int(np.argmax(self.peak)), device.memory - reserve
        needed = float(self.peak[stage])
        held = {name: float(getattr(self, name)[stage]) for name in _PARTS}
        held["lost to the allocator"] = FRAGMENTATION * self.total[stage]
        if self.setup[stage] == needed:
            held = {"before the state is cut into shards": needed}
        largest = ", ".join(f"{name} {size / GB:.1f}" for name, size in held.items() if size > 0)
        fits = bool(needed <= available)
        room = f"{available / GB:.1f} GB of a {device.name} after {reserve / GB:.1f} GB of reserve"
        over = "" if fits else f", {(needed - available) / GB:,.4g} GB too many"
        reason = f"stage {stage} needs {needed / GB:.1f} GB ({largest}; {self.kept}); {room}{over}"
        return Verdict(
            fits=fits,
            reason=f"{'fits' if fits else 'does not fit'}: {reason}",
            stage=stage,
            needed=needed,
            available=available,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each stage, one column for each part, and the total."""
        import pandas as pd

        columns = {
            name: getattr(self, name) for name in (*StageBytes._fields, "host", "nvme", "transfer")
        }
        return pd.DataFrame(columns).rename_axis("stage").assign(total=self.total)

    def _said(self) -> str:
        return (
            f"{self.peak.max() / GB:.2f} GB on the largest of {len(self.peak)} stages "
            f"({self.kept}); the table in bytes"
        )


def memory(
    model: Transformer,
    strategy: Strategy,
    global_batch: int,
    *,
    software: str | None = None,
    precision: str | Precision = "bf16",
    flash_attention: bool | None = None,
    dropout: bool | None = None,
    offload: str = "none",
    offload_to: str = "host",
    stage_layers: Sequence[int] | str | None = None,
    cluster: Cluster | None = None,
) -> StageMemory:
    """Count the bytes on a GPU of every pipeline stage.

    Parameters
    ----------
    model, strategy : Transformer, Strategy
        What is trained, and how it is split.
    global_batch : int
        Sequences of a step.
    software : str, optional
        One of `softwares`: its bytes per number, whether it stores attention scores, and its
        dropout. The newest that was measured on the accelerator of the ``cluster`` where omitted,
        as in `step_time` and `plan`, and the newest of all without a cluster; DeepSpeed where the
        optimizer leaves the GPU. ``kept`` then says which was assumed.
    precision : {"bf16", "fp8", "fp4"}, str or Precision
        Number format of the products with weights, whose inputs Transformer Engine keeps in it; or
        one of `PRECISIONS` or bytes of one's own instead of those of the software.
    flash_attention : bool, optional
        Whether scores are never stored; as the software does, where omitted.
    dropout : bool, optional
        Whether masks of dropout are kept; where omitted, of models with biases by software with
        dropout.
    offload : {"none", "optimizer", "parameters", "activations"}
        What leaves the GPU: nothing, the optimizer's state, the parameters as well (``zero_stage``
        3), or what layers keep for the backward pass, but for two of them.
    offload_to : {"host", "nvme"}
        Where it goes, if anything does.
    stage_layers : sequence of int or str, optional
        Layers of every stage, or of every chunk in the order of the model, as `step_time` takes
        them.
    cluster : Cluster, optional
        Where it is to run; it says the software, where that is omitted.

    Returns
    -------
    StageMemory
        Arrays with one number for each stage.

    Notes
    -----
    A token of a layer keeps 8 h + 2 h (masks) bytes outside the tensor-parallel part, 2 (2 a + 2 g)
    d + 2 w f inside, and 5 a s of scores; g heads of keys and values of width d, w matrices in the
    block of width f. For GPT these are 10 h + 24 h + 5 a s. Mixtures of experts: f of all experts
    of a token, its k copies out and back (4 k h) or out alone, and its probabilities (4 bytes for
    each expert), the load even; layers without experts come first. Inputs of products in fp8 or fp4
    are kept in these. Recomputation keeps less, and needs what it left out for one layer at a time.
    The first stage adds the mask of the embedding (h), the last one 4 h + 4 V (fp32 logits). Layers
    are dealt out as `Strategy` says. A host that updates the weights has fp32 gradients besides the
    optimizer's state, 16 bytes of a parameter or 18 with its weights, and with DeepSpeed half as
    much again in buffers (its ``estimate_zero3_model_states_mem_needs``). Adapters are on attention
    alone. Norms are whole on every tensor rank. ZeRO shares state among
    ``shard * context`` ranks, that of an expert among ``shard * context / expert``, and never among
    tensor ranks. Korthikanti et al. 2022, section 4 and Table 2. Rajbhandari et al., SC 2020,
    section 5; Ren et al., "ZeRO-Offload", 2021. Shazeer, "GLU variants", 2020. Dao et al.,
    "FlashAttention", 2022.

    Examples
    --------
    >>> gpt3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> split = Strategy(tensor=8, pipeline=12, data=16, recompute="full")
    >>> need = memory(gpt3, split, global_batch=1536, software="megatron-2022", precision="mixed")
    >>> (need.total / GB).round(1)[[0, 1, 11]].tolist()
    [36.3, 34.0, 31.4]
    >>> from relparallel.hardware import cluster
    >>> need.fits(cluster("a100-80gb-selene", gpus=1536)).fits
    True
    """
    require_instance(Transformer, model=model)
    _require_split(model, require_instance(Strategy, strategy=strategy), stage_layers is not None)
    require_int(global_batch=global_batch, at_least=1)
    said = None if stage_layers is None else require_stage_layers(model, strategy, stage_layers)
    require_instance((Cluster, type(None)), cluster=cluster)
    device = None if cluster is None else cluster.accelerator
    state = offload in ("optimizer", "parameters")
    assumed = "deepspeed-2023" if state else newest_software(device, model.kind)
    name = assumed if software is None else software
    if software is not None and cluster is not None:
        raise ValueError(f"cluster must be left out with software, got {cluster!r}")
    if require_choice(_PLACES, offload_to=offload_to) != "host" and offload == "none":
        raise ValueError(f"offload_to must be 'host' with offload 'none', got {offload_to!r}")
    found = stage_memory(
        Pipeline(model, strategy, global_batch, said),
        name,
        precision,
        flash_attention=flash_attention,
        dropout=dropout,
        offload=offload,
        offload_to=offload_to,
    )
    return replace(found, kept=f"{found.kept}; {name} was assumed") if software is None else found


def stage_memory(
    split: Pipeline,
    software: str,
    precision: str | Precision = "bf16",
    *,
    flash_attention: bool | None = None,
    dropout: bool | None = None,
    offload: str = "none",
    offload_to: str = "host",
) -> StageMemory:
    """Count the bytes of what was checked before; as `memory`."""
    model, strategy = split.model, split.strategy
    s = Split.of(strategy, split.global_batch)
    kept, flash, masks = kept_by(
        known_software(software), model, precision, flash_attention, dropout
    )
    require_choice(_OFFLOAD, offload=offload)
    if offload == "parameters" and strategy.zero_stage < 3:
        raise ValueError(
            f"offload must not be 'parameters' with zero_stage {strategy.zero_stage}, but 3"
        )
    dealt = None if split.said is None else _dealt(strategy, s.micro_batches, split.said)
    sizes, storage = Sizes.of(model), storage_of(kept, flash_attention=flash, dropout=masks)
    less = storage_of(kept, flash_attention=flash, dropout=masks, offload=offload)
    all_here, here = (_on_stages(sizes, s, k, dealt) for k in (storage, less))
    moved = all_here - here
    shards = moved[2] / max(storage.optimizer, 1e-300)  # gradients leave, weights return
    passes = 2 * s.micro_batches  # and are read for every forward and backward pass
    transfer = storage.gathered * 2 * shards + passes * moved[0]
    if offload == "activations":  # out after every forward pass of a layer, and back
        kept_bytes = mean_layer(sizes, s, storage, sizes.mixture).kept
        transfer += passes * kept_bytes * split.layers
    # an optimizer on the host has the gradients in fp32 there, if it has not counted them
    state = moved[0] + moved[2] + 4.0 * (storage.optimizer <= 12) * shards
    nothing = np.zeros(strategy.pipeline)
    parts = dict(zip(StageBytes._fields, here, strict=True))
    in_host = kept.host_factor * state + moved[3]
    host, nvme = (in_host, nothing) if offload_to == "host" else (nothing, state + moved[3])
    said = [
        f"as {software} keeps it" if str(precision) in PRODUCTS else "bytes as given",
        "no attention scores" if flash else "attention scores stored",
        f"gradients of {kept.gradient_bytes:g} bytes",
        *(["masks of dropout"] if masks else []),
    ]
    return StageMemory(**parts, host=host, nvme=nvme, transfer=transfer, kept=", ".join(said))


def kept_by(
    software: Software,
    model: Transformer,
    precision: str | Precision = "bf16",
    flash_attention: bool | None = None,
    dropout: bool | None = None,
) -> tuple[Precision, bool, bool]:
    """Bytes of its numbers, whether scores are never stored, and masks are kept; see `memory`."""
    kept = PRECISIONS[software.storage]
    if software.adapters:  # no update needs frozen weights in a larger format
        kept = replace(kept, parameter_bytes=2.0, gradient_bytes=0.0, optimizer_bytes=0.0)
    if isinstance(precision, str):
        require_choice((*PRODUCTS, *PRECISIONS), precision=precision)
    if not isinstance(precision, str) or precision not in PRODUCTS:
        kept = known_precision(precision=precision)
    elif (
        software.fused_attention
    ):  # Transformer Engine; torchao keeps inputs in bf16 and converts them again
        kept = replace(kept, product_bytes=PRODUCTS[precision])
        if software.adapters:
            kept = replace(kept, parameter_bytes=PRODUCTS[precision])
    flash = software.flash_attention if flash_attention is None else flash_attention
    masks = software.dropout and model.biases if dropout is None else dropout
    return kept, require_flag(flash_attention=flash), require_flag(dropout=masks)


def storage_of(
    precision: Precision,
    *,
    flash_attention: bool = False,
    dropout: bool = True,
    offload: str = "none",
) -> Storage:
    """How software keeps numbers."""
    numbers: dict[str, Any] = {
        name: getattr(precision, name if name in ("bucket", "expert_copies") else f"{name}_bytes")
        for name in Storage._fields[: Storage._fields.index("sharded_storage")]
    }
    return Storage(
        **numbers,
        sharded_storage=precision.sharded_storage,
        flash=flash_attention,
        dropout=dropout,
        offload_optimizer=offload in ("optimizer", "parameters"),
        offload_parameters=offload == "parameters",
        offload_activations=offload == "activations",
    )


def _on_stages(sizes: Sizes, s: Split, k: Storage, dealt: Dealt | None) -> NDArray[np.float64]:
    """Bytes of all stages, [parts, stages]."""
    return np.array([np.broadcast_to(part, s.pipeline) for part in stages(sizes, s, k, dealt)])


def stage_peaks(
    model: Transformer, strategy: Strategy, global_batch: int, storage: Storage, layers: int
) -> NDArray[np.float64]:
    """Bytes that must be there on every stage if it held so many layers, later chunks more; [p]."""
    p, v = strategy.pipeline, strategy.virtual_stages
    s = Split.of(strategy, require_int(global_batch=global_batch, at_least=1))
    dealt = _dealt(strategy, s.micro_batches, np.repeat(even_chunks(layers, v), p))
    return np.asarray(stages(Sizes.of(model), s, storage, dealt).peak)


def _dealt(strategy: Strategy, micro_batches: int, chunks: NDArray[np.int64]) -> Dealt:
    """Layers of every stage, and times micro-batches in flight, below 0 where its chunks are equal."""
    held = stage_sums(strategy, chunks)
    differs = chunks * strategy.virtual_stages != held[chunk_devices(strategy)]
    if strategy.schedule == "chimera":
        differs = chunks != chunks[::-1]
    uneven = stage_sums(strategy, differs) > 0
    if not uneven.any():
        return Dealt(held, held[::-1], -1.0)
    flown = np.where(uneven, kept_layers(strategy, micro_batches, chunks), -1.0)
    return Dealt(held, held[::-1], flown)


def known_precision(**named: Any) -> Precision:
    """A `Precision`, or the one of `PRECISIONS` that is named."""
    (value,) = named.values()
    require_instance((str, Precision), **named)
    if isinstance(value, Precision):
        return value
    return PRECISIONS[require_choice(tuple(PRECISIONS), **named)]


def _require_split(model: Transformer, strategy: Strategy, dealt: bool) -> None:
    """Raise if a degree does not divide what it splits, or if layers not ``dealt`` do not."""
    if model.heads % strategy.tensor:
        raise ValueError(
            f"strategy must have a tensor that divides {model.heads} heads, got {strategy}"
        )
    if model.experts % strategy.expert:
        raise ValueError(
            f"strategy must have an expert that divides {model.experts}, got {strategy}"
        )
    if not dealt and broken_rules(model, Split.of(strategy), 1) & DEALT:
        raise ValueError(f"strategy breaks a rule: {RULES[DEALT.bit_length() - 1]}; got {strategy}")
