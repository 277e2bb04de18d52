"""What optical switches are worth when hosts fail: a slice is put together from any cubes that work.

A pod of TPU v4 has 64 cubes of 4 x 4 x 4 chips on 16 hosts. Wired for good, a slice needs its own cubes; with
optical switches, any.
"""

from dataclasses import replace

import numpy as np
import scipy

from relparallel._checks import require_flag, require_instance, require_int, require_probability
from relparallel.training._arguments import require_time
from relparallel.training.failures import ComponentClass, FailureModel


def usable_fraction(
    cubes_per_slice: int,
    host_up: float,
    *,
    cubes: int = 64,
    hosts_per_cube: int = 16,
    switched: bool = True,
) -> float:
    """Expected share of the cubes of a pod that run in whole slices.

    Parameters
    ----------
    cubes_per_slice : int
        n; at most ``cubes``.
    host_up : float
        Availability h of a host; hosts fail independently, and one takes its cube out.
    cubes, hosts_per_cube : int
        Of the pod, N, and of a cube.
    switched : bool
        Whether optical switches make slices of any working cubes; else slices are fixed blocks.

    Returns
    -------
    float
        E[floor(K/n)] n/N with K ~ Bin(N, h^hosts); of fixed blocks floor(N/n) n/N h^(hosts n). O(N).

    References
    ----------
    Jouppi et al., "TPU v4", ISCA 2023, section 2.3 and figure 4.

    Examples
    --------
    >>> round(usable_fraction(16, 0.99), 4), round(usable_fraction(16, 0.99, switched=False), 4)
    (0.7474, 0.0763)
    """
    up = _cube_up(cubes_per_slice, host_up, cubes, hosts_per_cube)
    n = cubes_per_slice
    if not require_flag(switched=switched):
        return float(cubes // n * n / cubes * up**n)
    working = np.arange(cubes + 1)
    return float(scipy.stats.binom.pmf(working, cubes, up) @ (working // n) * n / cubes)


def slice_availability(
    slices: int,
    cubes_per_slice: int,
    host_up: float,
    *,
    cubes: int = 64,
    hosts_per_cube: int = 16,
    switched: bool = True,
) -> float:
    """Probability that so many slices run at once; cubes beyond them are spares only if they are switched.

    Parameters
    ----------
    slices, cubes_per_slice : int
        Slices promised, and the n cubes of each; together at most ``cubes``.
    host_up, cubes, hosts_per_cube, switched : float, int, int, bool
        As in `usable_fraction`.

    Returns
    -------
    float
        P(K >= s n); of floor(N/n) fixed blocks that at least s work.

    References
    ----------
    Zu et al., "Resiliency at scale: managing Google's TPUv4 machine learning supercomputer", NSDI 2024.

    Examples
    --------
    >>> round(slice_availability(3, 16, 0.99), 4), round(slice_availability(3, 16, 0.99, switched=False), 4)
    (0.9894, 0.0017)
    """
    up = _cube_up(cubes_per_slice, host_up, cubes, hosts_per_cube)
    if require_int(slices=slices, at_least=1) * cubes_per_slice > cubes:
        raise ValueError(f"slices must need at most {cubes} cubes, got {slices} of {cubes_per_slice}")
    if require_flag(switched=switched):
        return float(scipy.stats.binom.sf(slices * cubes_per_slice - 1, cubes, up))
    return float(scipy.stats.binom.sf(slices - 1, cubes // cubes_per_slice, up**cubes_per_slice))


def rewired(
    model: FailureModel, time: float, *, spares: int = 1, fixed: tuple[str, ...] = ("nic",)
) -> FailureModel:
    """Let optical switches put a spare in place of a lost network part instead of waiting for its repair.

    Parameters
    ----------
    model : FailureModel
        Of a topology; what is re-wired are its counted parts.
    time, spares : float, int
        From the loss until circuits lead over the spare [s]; spare parts S of each class.
    fixed : tuple of str
        Classes that stay as they are: no circuit replaces a card.

    Returns
    -------
    FailureModel
        The same parts and rates; the mean time for which a lost part does harm takes the place of its repair:
        t + E[(K - S)+]/L, at most r, with K parts in repair, Poisson with mean L r (Little's law). Exact for
        t = 0, else an upper bound.

    References
    ----------
    Little, Operations Research 9(3), 1961. Zu et al., NSDI 2024, section 4, for re-wiring after failures.

    Examples
    --------
    >>> from relparallel.parallel import Strategy
    >>> from relparallel.training import failure_model, redundant_fabric
    >>> fabric = redundant_fabric(servers=16, planes=2)
    >>> model = failure_model(fabric, Strategy(tensor=8, data=16), repair=86400.0)
    >>> leaf = {entry.name: entry for entry in rewired(model, 60.0).classes}["leaf"]
    >>> round(leaf.repair, 1)
    62.9
    """
    require_instance(FailureModel, model=model)
    require_time(time=time)
    require_int(spares=spares, at_least=0, at_most=10**6)
    for name in require_instance(tuple, fixed=fixed):
        require_instance(str, fixed=name)

    def harmful(entry: ComponentClass) -> ComponentClass:
        if entry.parts is None or entry.name in fixed:
            return entry
        if entry.repair is None:
            raise ValueError(f"model must have a repair time for every part, got None for {entry.name!r}")
        load = (rate := model.class_rate(entry)) * entry.repair
        waiting = load * scipy.stats.poisson.sf(spares - 1, load) - spares * scipy.stats.poisson.sf(
            spares, load
        )
        harm = time + float(waiting) / rate if rate else time
        return replace(entry, repair=float(min(harm, entry.repair)))

    return replace(model, classes=tuple(harmful(entry) for entry in model.classes))


def _cube_up(cubes_per_slice: int, host_up: float, cubes: int, hosts_per_cube: int) -> float:
    """Availability of a cube, all its hosts up."""
    require_int(cubes=cubes, hosts_per_cube=hosts_per_cube, at_least=1, at_most=10**6)
    if require_int(cubes_per_slice=cubes_per_slice, at_least=1) > cubes:
        raise ValueError(f"cubes_per_slice must be at most cubes = {cubes}, got {cubes_per_slice}")
    require_probability(host_up=host_up)
    if not isinstance(host_up, int | float):
        raise TypeError(f"host_up must be one number, got {host_up!r}")
    return float(host_up**hosts_per_cube)
