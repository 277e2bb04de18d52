"""Consecutive groups of a chain on devices, any group cost: one dynamic programme, many planners.

A group that ends the chain so far takes its value v to ``max(v + add, floor)``. With ``add`` 0 the
floor is the time of a stage, and the value that of the slowest one: planners of pipelines. With no
floor the costs add up. With both, groups follow each other and none begins before it is ready:
messages of merged gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import require_flag, require_instance, require_int

__all__ = ["best_chains"]

FloatArray = NDArray[np.float64]
Group = tuple[int, int, int]
"""First item, item behind the last one, and devices."""
Cost = Callable[[int, int, int], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chains:
    """Least values of chains by devices, first item and item behind the last; infinite if none.

    ``last_start`` and ``last_devices``: where the last group of that chain begins, and its devices.
    """

    values: FloatArray
    last_start: NDArray[np.int64]
    last_devices: NDArray[np.int64]

    @property
    def value(self) -> float:
        """Of the whole chain on all devices."""
        return float(self.values[-1, 0, -1])

    def groups(self, start: int = 0, devices: int | None = None) -> tuple[Group, ...]:
        """Return groups of the best chain from an item to the last, on all devices by default."""
        return self.groups_to(self.values.shape[2] - 1, start, devices)

    def groups_to(self, stop: int, start: int = 0, devices: int | None = None) -> tuple[Group, ...]:
        """Return the groups of the best chain of the items ``start`` to ``stop - 1``."""
        left = len(self.values) - 1 if devices is None else devices
        if not np.isfinite(self.values[left, start, stop]):
            raise ValueError(f"devices must be a number that some chain uses, got {left}")
        found: list[Group] = []
        while stop > start:
            begin, used = (
                int(self.last_start[left, start, stop]),
                int(self.last_devices[left, start, stop]),
            )
            found.append((begin, stop, used))
            stop, left = begin, left - used
        return tuple(found[::-1])


def best_chains(
    items: int, cost: Cost, *, devices: int = 0, most: int | None = None, every_start: bool = False
) -> Chains:
    """Return the least value of dividing a chain into consecutive groups.

    Parameters
    ----------
    items : int
        Number of items of the chain.
    cost : callable
        From (stop, used, k) to ``add`` and ``floor`` of the groups of items i to stop - 1, each i
        below stop, on k devices, ``used`` devices being in use with them; infinite where there is
        no such group. Where k = used, the group is the first.
    devices : int
        Devices of a chain, all in use; 0 where groups take none.
    most : int, optional
        Devices of a group, at most; by default as many as there are.
    every_start : bool
        Whether chains may begin at any item, for a higher level of which each group is such a
        chain.

    Returns
    -------
    Chains
        No chain has a smaller value.

    Notes
    -----
    ``F(m, j) = min over i < j, k <= m of max(F(m - k, i) + add, floor)``, exact because a smaller
    value before never makes a larger one after. O(n^2 m^2), and n times that for every start.
    Narayanan et al., "PipeDream", SOSP 2019, section 3.1.

    Examples
    --------
    Two groups that cost 1 each and the square of what they hold:

    >>> sizes = np.array([1.0, 2.0, 3.0])
    >>> held = lambda stop: np.cumsum(sizes[:stop][::-1])[::-1]
    >>> best_chains(3, lambda stop, used, k: (1 + held(stop) ** 2, -np.inf)).groups()
    ((0, 1, 0), (1, 2, 0), (2, 3, 0))
    """
    require_int(items=items, at_least=1)
    require_int(devices=devices, at_least=0)
    largest = devices if most is None else require_int(most=most, at_least=1)
    require_instance(Callable, cost=cost)  # type: ignore[arg-type]
    rows = np.arange(items if require_flag(every_start=every_start) else 1)
    values = np.full((devices + 1, rows.size, items + 1), np.inf)
    values[0, rows, rows] = 0.0
    starts, taken = np.zeros((2, *values.shape), dtype=np.int64)
    counts = range(1, devices + 1) if devices else range(1)
    for stop in range(1, items + 1):
        reached = rows[: min(stop, rows.size)]
        for used in counts:
            for k in range(1, min(used, largest) + 1) if devices else range(1):
                add, floor = cost(stop, used, k)
                ended = np.maximum(values[used - k, reached, :stop] + add, floor)
                start = ended.argmin(axis=1)
                least = ended[reached, start]
                better = reached[least < values[used, reached, stop]]
                values[used, better, stop] = least[better]
                starts[used, better, stop], taken[used, better, stop] = start[better], k
    return Chains(values=values, last_start=starts, last_devices=taken)
