"""Contiguous groups of operators on accelerators and CPUs, as evenly loaded as can be: device placement.

Operators that must share a device become one group. What is upstream of a cut is an ideal of the order of the
groups, a stage is the difference of two ideals, so a shortest chain of ideals is an optimal plan. Only chains
that can still beat the best plan known are followed: first that of the operators put in one line.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import Result, require_instance, require_int, require_real
from relparallel.optimize._ideals import FloatArray, Groups, Ideals, IntArray, Stages
from relparallel.optimize._partition_milp import chain_of_ideals
from relparallel.topology import _arrays
from relparallel.workload.partition_problems import PartitionProblem

_MOST_IDEALS: Final = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition(Result):
    """Operators on devices: accelerators first, then CPUs.

    ``max_load`` [s] is the largest of ``loads``, ``latency`` [s] the time of one sample alone where that was
    minimised; ``stages`` are the operators of each device in the order of
    the pipeline, ``device`` is where each operator is. No plan is below ``bound``; ``proven`` where this one
    is not above. ``ideals`` counts the states of the search, 0 where a MILP was solved instead.
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
    """Return the seconds that each device works and sends for one sample.

    Parameters
    ----------
    problem : PartitionProblem
        Operators and what their transfers take.
    device : array_like of int
        Device of each operator; from ``accelerators`` on they are CPUs.
    accelerators : int
        Number of accelerators.

    Returns
    -------
    ndarray
        Load of every device [s]. An accelerator also pays the transfer of each output that leaves it, once,
        and of each output that it needs from elsewhere, once; CPUs pay no transfers.

    References
    ----------
    Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.

    Examples
    --------
    >>> from relparallel.workload.partition_problems import PartitionProblem
    >>> two = PartitionProblem(
    ...     names=("a", "b"), edges=[(0, 1)], accelerator_time=[2, 3], cpu_time=[9, 9], transfer_time=[1, 0],
    ...     memory_bytes=[1, 1], colour=[0, 1],
    ...     is_backward=[False] * 2, supported=[True] * 2, accelerators=2, cpus=0,
    ...     accelerator_memory=4,
    ... )
    >>> partition_loads(two, [0, 1], accelerators=2).tolist()
    [3.0, 4.0]
    """
    require_instance(PartitionProblem, problem=problem)
    require_int(accelerators=accelerators, at_least=0)
    where = _arrays.integers("device", device, len(problem), per="operators").tolist()
    loads = np.zeros(max(accelerators, 1 + max(where)))
    for v, d in enumerate(where):
        loads[d] += problem.accelerator_time[v] if d < accelerators else problem.cpu_time[v]
    crossings = {(u, where[v]) for u, v in problem.edges.tolist() if where[u] != where[v]}
    crossings |= {(u, where[u]) for u, _ in crossings}
    for u, d in crossings:
        loads[d] += problem.transfer_time[u] if d < accelerators else 0.0
    return loads


def throughput_partition(
    problem: PartitionProblem,
    *,
    accelerators: int | None = None,
    cpus: int | None = None,
    memory: float | None = None,
    method: str = "auto",
    seconds: float = 600.0,
) -> Partition:
    """Return contiguous stages, one for each device, whose slowest takes the least time for a sample.

    Parameters
    ----------
    problem : PartitionProblem
        What is placed, and on what.
    accelerators, cpus, memory : int, int, float, optional
        Devices and bytes of an accelerator, where they shall not be those of the problem.
    method : {"auto", "ideals", "milp", "line", "blocks"}
        Exact by the chain of ideals or by an integer programme (``"auto"``: by ideals unless there are more
        than 60,000); ``"line"`` first puts the operators in one line, and ``"blocks"`` also merges branches
        that part and meet again, as PipeDream does: both give heuristics.
    seconds : float
        Time for the integer programme, which else reports the bound that it reached.

    Returns
    -------
    Partition
        The plan, its loads, and a bound.

    Notes
    -----
    Minimise ``max_s load(I_s - I_(s-1))`` over chains of ideals of the forward pass; operators of one colour
    share a device, backward ones follow theirs. Ones without work that a single other one uses share its
    device, as in the authors' code. The integer programme has ``y[v, s] = 1`` where v is on one of the stages
    0..s, which falls along edges and rises in s, and a variable for each output that a stage parts.

    References
    ----------
    Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.

    Examples
    --------
    >>> from relparallel.workload.partition_problems import PartitionProblem
    >>> chain = PartitionProblem(
    ...     names=tuple("abcd"), edges=[(0, 1), (1, 2), (2, 3)], accelerator_time=[2, 3, 4, 1],
    ...     cpu_time=[9] * 4, transfer_time=[1, 5, 1, 0], memory_bytes=[1] * 4, colour=range(4),
    ...     is_backward=[False] * 4, supported=[True] * 4, accelerators=2, cpus=0, accelerator_memory=4,
    ... )
    >>> found = throughput_partition(chain)
    >>> found.max_load, found.stages, found.proven
    (9.0, (('a',), ('b', 'c', 'd')), True)
    """
    require_instance(PartitionProblem, problem=problem)
    k = problem.accelerators if accelerators is None else accelerators
    c = problem.cpus if cpus is None else cpus
    room = problem.accelerator_memory if memory is None else memory
    require_int(accelerators=k, cpus=c, at_least=0)
    require_real(memory=room, at_least=0)
    require_real(seconds=seconds, above=0)
    if method not in ("auto", "ideals", "milp", "line", "blocks"):
        raise ValueError(f"method must be auto, ideals, milp, line or blocks, got {method!r}")
    groups = Groups.of(problem, blocks=method == "blocks")
    groups.require_room(problem, k, c, room)
    line = Ideals(groups, groups.line()).best_chain(k, c, room, np.inf)
    if method in ("line", "blocks"):
        if line is None:
            raise ValueError(f"memory must hold the stages of a line of operators, got {room} bytes")
        return _partition(problem, groups, line[1], k, 0.0, groups.size + 1)
    start = np.inf if line is None else line[0]
    most = {"milp": 0.0, "ideals": np.inf}.get(method, _MOST_IDEALS)
    ideals = Ideals(groups, groups.order, most)
    counted = len(ideals) if len(ideals) <= most else 0
    if counted:
        found = ideals.best_chain(k, c, room, start) or line
        bound = found[0] if found else np.inf
    else:
        found, bound = chain_of_ideals(groups, k, c, room, line, seconds)
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
    return priced(problem, device, [place for place, _ in stages], k, bound, ideals=ideals)


def priced(
    problem: PartitionProblem, device: IntArray, used: list[int], k: int, bound: float, **extra: Any
) -> Partition:
    """The plan with these devices in the order of the pipeline, its loads taken anew."""
    loads, names = partition_loads(problem, device, k), np.array(problem.names, dtype=object)
    return Partition(
        max_load=float(loads.max()), bound=min(bound, extra.get("latency", float(loads.max()))),
        stages=tuple(tuple(names[device == place].tolist()) for place in used), stage_devices=tuple(used),
        device=device, loads=loads, **extra,
    )  # fmt: skip
