"""What optical switches are worth when hosts fail: a slice is put together from any working cubes.

A pod of TPU v4 has 64 cubes of 4 x 4 x 4 chips on 16 hosts. Wired for good, a slice needs its own
cubes; with optical switches, any.
"""

from dataclasses import replace

import numpy as np
import scipy

from relparallel._checks import require_probability, require_real
from relparallel.training.failures import ComponentClass, FailureModel


def usable_fraction(
    cubes_per_slice: int,
    host_up: float,
    *,
    cubes: int = 64,
    hosts_per_cube: int = 16,
    switched: bool = True,
) -> float:
    """Expected share of the N cubes of a pod that run in whole slices of n.

    Jouppi et al., "TPU v4", ISCA 2023, 2.3.

    Hosts are up with probability h, independently, and one takes its cube out. Optical switches
    make slices of any working cubes, E[floor(K/n)] n/N with K ~ Bin(N, h^hosts); not ``switched``,
    slices are fixed blocks, floor(N/n) n/N h^(hosts n) (figure 4).

    >>> round(usable_fraction(16, 0.99), 4), round(usable_fraction(16, 0.99, switched=False), 4)
    (0.7474, 0.0763)
    """
    up = _cube_up(cubes_per_slice, host_up, cubes, hosts_per_cube)
    n = cubes_per_slice
    if not switched:
        return float(cubes // n * n / cubes * up**n)
    working = np.arange(cubes + 1)
    return float(scipy.stats.binom.pmf(working, cubes, up) @ (working // n) * n / cubes)


def rewired(model: FailureModel, time: float, *, spares: int = 1) -> FailureModel:
    """The failures of a job whose optical switches put a spare in place of a lost network part.

    After ``time`` [s] circuits lead over one of ``spares`` S of each class of counted parts but
    cards ("nic"): no circuit replaces a card. The mean time for which a lost part does harm takes
    the place of its repair r: t + E[(K - S)+]/L, at most r, with K parts in repair, Poisson with
    mean L r (Little, Operations Research 9(3), 1961). Exact for t = 0, else an upper bound. Zu et
    al., NSDI 2024, section 4, for re-wiring after failures.

    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import failure_model, redundant_fabric
    >>> fabric = redundant_fabric(servers=16, planes=2)
    >>> model = failure_model(fabric, Strategy(tensor=8, data=16), repair=86400.0)
    >>> leaf = {entry.name: entry for entry in rewired(model, 60.0).classes}["leaf"]
    >>> round(leaf.repair, 1)
    62.9
    """
    require_real(time=time, at_least=0)

    def harmful(entry: ComponentClass) -> ComponentClass:
        if entry.parts is None or entry.name == "nic":
            return entry
        if entry.repair is None:
            raise ValueError(
                f"model must have a repair time for every part, got None for {entry.name!r}"
            )
        load = (rate := model.class_rate(entry)) * entry.repair
        more, most = scipy.stats.poisson.sf(np.array([spares - 1, spares]), load)
        waiting = load * more - spares * most
        harm = time + float(waiting) / rate if rate else time
        return replace(entry, repair=float(min(harm, entry.repair)))

    return replace(model, classes=tuple(harmful(entry) for entry in model.classes))


def _cube_up(cubes_per_slice: int, host_up: float, cubes: int, hosts_per_cube: int) -> float:
    """Availability of a cube, all its hosts up."""
    if cubes_per_slice > cubes:
        raise ValueError(f"cubes_per_slice must be at most cubes = {cubes}, got {cubes_per_slice}")
    return float(require_probability(host_up=host_up) ** hosts_per_cube)
