"""What a data sheet does not say about a machine: shares of its peaks, latencies, the host's part.

A `Calibration` holds these parameters for one kind of accelerator, and a factor for every
generation of software measured on it. Priors and bounds stand in ``data/priors.csv``: no share
exceeds 1, and none of the peak rate what somebody has measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from relparallel._checks import (
    choice,
    flag,
    instance,
    real,
    record,
    require_choice,
    require_instance,
    whole,
)
from relparallel.hardware import Accelerator, accelerator, accelerators
from relparallel.published import data_folder, shipped_rows
from relparallel.workload.precision import PRECISIONS

if TYPE_CHECKING:
    import pandas as pd

# stands for a family in the table: how wide intervals of each level are
_EVERY: Final = "every"


@record
class Software:
    """A generation of training software: its kernels, gradients on the wire, and what it overlaps.

    ``storage``: how it keeps numbers, one of `PRECISIONS`; ``dropout``: whether its recipes drop
    out activations of models that have biases; ``expert_launch``: host time for the kernels of one
    expert of a layer, forward or backward [s]; ``node_dispatch``: a token goes once to each node
    that has some of its experts, else once to each of these; ``exchange_overlap``: that goes on
    under the work of the layer; ``graphs``: share of kernels that are replayed from CUDA graphs, so
    that they do not wait for the host;
    ``rowwise``: fp8 with a scale for each row, whose products are no faster than in bf16;
    ``adapters``: weights are frozen but for small adapters, so that only inputs have gradients;
    ``eager``: PyTorch's kernels one by one, not compiled.
    """

    name: str = instance(str)
    year: int = whole(at_least=1990, at_most=2100)
    flash_attention: bool = flag()
    fused_attention: bool = flag()
    gradient_bytes: int = whole(at_least=1, at_most=8)
    scatter_gather: bool = flag()
    bucketed: bool = flag()
    fused_elementwise: bool = flag()
    tensor_overlap: bool = flag()
    pipeline_overlap: bool = flag()
    storage: str = choice(tuple(PRECISIONS), default="mixed")
    dropout: bool = flag(default=False)
    expert_launch: float = real(default=0.0, at_least=0)
    node_dispatch: bool = flag(default=False)
    exchange_overlap: bool = flag(default=False)
    graphs: float = real(default=0.0, at_least=0, at_most=1)
    rowwise: bool = flag(default=False)
    adapters: bool = flag(default=False)
    eager: bool = flag(default=False)

    @property
    def passes(self) -> int:
        """Products of each weight in a step that its model FLOPs count."""
        return 2 if self.adapters else 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """What is known of a parameter before anything is fitted: log-normal, with a bound."""

    value: float
    log_sd: float
    highest: float


@record
class Calibration:
    """Parameters of one kind of accelerator, with the scatter of what they predict.

    Accelerators of a ``family`` share them: the part of the name before the memory size. ``values``
    has one for each parameter of `priors`, ``factors`` the time of each software, of each kind of
    layers and of both together beside the parameters' time; ``borrowed`` is the family whose runs
    they come from, where no run on this one was measured. ``scatter``: standard deviation of
    log(predicted / measured) of own runs, which no interval falls short of; that of shipped
    calibrations comes from left-out runs (`Experience`).
    """

    family: str = instance(str)
    values: Mapping[str, float] = instance(Mapping)
    factors: Mapping[str, float] = instance(Mapping)
    borrowed: str = instance(str, default="")
    scatter: float = real(default=0.0, at_least=0)

    def __post_init__(self) -> None:
        if set(self.values) != set(_prior_rows()):
            raise ValueError(
                f"values must name the parameters {sorted(_prior_rows())}, got "
                f"{sorted(self.values)}"
            )
        for name, value in {**self.values, **self.factors}.items():
            if not value > 0:
                raise ValueError(f"values and factors must be above 0, got {name}: {value}")

    def factor(self, name: str, kind: str = "") -> float:
        """Time of a software on a kind of layers beside that of the parameters alone.

        The product of what was measured of both, 1 where nothing was.
        """
        return math.prod(self.factors.get(one, 1.0) for one in factor_names(name, kind))

    def measured(self, name: str, kind: str = "") -> bool:
        """Whether a software was measured, on a kind of layers."""
        return set(factor_names(name, kind)) <= self.factors.keys()


@cache
def _prior_rows() -> dict[str, dict[str, str]]:
    return {row["parameter"]: row for row in shipped_rows("priors.csv")}


def priors(device: Accelerator) -> dict[str, Prior]:
    """Priors and bounds of the parameters for one accelerator."""
    require_instance(Accelerator, device=device)
    measured = device.matmul["bf16"] / device.peak["bf16"]
    found = {}
    for name, row in _prior_rows().items():
        highest = measured if row["highest"] == "matmul" else float(row["highest"] or "inf")
        value = row["value"] if device.family in ("v100", "a100") else row["later"] or row["value"]
        found[name] = Prior(
            value=min(float(value), 0.99 * highest), log_sd=float(row["log_sd"]), highest=highest
        )
    return found


@cache
def _softwares() -> dict[str, Software]:
    """Generations of software by name."""
    return {
        row["software"]: Software(
            name=row["software"],
            year=int(row["year"]),
            flash_attention=row["attention"] != "unfused",
            fused_attention=row["attention"] == "fused",
            gradient_bytes=int(row["gradient_bytes"]),
            storage=row["storage"],
            dropout=row["dropout"] == "1",
            scatter_gather=row["scatter_gather"] == "1",
            bucketed=row["bucketed"] == "1",
            fused_elementwise="elementwise" in row["overlaps"],
            tensor_overlap="tensor" in row["overlaps"],
            pipeline_overlap="pipeline" in row["overlaps"],
            expert_launch=float(row["expert_launch"] or 0),
            node_dispatch="dispatch" in row["overlaps"],
            exchange_overlap="exchange" in row["overlaps"],
            graphs=float("graphs" in row["overlaps"]),
        )
        for row in shipped_rows("software.csv")
    }


def softwares() -> tuple[str, ...]:
    """Names that `software` knows, in order of year."""
    return tuple(_softwares())


OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "cuda_graphs": {"graphs": 1.0},
    "partial_graphs": {"graphs": 0.5},  # all but the experts, about as many kernels
    "exchange_overlap": {"exchange_overlap": True},
    "async_tp": {"tensor_overlap": True},
    "no_tp_overlap": {"tensor_overlap": False},
    "rowwise": {"rowwise": True},
    "adapters": {"adapters": True},
    "mlperf": {},
    "eager": {"eager": True},
}
"""What a run may switch on or off in its software, as in ``torchtitan-2024+async_tp``.

