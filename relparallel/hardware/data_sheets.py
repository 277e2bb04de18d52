"""Accelerators: what one GPU can do at most, and what has been measured of it."""

from collections.abc import Mapping
from functools import cache

from relparallel._checks import instance, real, record, require_choice, require_real, whole
from relparallel.published import shipped_rows
from relparallel.units import GB, GIB, MB, TFLOP


@record
class Accelerator:
    """One GPU.

    Parameters
    ----------
    name : str
        Under which `accelerator` finds it.
    peak, matmul : Mapping of str to float
        Dense matrix products by number format ("bf16", "fp8", "fp4") [FLOP/s], and the best rate
        that anybody has measured for one, which no model may exceed.
    memory, memory_bandwidth : float
        [bytes] and [bytes/s].
    node_link : float
        To the other GPUs of its node, in one direction [bytes/s].
    multiprocessors : int
        Units that work on one tile of a matrix product each.
    host_link : float
        To the memory of the host, in one direction [bytes/s]; 0 where it is not known.
    """

    name: str = instance(str)
    peak: Mapping[str, float] = instance(Mapping)
    matmul: Mapping[str, float] = instance(Mapping)
    memory: float = real(above=0, at_most=1e30)
    memory_bandwidth: float = real(above=0, at_most=1e30)
    node_link: float = real(above=0, at_most=1e30)
    multiprocessors: int = whole(at_least=1)
    host_link: float = real(default=0.0, at_least=0, at_most=1e30)

    def __post_init__(self) -> None:
        for kind in ("peak", "matmul"):
            for rate in getattr(self, kind).values():
                require_real(**{kind: rate}, above=0, at_most=1e30)
            if "bf16" not in getattr(self, kind):
                raise ValueError(
                    f"{kind} must give a rate of bf16, got {dict(getattr(self, kind))}"
                )
        units = {
            "peak": min(self.peak.values()),
            "matmul": min(self.matmul.values()),
            "memory": self.memory,
        }
        bandwidths = {"memory_bandwidth": self.memory_bandwidth, "node_link": self.node_link}
        for name, value in {**units, **bandwidths}.items():
            if value < MB:
                unit = (
                    "FLOP/s (989 TFLOP/s is 989e12)"
                    if name in ("peak", "matmul")
                    else "bytes, bytes/s"
                )
                raise ValueError(f"{name} must be at least 1e6, in {unit}, got {value:g}")
        for number, rate in self.matmul.items():
            if rate > self.peak.get(number, 0.0):
                raise ValueError(
                    f"matmul must not exceed peak = {dict(self.peak)}, got {number}: {rate}"
                )

    @property
    def family(self) -> str:
        """Chip, which others may share: that of the table, else its name without memory size."""
        name = _without_memory(self.name)
        return _chips().get(name, name)

    @property
    def vendor(self) -> str:
        """Maker of the chip, as its name begins; the family itself where that tells none."""
        return next(
            (who for who, how in _MAKERS.items() if self.family.startswith(how)), self.family
        )


_MAKERS = {  # by how families of chips begin
    "AMD": ("mi1", "mi2", "mi3", "mi4"),
    "Google": ("tpu-",),
    "NVIDIA": ("v1", "a1", "a3", "a4", "h1", "h2", "h8", "b1", "b2", "b3", "gb", "gh", "l4"),
}


def _without_memory(name: str) -> str:
    return name.rpartition("-")[0] or name


@cache
def _chips() -> dict[str, str]:
    """Chips of shipped accelerators that are not called as their chip is."""
    rows = shipped_rows("accelerators.csv")
    return {_without_memory(row["accelerator"]): row["chip"] for row in rows if row["chip"]}


@cache
def _rows() -> dict[str, dict[str, float]]:
    """Shipped numbers by accelerator and quantity."""
    found: dict[str, dict[str, float]] = {}
    for row in shipped_rows("accelerators.csv"):
        found.setdefault(row["accelerator"], {})[row["quantity"]] = float(row["value"])
    return found


def accelerators() -> tuple[str, ...]:
    """Names that `accelerator` knows.

    Returns
    -------
    tuple of str
        In alphabetical order.

    Examples
    --------
    >>> accelerators()[:2]
    ('a100-40gb', 'a100-80gb')
    """
    return tuple(sorted(_rows()))


def accelerator(name: str) -> Accelerator:
    """Accelerator of that name.

    Parameters
    ----------
    name : str
        One of `accelerators`.

    Returns
    -------
    Accelerator
        With the numbers of its data sheet; ``data/accelerators.csv`` names the source of each.

    Examples
    --------
    >>> accelerator("h100-80gb").multiprocessors
    132
    """
    row = _rows()[require_choice(accelerators(), name=name)]
    rates = {
        kind: {
            quantity.removeprefix(f"{kind} "): value * TFLOP
            for quantity, value in row.items()
            if quantity.startswith(f"{kind} ")
        }
        for kind in ("peak", "matmul")
    }
    return Accelerator(
        name=name,
        **rates,
        memory=row["memory"] * GIB,  # sold as GB, counted in stacks of 8 or 16 GiB
        memory_bandwidth=row["memory bandwidth"] * GB,
        node_link=row["node link"] * GB,
        multiprocessors=int(row["multiprocessors"]),
        host_link=row.get("host link", 0.0) * GB,
    )
