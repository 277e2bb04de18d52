"""Published training runs, as models, strategies and clusters: what a step-time model has to predict."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from relparallel._checks import choice, instance, real, record, require_instance, whole
from relparallel.hardware import Cluster, cluster
from relparallel.parallel.strategy import Strategy
from relparallel.published import Fact, facts
from relparallel.units import MILLISECOND
from relparallel.workload import Transformer, transformer


@record
class Run:
    """One measured training step [s]: row of the facts, set of measurements, what was trained and how."""

    id: str = instance(str)
    source: str = instance(str)
    model: Transformer = instance(Transformer)
    strategy: Strategy = instance(Strategy)
    cluster: Cluster = instance(Cluster)
    global_batch: int = whole(at_least=1)
    software: str = instance(str)
    time: float = real(above=0)
    precision: str = choice(("bf16", "fp8"), default="bf16")

    @property
    def family(self) -> str:
        """Accelerators on which it took place."""
        return "" if self.cluster.accelerator is None else self.cluster.accelerator.family

    @property
    def throughput(self) -> float:
        """Tokens per second of all GPUs."""
        return self.global_batch * self.model.sequence / self.time


# Prefix of the rows: name of the set, software, cluster, vocabulary where the row does not give it. Megatron
# pads the vocabulary to a multiple of 128 tensor-parallel ranks at most: 50,257 words become 50,304 or more.
_SETS: Final[Mapping[str, tuple[str, str, str, int]]] = {
    "PTDP-T": ("PTD-P", "megatron-2021", "a100-80gb-selene", 51200),
    "KORTH": ("Korthikanti", "megatron-2022", "a100-80gb-selene", 51200),
    "BLOOM": ("BLOOM", "megatron-deepspeed-2022", "a100-80gb-jean-zay", 250880),
    "VTRAIN-M": ("vTrain, several nodes", "megatron-deepspeed-vtrain", "a100-80gb-vtrain", 50304),
    "VTRAIN-S": ("vTrain, one node", "megatron-deepspeed-vtrain", "a100-80gb-vtrain", 50304),
    "MPT": ("MPT", "llm-foundry-2023", "", 50368),
}
_MPT_CLUSTER: Final = {
    "a100_80gb": "a100-80gb-roce", "a100_40gb": "a100-40gb-roce", "h100_80gb": "h100-80gb-roce"
}  # fmt: skip
_LLAMA: Final = {"LLAMA3_8B": "llama3-8b", "LLAMA3_70B": "llama3-70b", "LLAMA3.1_405B": "llama3-405b"}
_OUTLIERS: Final = ("VTRAIN-M-0016",)  # three times as slow as its neighbours, for no reason that is known


def measured_runs(*, outliers: bool = False) -> tuple[Run, ...]:
    """Measured steps of the published facts whose inputs are complete.

    Parameters
    ----------
    outliers : bool
        Whether to keep the one declared outlier.

    Returns
    -------
    tuple of Run
        Dense transformers on A100 and H100: Megatron-LM (rows PTDP-T and KORTH), the BLOOM tuning runs,
        vTrain (only where ``RELPARALLEL_DATA`` names a folder with the facts), llm-foundry, and the dense
        Llama 3 rows of Megatron-Bridge on H100.

    Examples
    --------
    >>> run = next(run for run in measured_runs() if run.id == "PTDP-T-0010")
    >>> run.strategy.gpus, run.time
    (3072, 102.63)
    """
    require_instance(bool, outliers=outliers)
    rows = (fact for fact in facts("parallelism-cost").values() if _is_complete(fact))
    return tuple(_run(fact) for fact in rows if outliers or fact.id not in _OUTLIERS)


def _set_of(fact: Fact) -> str:
    return fact.id.rpartition("-")[0]


def _is_complete(fact: Fact) -> bool:
    """Whether the row is a measured step of a set, with every degree given."""
    if _set_of(fact) == "BRIDGE":
        row = fact.inputs
        trained = str(row.get("phase", "")).startswith("Pre")
        return trained and row.get("model") in _LLAMA and row.get("system") == "DGX-H100"
    timed = fact.quantity == "iteration time" or fact.unit == "tokens/s/GPU"
    return _set_of(fact) in _SETS and timed


def _run(fact: Fact) -> Run:
    read = {"MPT": _mpt, "BRIDGE": _bridge}.get(_set_of(fact), _megatron)
    source, software, place, model, strategy = read(fact, dict(fact.inputs))
    gpus, batch = int(fact.inputs["gpus"]), int(fact.inputs["gbs"])
    fp8 = "fp8" in str(fact.inputs.get("precision", "")).lower()
    number = float(fact.value_text)
    seconds = {
        "s": number,
        "ms": number * MILLISECOND,
        "tokens/s/GPU": batch * model.sequence / (number * gpus),
    }[fact.unit]
    return Run(
        id=fact.id, source=source, model=model, strategy=strategy.for_gpus(gpus),
        cluster=cluster(place, gpus), global_batch=batch,
        software=f"{software}-fp8" if fp8 and "foundry" in software else software,
        time=seconds, precision="fp8" if fp8 else "bf16",
    )  # fmt: skip


Read = tuple[str, str, str, Transformer, Strategy]


def _megatron(fact: Fact, row: Mapping[str, Any]) -> Read:
    """Three-dimensional parallelism."""
    source, software, place, vocabulary = _SETS[_set_of(fact)]
    chunks = int(row.get("vstages", 1))
    recompute = str(row["recompute"]).partition(" ")[0]
    strategy = Strategy(
        tensor=row["tp"],
        pipeline=row["pp"],
        data=row["dp"],
        micro_batch=row["mbs"],
        virtual_stages=chunks,
        schedule="interleaved_1f1b" if chunks > 1 else "1f1b",
        sequence_parallel=bool(row.get("seqpar", False)),
        recompute={"attn_only": "selective"}.get(recompute, recompute),
        zero_stage=int(row.get("zero", 0)),
    )
    return source, software, place, _gpt(row, row["h"], vocabulary), strategy


def _mpt(fact: Fact, row: Mapping[str, Any]) -> Read:
    """FSDP over all GPUs."""
    source, software, _, vocabulary = _SETS["MPT"]
    strategy = Strategy(
        data=row["gpus"],
        micro_batch=row["mbs"],
        zero_stage={"FULL_SHARD": 3, "SHARD_GRAD_OP": 2}[row["sharding"]],
        recompute=row["recompute"],
    )
    place = _MPT_CLUSTER[row["gpu"]]
    fp8 = " fp8" if "fp8" in row["precision"] else ""
    named = f"{source}, H100{fp8}" if "h100" in place else source
    return named, software, place, _gpt(row, row["d_model"], vocabulary), strategy


def _bridge(fact: Fact, row: Mapping[str, Any]) -> Read:
    """Dense Llama 3 on H100, FSDP or tensor, context and pipeline parallelism."""
    model = replace(transformer(_LLAMA[row["model"]]), sequence=row["s"])
    chunks = row["vstages"] if isinstance(row["vstages"], int) else 1
    split = row["tp"] * row["pp"] * row["cp"]
    strategy = Strategy(
        tensor=row["tp"], pipeline=row["pp"], context=row["cp"], data=row["gpus"] // split,
        micro_batch=row["mbs"], virtual_stages=chunks, sequence_parallel=row["tp"] > 1,
        schedule="interleaved_1f1b" if chunks > 1 else "1f1b", zero_stage=3 if row.get("fsdp", 0) else 1,
    )  # fmt: skip
    return "Megatron-Bridge, H100", "megatron-bridge-2025", "h100-80gb-dgx", model, strategy


def _gpt(row: Mapping[str, Any], hidden: int, vocabulary: int) -> Transformer:
    return Transformer(
        layers=row["layers"], hidden=hidden, heads=row["heads"], sequence=row["s"], vocabulary=vocabulary
    )