``mlperf`` stands for what submissions to MLPerf Training tune beside the container of their day.
"""

_TUNED: Final = ("adapters", "mlperf")  # options whose kernels are others
_UNMASKED: Final = ("v100",)  # no fused attention is made for them: it needs an Ampere


def software(name: str) -> Software:
    """Generation of training software of that name, one of `softwares`, with some of `OPTIONS`."""
    named, *options = name.split("+") if isinstance(name, str) else [name]
    made = _softwares()[require_choice(softwares(), software=named)]
    for option in options:
        switched: Mapping[str, Any] = OPTIONS[require_choice(tuple(OPTIONS), option=option)]
        made = replace(made, **switched)
    return replace(made, name=name)


def described(name: str) -> bool:
    """Whether `software` knows a name, options aside."""
    return name.partition("+")[0] in softwares()


def generation(name: str) -> str:
    """Software without its options, but for those whose kernels are others."""
    first, *options = name.split("+")
    return "+".join([first, *(option for option in _TUNED if option in options)])


def factor_names(name: str, kind: str = "") -> tuple[str, ...]:
    """What the factor of a software is a product of: its own, its options', those of kinds of layers."""
    first, *options = generation(name).split("+")
    own = first, *(f"{first}+{option}" for option in options)
    return (*own, kind, *(f"{one} {kind}" for one in own)) if kind else own


