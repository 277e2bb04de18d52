"""Operators on accelerators and CPUs so that a single sample is done as soon as can be."""

import networkx as nx
import numpy as np

from relparallel._checks import require_choice, require_instance, require_int, require_real
from relparallel.optimize._ideals import Groups, IntArray
from relparallel.optimize._milp import OutOfTimeError
from relparallel.optimize._partition_milp import least_latency
from relparallel.optimize.partition import Partition, partition_loads, priced
from relparallel.workload.partition_problems import PartitionProblem


def latency_partition(
    problem: PartitionProblem,
    *,
    accelerators: int | None = None,
    memory: float | None = None,
    method: str = "milp",
    seconds: float = 600.0,
) -> Partition:
    """Return the contiguous piece of each accelerator that gets one sample through the soonest.

    Parameters
    ----------
    problem : PartitionProblem
        What is placed; as many CPU cores as operators can use at once.
    accelerators, memory : int, float, optional
        Accelerators and bytes of each, where they shall not be those of the problem.
    method : {"milp", "greedy"}
        Integer programme, or filling one accelerator after the other in a topological order.
    seconds : float
        Time for the programme, which then reports the plan of ``"greedy"`` and a bound.

    Returns
    -------
    Partition
        With ``latency``.

    Notes
    -----
    An accelerator starts when all its inputs are there and hands on its outputs when all its work is done:
    ``finish = start + load``. An operator on a CPU starts when its inputs are there. The programme puts the
    pieces of accelerators and the operators between them on a chain of ideals.

    References
    ----------
    Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020,
    section 4.

    Examples
    --------
    >>> from relparallel.workload.partition_problems import PartitionProblem
    >>> fork = PartitionProblem(
    ...     names=tuple("abc"), edges=[(0, 1), (0, 2)], accelerator_time=[2, 3, 4], cpu_time=[5, 9, 6],
    ...     transfer_time=[1, 0, 0], memory_bytes=[1] * 3, colour=range(3), is_backward=[False] * 3,
    ...     supported=[True] * 3, accelerators=1, cpus=1, accelerator_memory=2,
    ... )
    >>> found = latency_partition(fork)
    >>> found.latency, found.proven
    (11.0, True)
    """
    require_instance(PartitionProblem, problem=problem)
    k = problem.accelerators if accelerators is None else accelerators
    room = problem.accelerator_memory if memory is None else memory
    require_int(accelerators=k, at_least=0)
    require_real(memory=room, at_least=0)
    require_real(seconds=seconds, above=0)
    require_choice(("milp", "greedy"), method=method)
    groups = Groups.of(problem, leaves=False)
    device, bound = _greedy(groups, k, room), 0.0
    unit = _latency(problem, device, k)
    if method == "milp" and k and unit:
        try:
            better, bound = least_latency(problem, groups, k, room, unit, seconds)
            device = device if better is None else better
        except OutOfTimeError as late:
            bound = max(late.bound * unit, 0.0)
    used = [d for d in range(k + 1) if (device == d).any()]
    return priced(problem, device, used, k, float(bound), latency=_latency(problem, device, k))


def _latency(problem: PartitionProblem, device: IntArray, k: int) -> float:
    """When the last operator is done: accelerators as one, operators on CPUs one by one."""
    loads = partition_loads(problem, device, k)
    node = [int(d) if d < k else k + v for v, d in enumerate(device)]
    joined: nx.DiGraph[int] = nx.DiGraph()
    joined.add_nodes_from(node)
    joined.add_edges_from((node[u], node[v]) for u, v in problem.edges.tolist() if node[u] != node[v])
    done: dict[int, float] = {}
    for x in nx.topological_sort(joined):
        takes = loads[x] if x < k else problem.cpu_time[x - k]
        done[x] = max((done[y] for y in joined.predecessors(x)), default=0.0) + float(takes)
    return max(done.values())


def _greedy(groups: Groups, k: int, room: float) -> IntArray:
    """Fill one accelerator after the other along a line; what is too large goes to CPUs."""
    device, at, free = np.full(groups.member.size, k), 0, room
    for v in nx.topological_sort(groups.line()):
        if groups.memory[v] > room or groups.banned[v] or at >= k:
            continue
        if groups.memory[v] > free:
            at, free = at + 1, room
        if at < k:
            device[groups.member == v] = at
            free -= groups.memory[v]
    return device
