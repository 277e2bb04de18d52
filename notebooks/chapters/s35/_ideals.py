"""Groups of operators that share a device, ideals of their order, and the best chain of ideals."""

from typing import NamedTuple

import networkx as nx
import numpy as np
from numba import njit
from numpy.typing import NDArray

from chapters.s35.partition_problems import PartitionProblem

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Stages = list[tuple[int, list[int]]]  # device, groups


class Groups(NamedTuple):
    """Operators that share a device, their order, and the sets of groups that an output joins."""

    member: IntArray  # group of each operator
    order: "nx.DiGraph[int]"
    accelerator: FloatArray
    cpu: FloatArray
    memory: FloatArray
    banned: IntArray  # operators that accelerators cannot run
    outputs: dict[frozenset[int], float]  # seconds, paid by a stage that parts the set

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.accelerator)

    @property
    def costs(self) -> FloatArray:
        """Seconds of the outputs."""
        return np.array(list(self.outputs.values()), dtype=float)

    @classmethod
    def of(
        cls, problem: PartitionProblem, room: float, blocks: bool = False, leaves: bool = True
    ) -> "Groups":
        """Colours, merged until no two need each other.

        ``blocks`` merges what branches and meets again; without ``leaves``, operators without work
        go alone.
        """
        member = np.unique(problem.colour, return_inverse=True)[1]
        if blocks:
            member = _blocks(problem, member)
        order = _order(problem, member)
        for part in nx.strongly_connected_components(order):
            member[np.isin(member, list(part))] = min(part)
        if leaves:
            member = _without_leaves(problem, member, _order(problem, member), room)
        member = np.unique(member, return_inverse=True)[1]
        own = [
            np.bincount(member, weights=amount).astype(np.float64)
            for amount in (problem.accelerator_time, problem.cpu_time, problem.memory_bytes)
        ]
        banned = np.bincount(member, weights=~problem.supported).astype(np.int64)
        outputs: dict[frozenset[int], float] = {}
        ends: dict[int, set[int]] = {}
        for u, v in problem.edges.tolist():
            ends.setdefault(u, {int(member[u])}).add(int(member[v]))
        for u, reached in ends.items():
            if len(reached) > 1 and problem.transfer_time[u] > 0:
                key = frozenset(reached)
                outputs[key] = outputs.get(key, 0.0) + float(problem.transfer_time[u])
        return cls(member, _order(problem, member), own[0], own[1], own[2], banned, outputs)

    def line(self) -> "nx.DiGraph[int]":
        """The groups one after another, each branch as far as it goes before the next."""
        waiting, order = dict(self.order.in_degree()), []
        free = [v for v, d in waiting.items() if d == 0][::-1]
        while free:
            order.append(free.pop())
            for w in sorted(self.order.successors(order[-1])):
                waiting[w] -= 1
                if waiting[w] == 0:
                    free.append(w)
        chain: nx.DiGraph[int] = nx.DiGraph()
        nx.add_path(chain, order)
        return chain


def _order(problem: PartitionProblem, member: IntArray) -> "nx.DiGraph[int]":
    """Which group must come before which: forward edges, and turned those of lone backward ones."""
    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(np.unique(member).tolist())
    lone = ~np.isin(member, member[~problem.is_backward])
    back = problem.is_backward
    for u, v in problem.edges.tolist():
        if back[u] != back[v] or member[u] == member[v]:
            continue
        if not back[v]:
            order.add_edge(int(member[u]), int(member[v]))
        elif lone[u] or lone[v]:
            order.add_edge(int(member[v]), int(member[u]))
    return order


