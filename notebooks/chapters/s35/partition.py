"""Contiguous operator groups on accelerators or CPUs, as evenly loaded as can be: device placement.

Operators that must share a device become one group. What is upstream of a cut is an ideal of the
order of the groups, a stage is the difference of two ideals, so a shortest chain of ideals is an
optimal plan. Only chains that can still beat the best plan known are followed: first that of the
operators put in one line.
"""

from typing import Any, Final, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from chapters.s35._ideals import FloatArray, Groups, Ideals, IntArray, Stages
from chapters.s35._partition_milp import chain_of_ideals, least_latency
from chapters.s35.partition_problems import PartitionProblem
from relparallel._checks import require_choice
from relparallel.optimize._milp import OutOfTimeError

_MOST_IDEALS: Final = 60_000
_SECONDS: Final = 600.0  # of an integer programme, which else reports the bound that it reached


class Partition(NamedTuple):
    """Operators on devices: accelerators first, then CPUs.

    ``max_load`` [s] is the largest of ``loads``, ``latency`` [s] the time of one sample alone where
    that was minimised; ``stages`` are the operators of each device in the order of the pipeline. No
    plan is below ``bound``. ``ideals`` counts the states of the search, 0 where a MILP was solved
    instead.
    """

    max_load: float
    bound: float
    stages: tuple[tuple[str, ...], ...]
    stage_devices: tuple[int, ...]
    device: IntArray
    loads: FloatArray
    ideals: int = 0
    latency: float | None = None

    @property
    def proven(self) -> bool:
        """Whether no plan is better, to a millionth."""
        return bool((self.latency or self.max_load) <= self.bound * (1 + 1e-6))


def partition_loads(problem: PartitionProblem, device: ArrayLike, accelerators: int) -> FloatArray:
    """Seconds each device works and sends for a sample; from ``accelerators`` on they are CPUs.

    An accelerator also pays the transfer of each output that leaves it, once, and of each output
    that it needs from elsewhere, once; CPUs pay no transfers (Tarnawski et al., NeurIPS 2020).
    """
    where = np.asarray(device).tolist()
    loads = np.zeros(max(accelerators, 1 + max(where)))
    for v, d in enumerate(where):
        loads[d] += problem.accelerator_time[v] if d < accelerators else problem.cpu_time[v]
    crossings = {(u, where[v]) for u, v in problem.edges.tolist() if where[u] != where[v]}
    crossings |= {(u, where[u]) for u, _ in crossings}
    for u, d in crossings:
        loads[d] += problem.transfer_time[u] if d < accelerators else 0.0
    return loads


def throughput_partition(
    problem: PartitionProblem, *, cpus: int | None = None, method: str = "auto"
) -> Partition:
    """Contiguous stages, one for each device, whose slowest takes the least time.

    Tarnawski et al., NeurIPS 2020.

    Minimise ``max_s load(I_s - I_(s-1))`` over chains of ideals of the forward pass ("Efficient
    Algorithms for Device Placement of DNN Graph Operators"); operators of one colour share a
    device, backward ones follow theirs. Ones without work that a single other one uses share its
    device, as in the authors' code, where accelerators can run and hold them there. ``cpus``: where
    they shall not be those of the problem.

    Methods: exact by the chain of "ideals" or by an integer programme, "milp" ("auto": by ideals
    unless there are more than 60,000), which has ``y[v, s] = 1`` where v is on one of the stages
    0..s, which falls along edges and rises in s, and a variable for each output that a stage parts.
    "line" first puts the operators in one line, and "blocks" also merges branches that part and
    meet again, as PipeDream does: both give heuristics.

    >>> from chapters.s35.partition_problems import PartitionProblem
    >>> chain = PartitionProblem(
    ...     names=tuple("abcd"), edges=[(0, 1), (1, 2), (2, 3)], accelerator_time=[2, 3, 4, 1],
    ...     cpu_time=[9] * 4, transfer_time=[1, 5, 1, 0], memory_bytes=[1] * 4, colour=range(4),
    ...     is_backward=[False] * 4, supported=[True] * 4, accelerators=2, cpus=0, accelerator_memory=4,
    ... )
    >>> found = throughput_partition(chain)
    >>> found.max_load, found.stages, found.proven
    (9.0, (('a',), ('b', 'c', 'd')), True)
    """
    k, room = problem.accelerators, problem.accelerator_memory
    c = problem.cpus if cpus is None else cpus
    require_choice(("auto", "ideals", "milp", "line", "blocks"), method=method)
    groups = Groups.of(problem, room, blocks=method == "blocks")
    line = Ideals(groups, groups.line()).best_chain(k, c, room, np.inf)
    if method in ("line", "blocks"):
        if line is None:
            raise ValueError(
                f"memory must hold the stages of a line of operators, got {room} bytes"
            )
        return _partition(problem, groups, line[1], k, 0.0, groups.size + 1)
    start = np.inf if line is None else line[0]
    most = {"milp": 0.0, "ideals": np.inf}.get(method, _MOST_IDEALS)
    ideals = Ideals(groups, groups.order, most)
    counted = len(ideals) if len(ideals) <= most else 0
    if counted:
        found = ideals.best_chain(k, c, room, start) or line
        bound = found[0] if found else np.inf
    else:
        found, bound = chain_of_ideals(groups, k, c, room, line, _SECONDS)
    if found is None:
        raise ValueError(f"memory must hold the stages of {k} accelerators, got {room} bytes")
    return _partition(problem, groups, found[1], k, bound, counted)


