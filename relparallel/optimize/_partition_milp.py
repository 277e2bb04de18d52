"""The chain of ideals as a mixed-integer programme."""

from itertools import combinations
from time import monotonic

import numpy as np
from scipy.sparse import coo_array

from relparallel.optimize._ideals import Groups, Stages
from relparallel.optimize._milp import FloatArray, OutOfTimeError, least


class Rows:
    """Rows ``sum of coefficient * variable <= upper`` of a programme, collected one by one."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self._entries: list[tuple[int, int, float]] = []

    def add(self, terms: list[tuple[int, float]], upper: float) -> None:
        """One row; a variable may occur in several terms."""
        self._entries += [(len(self.upper), variable, factor) for variable, factor in terms]
        self.upper.append(upper)

    def least(self, cost: FloatArray, whole: int, seconds: float) -> tuple[FloatArray | None, float]:
        """Solve; the first ``whole`` variables are 0 or 1, the others between."""
        row, column, factor = zip(*self._entries, strict=True)
        matrix = coo_array((factor, (row, column)), shape=(len(self.upper), cost.size)).tocsr()
        return least(
            cost, matrix, -np.inf, self.upper, whole=np.arange(cost.size) < whole, seconds=max(seconds, 1e-3)
        )


def chain_of_ideals(
    groups: Groups, k: int, c: int, room: float, start: tuple[float, Stages] | None, seconds: float
) -> tuple[tuple[float, Stages] | None, float]:
    """The least largest load with its stages, and a bound of all: a programme for each place of CPUs."""
    best, bounds, end = start, [], monotonic() + seconds
    for places in combinations(range(k + c), c):
        below = (
            best[0]
            if best
            else float(np.maximum(groups.accelerator, groups.cpu).sum()) + 2 * sum(groups.outputs.values())
        )
        try:
            found, bound = _programme(groups, k + c, places, room, below, end - monotonic())
        except OutOfTimeError as late:
            bounds.append(max(late.bound * below, 0.0))
            continue
        if found is not None:
            best = found
            bounds.append(bound)
    return best, min([*bounds, best[0]] if best else [*bounds, 0.0])


def _programme(
    groups: Groups, stages: int, places: tuple[int, ...], room: float, below: float, seconds: float
) -> tuple[tuple[float, Stages] | None, float]:
    """The best chain with CPUs at these places, if not above ``below``, the unit of time of the programme."""
    n, outputs, rows = groups.size, list(groups.outputs.items()), Rows()
    whole = n * (stages - 1)
    size = whole + stages * len(outputs) + 1

    def on(v: int, s: int, sign: float = 1.0) -> tuple[list[tuple[int, float]], float]:
        """Whether group v is on stage s: terms and a constant."""
        terms = [(v * (stages - 1) + s, sign)] if s < stages - 1 else []
        terms += [(v * (stages - 1) + s - 1, -sign)] if s else []
        return terms, sign if s == stages - 1 else 0.0

    for v in range(n):
        for s in range(stages - 2):
            rows.add([(v * (stages - 1) + s, 1.0), (v * (stages - 1) + s + 1, -1.0)], 0.0)
    for u, v in groups.order.edges:
        for s in range(stages - 1):
            rows.add([(v * (stages - 1) + s, 1.0), (u * (stages - 1) + s, -1.0)], 0.0)
    for s in range(stages):
        amounts = [(groups.cpu / below, 0.0)] if s in places else [
            (groups.accelerator / below, 0.0), (groups.memory / max(room, 1.0), room / max(room, 1.0)),
            (groups.banned.astype(float), 0.0),
        ]  # fmt: skip
        for i, (amount, most) in enumerate(amounts):
            terms = [(size - 1, -1.0)] if i == 0 else []
            for v in np.flatnonzero(amount).tolist():
                more, constant = on(v, s, float(amount[v]))
                terms, most = terms + more, most - constant
            if i == 0 and s not in places:
                terms += [(whole + s * len(outputs) + e, cost / below) for e, (_, cost) in enumerate(outputs)]
            rows.add(terms, most)
        for e, (ends, _) in enumerate(outputs if s not in places else []):
            circle = sorted(ends)
            for u, v in zip(circle, circle[1:] + circle[:1], strict=True):
                (plus, one), (minus, other) = on(u, s), on(v, s, -1.0)
                rows.add([*plus, *minus, (whole + s * len(outputs) + e, -1.0)], -one - other)
    x, bound = rows.least(np.eye(size)[-1], whole, seconds)
    if x is None:
        return None, np.inf
    stage = stages - 1 - x[:whole].reshape(n, stages - 1).sum(axis=1).astype(int)
    k, plan = stages - len(places), []
    for s in range(stages):
        device = k + places.index(s) if s in places else s - sum(place < s for place in places)
        plan.append((device, np.flatnonzero(stage == s).tolist()))
    return (float(x[-1]) * below, [part for part in plan if part[1]]), bound * below