def _without_leaves(
    problem: PartitionProblem, member: IntArray, order: "nx.DiGraph[int]", room: float
) -> IntArray:
    """Idle groups that touch a single other one go with it, where it may still use accelerators."""
    banned = np.bincount(member, weights=~problem.supported) > 0
    memory = np.bincount(member, weights=problem.memory_bytes)
    light = (memory == 0) | (memory.sum() <= room)
    work = np.bincount(member, weights=problem.accelerator_time + problem.cpu_time)
    across = problem.edges[problem.is_backward[problem.edges].any(axis=1)]
    tied = set(member[across[~problem.is_backward[across]]].tolist())
    near = {v: set(order.predecessors(v)) | set(order.successors(v)) for v in order}
    found = member.copy()
    waiting = sorted(near)
    while waiting:
        v = waiting.pop(0)
        if v in near and v not in tied and work[v] == 0 and len(near[v]) == 1:
            (w,) = near[v]
            if not (banned[w] or (light[v] and not banned[v])):
                continue
            del near[v]
            near[w].discard(v)
            found[found == v] = w
            waiting.append(w)
    return found


def _blocks(problem: PartitionProblem, member: IntArray) -> IntArray:
    """Merge the makers in each biconnected part of the graph, as PipeDream's baseline does."""
    side = 2 * member + problem.is_backward
    makers = set(map(tuple, side[problem.edges].tolist()))
    free = set(side[problem.transfer_time == 0].tolist()) - set(
        side[problem.transfer_time > 0].tolist()
    )
    kept: nx.DiGraph[int] = nx.DiGraph([(u, v) for u, v in makers if u != v and u not in free])
    joined: nx.Graph[int] = nx.Graph()
    joined.add_nodes_from(np.unique(member).tolist())
    for part in nx.biconnected_component_edges(kept.to_undirected()):
        tails = {u for a, b in part for u, v in ((a, b), (b, a)) if kept.has_edge(u, v)}
        first = min(tails) // 2
        joined.add_edges_from((first, u // 2) for u in tails)
    found = member.copy()
    for together in nx.connected_components(joined):
        found[np.isin(member, list(together))] = min(together)
    return found


class Ideals:
    """Sets of groups that hold all that comes before their members, and how they grow by a group.

    The search of ideals stops when there are more than ``most``.
    """

    def __init__(self, groups: Groups, order: "nx.DiGraph[int]", most: float = np.inf) -> None:
        self.groups = groups
        before = {v: sum(1 << u for u in order.predecessors(v)) for v in order}
        number: dict[int, int] = {0: 0}
        sets, free = [0], [sorted(v for v in before if not before[v])]
        begins, added, target = [0], [], []
        for ideal in sets:
            place = number[ideal]
            for v in free[place]:
                larger = ideal | 1 << v
                if larger not in number:
                    number[larger] = len(sets)
                    sets.append(larger)
                    new = [w for w in order.successors(v) if before[w] & ~larger == 0]
                    free.append([w for w in free[place] if w != v] + new)
                added.append(v)
                target.append(number[larger])
            begins.append(len(added))
            if len(sets) > most:
                break
        self.sets = sets
        self.begins, self.added, self.target = (
            np.array(x, dtype=np.int64) for x in (begins, added, target)
        )

    def __len__(self) -> int:
        return len(self.sets)

    def best_chain(self, k: int, c: int, room: float, below: float) -> tuple[float, Stages] | None:
        """Least largest load under ``below``, its stages (device, groups); None if none exists."""
        g = self.groups
        outputs = list(g.outputs.items())
        touched: list[list[int]] = [[] for _ in range(g.size)]
        for e, (ends, _) in enumerate(outputs):
            for v in ends:
                touched[v].append(e)
        starts = np.cumsum([0, *map(len, touched)])
        counts = np.zeros((len(self), len(outputs)), dtype=np.int16)
        sums = np.zeros((len(self), 4))
        own = np.stack([g.accelerator, g.cpu, g.memory, g.banned], axis=1)
        for i in range(len(self)):
            for j in range(self.begins[i], self.begins[i + 1]):
                v, larger = self.added[j], self.target[j]
                sums[larger] = sums[i] + own[v]
                counts[larger] = counts[i]
                counts[larger, touched[v]] += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = float(np.nanmax(np.append(g.accelerator / g.cpu, 0.0)))
        ends_of = np.array([len(ends) for ends, _ in outputs], np.int16)
        flat = np.array([e for held in touched for e in held], dtype=np.int64)
        graph = self.begins, self.added, self.target, sums, counts
        best, before = _chains(*graph, g.costs, ends_of, starts, flat, k, c, room, below, gain)
        at, (value, a, b) = (
            len(self) - 1,
            min((best[-1, a, b], a, b) for a, b in np.ndindex(k + 1, c + 1)),
        )
        stages: Stages = []
        while at and value < np.inf:
            earlier, on_cpu = divmod(int(before[at, a, b]), 2)
            held = self.sets[at] & ~self.sets[earlier]
            a, b = (a, b - 1) if on_cpu else (a - 1, b)
            stages.append((k + b if on_cpu else a, [v for v in range(g.size) if held >> v & 1]))
            at = earlier
        return (float(value), stages[::-1]) if value < np.inf else None


@njit(cache=True)  # type: ignore[misc]
def _chains(  # type: ignore[no-untyped-def]
    begins, added, target, sums, counts, cost, ends, starts, touched, k, c, room, below, gain
):
    """Least largest load of every ideal with a accelerators and b CPUs, and the ideal before it.

    ``gain``: most seconds of an accelerator that a second of a CPU can take over.
    """
    n = begins.size - 1
    best = np.full((n, k + 1, c + 1), np.inf)
    before = np.zeros((n, k + 1, c + 1), dtype=np.int64)
    best[0, 0, 0] = 0.0
    seen = np.full(n, -1)
    sent = np.zeros(n)
    queue = np.empty(n, dtype=np.int64)
    all_work = sums[n - 1, 0]
    for low in range(n - 1):
        alive = False
        for a in range(k + 1):
            for b in range(c + 1):
                if best[low, a, b] < below:
                    takes = k - a + (gain * (c - b) if c > b else 0.0)
                    most = takes * below if takes > 0 else 0.0
                    if all_work - sums[low, 0] <= most * (1 + 1e-12):
                        alive = True
                    else:
                        best[low, a, b] = np.inf
        if not alive:
            continue
        queue[0], head, tail = low, 0, 1
        seen[low], sent[low] = low, 0.0
        while head < tail:
            at = queue[head]
            head += 1
            work = sums[at, 0] - sums[low, 0]
            slow = sums[at, 1] - sums[low, 1]
            fits = k > 0 and work < below and sums[at, 2] - sums[low, 2] <= room
            fits = fits and sums[at, 3] == sums[low, 3]
            fits_cpu = c > 0 and slow < below
            if not (fits or fits_cpu):
                continue
            if at != low:
                load = work + sent[at]
                for a in range(k + 1):
                    for b in range(c + 1):
                        if best[low, a, b] >= below:
                            continue
                        if fits and a < k:
                            new = max(best[low, a, b], load)
                            if new < best[at, a + 1, b] and new < below:
                                best[at, a + 1, b], before[at, a + 1, b] = new, 2 * low
                        if fits_cpu and b < c:
                            new = max(best[low, a, b], slow)
                            if new < best[at, a, b + 1] and new < below:
                                best[at, a, b + 1], before[at, a, b + 1] = new, 2 * low + 1
            for j in range(begins[at], begins[at + 1]):
                larger = target[j]
                if seen[larger] == low:
                    continue
                seen[larger] = low
                extra = sent[at]
                for i in range(starts[added[j]], starts[added[j] + 1]):
                    e = touched[i]
                    held = counts[at, e] - counts[low, e]
                    if held == 0:
                        extra += cost[e]
                    if held + 1 == ends[e]:
                        extra -= cost[e]
                sent[larger] = extra
                queue[tail] = larger
                tail += 1
    return best, before