def _partition(
    problem: PartitionProblem, groups: Groups, stages: Stages, k: int, bound: float, ideals: int
) -> Partition:
    """The plan of stages given as (device, groups)."""
    device = np.full(len(problem), -1)
    for place, held in stages:
        device[np.isin(groups.member, held)] = place
    return _priced(problem, device, [place for place, _ in stages], k, bound, ideals=ideals)


def _priced(
    problem: PartitionProblem, device: IntArray, used: list[int], k: int, bound: float, **extra: Any
) -> Partition:
    """The plan with these devices in the order of the pipeline, its loads taken anew."""
    loads, names = partition_loads(problem, device, k), np.array(problem.names, dtype=object)
    return Partition(
        max_load=float(loads.max()),
        bound=min(bound, extra.get("latency", float(loads.max()))),
        stages=tuple(tuple(names[device == place].tolist()) for place in used),
        stage_devices=tuple(used),
        device=device,
        loads=loads,
        **extra,
    )


def latency_partition(problem: PartitionProblem, *, method: str = "milp") -> Partition:
    """Return the contiguous piece of each accelerator that gets one sample through the soonest.

    There are as many CPU cores as operators can use at once. An accelerator starts when all its
    inputs are there and hands on its outputs when all its work is done; an operator on a CPU starts
    when its inputs are there. The integer programme puts the pieces of accelerators and the
    operators between them on a chain of ideals (Tarnawski et al., section 4); where its time is
    over, it reports the plan of "greedy", which fills one accelerator after the other in a
    topological order, and a bound.
    """
    k, room = problem.accelerators, problem.accelerator_memory
    require_choice(("milp", "greedy"), method=method)
    groups = Groups.of(problem, room, leaves=False)
    device, bound = _greedy(groups, k, room), 0.0
    unit = _latency(problem, device, k)
    if method == "milp" and k and unit:
        try:
            better, bound = least_latency(problem, groups, k, room, unit, _SECONDS)
            device = device if better is None else better
        except OutOfTimeError as late:
            bound = max(late.bound * unit, 0.0)
    used = [d for d in range(k + 1) if (device == d).any()]
    return _priced(problem, device, used, k, float(bound), latency=_latency(problem, device, k))


def _latency(problem: PartitionProblem, device: IntArray, k: int) -> float:
    """When the last operator is done: accelerators as one, operators on CPUs one by one."""
    loads = partition_loads(problem, device, k)
    node = [int(d) if d < k else k + v for v, d in enumerate(device)]
    joined: nx.DiGraph[int] = nx.DiGraph()
    joined.add_nodes_from(node)
    joined.add_edges_from(
        (node[u], node[v]) for u, v in problem.edges.tolist() if node[u] != node[v]
    )
    done: dict[int, float] = {}
    for x in nx.topological_sort(joined):
        takes = loads[x] if x < k else problem.cpu_time[x - k]
        done[x] = max((done[y] for y in joined.predecessors(x)), default=0.0) + float(takes)
    return max(done.values())


def _greedy(groups: Groups, k: int, room: float) -> IntArray:
    """Fill accelerators in turn along a line; what is too large goes to CPUs and ends a piece."""
    device, at, free = np.full(groups.member.size, k), 0, room
    begun = False
    for v in nx.topological_sort(groups.line()):
        fits = groups.memory[v] <= room and not groups.banned[v]
        if begun and (not fits or groups.memory[v] > free):
            at, free, begun = at + 1, room, False
        if fits and at < k:
            device[groups.member == v] = at
            free, begun = free - groups.memory[v], True
    return device