def newest_software(device: str | Accelerator | None = None, kind: str = "") -> str:
    """Newest generation measured on an accelerator's family, on the one it borrows from, or on any.

    First come those measured on the kind of layers, and on the accelerator without attention that
    is not made for it; of several of one year the first in the table that stores no scores.
    """
    made, known, masked = _softwares(), None, False
    if device is not None:
        known = calibration(device)
        masked = known.family in _UNMASKED
        known = _calibration(known.borrowed) if known.borrowed else known

    def worth(one: str) -> tuple[Any, ...]:
        flash = made[one].flash_attention
        own = known is not None and known.measured(one, kind)
        return not (masked and flash), own, made[one].year, flash, -softwares().index(one)

    return max((one for one in made if known is None or known.measured(one)), key=worth)


@cache
def usual_options() -> Mapping[tuple[str, str, str], str]:
    """By accelerator, software and kind of layers, the software with the options of most runs."""
    rows = shipped_rows("derived/usual_options.csv")
    return {(row["chip"], row["software"], row["kind"]): row["usual"] for row in rows}


def calibration(name: str | Accelerator) -> Calibration:
    """Shipped calibration of an accelerator, fitted to all measured runs by `calibrate`.

    Parameters
    ----------
    name : str or Accelerator
        The accelerator or its name; those that differ in memory only share one.

    Returns
    -------
    Calibration
        The parameters; of an accelerator on which nobody measured a run those of the measured one
        next to it in peak rate, with the interval that such loans have (`borrow`). An own
        accelerator borrows from the family that its name begins with, as in "h100-mine" or
        "a100-80gb", where that was measured.

    Examples
    --------
    >>> 0.5 < calibration("a100-80gb").values["gemm"] < 0.87
    True
    >>> calibration("v100-32gb").borrowed
    'a100'
    """
    device = name if isinstance(name, Accelerator) else accelerator(name)
    if device.family in _families():
        own = _calibration(device.family)
        if device.name in accelerators() and device == accelerator(device.name):
            return own
        return replace(borrow(device, [own]), factors=own.factors)
    return borrow(device, map(_calibration, _families()))


def borrow(device: Accelerator, known: Iterable[Calibration]) -> Calibration:
    """Calibration of the family next to an accelerator in peak rate, within its data-sheet bounds.

    Those of its own vendor come first, else those of NVIDIA, of which most is known. Nothing is known
    of software on it. How far such a loan is off is measured where it need not be made: each
    family's runs are predicted from the next.
    """
    family = {one.family: one for one in known}
    rate = {name: accelerator(_first(name)).peak["bf16"] for name in family}
    maker = {name: accelerator(_first(name)).vendor for name in family}
    makers = (device.vendor, "NVIDIA", *maker.values())
    first = next(one for one in makers if one in maker.values())
    own = [name for name in family if maker[name] == first]
    near = min(own, key=lambda name: abs(math.log(rate[name] / device.peak["bf16"])))
    bounds = priors(device)
    values = {
        key: min(value, 0.99 * bounds[key].highest) for key, value in family[near].values.items()
    }
    return Calibration(family=device.family, values=values, factors={}, borrowed=near)


def quantiles() -> dict[float, float]:
    """Levels of intervals, and how many standard deviations of a prediction they reach."""
    table = _stored()
    own = table[table["family"] == _EVERY]
    return dict(zip(own["name"].astype(float), own["value"].astype(float), strict=True))


def _first(family: str) -> str:
    """Name of an accelerator of a family."""
    return next(name for name in accelerators() if name.rpartition("-")[0] == family)


@cache
def _families() -> tuple[str, ...]:
    """Families with measured runs."""
    return tuple(sorted(set(_stored()["family"]) - {_EVERY}))


@cache
def _stored() -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(data_folder() / "derived" / "calibration.csv")


@cache
def _calibration(family: str) -> Calibration:
    table = _stored()
    own = table[table["family"] == family]

    def part(kind: str) -> dict[str, float]:
        rows = own[own["kind"] == kind]
        return dict(zip(rows["name"].astype(str), rows["value"].astype(float), strict=True))

    return Calibration(family=family, values=part("parameter"), factors=part("factor"))
