"""Contiguous stages against all plans, both exact routes against each other; authors' graphs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from chapters.s35.partition import latency_partition, partition_loads, throughput_partition
from chapters.s35.partition_problems import PartitionProblem, read_partition_problem
from public_data import DATA, needs_data


def random_problem(
    seed: int, n: int = 6, backward: bool = False, memory: float = 14.0
) -> PartitionProblem:
    """A random graph; with a backward operator for each forward one if wanted."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u, v in itertools.combinations(range(n), 2) if rng.random() < 0.35]
    if backward:
        edges += [(n + v, n + u) for u, v in edges] + [
            (v, n + v) for v in range(n) if rng.random() < 0.5
        ]
    size = n * (1 + backward)
    return PartitionProblem(
        names=tuple(f"op{v}" for v in range(size)),
        edges=edges,
        accelerator_time=rng.integers(1, 9, size),
        cpu_time=rng.integers(5, 30, size),
        transfer_time=rng.integers(0, 4, size) / 2,
        memory_bytes=rng.integers(1, 5, size),
        colour=np.arange(size) % n,
        is_backward=np.arange(size) >= n,
        supported=rng.random(size) < 0.95,
        accelerators=2,
        cpus=1,
        accelerator_memory=memory * (1 + backward),
    )


def best_of_all(problem: PartitionProblem) -> float:
    """Least largest load over all orders of devices and all contiguous plans, by definition."""
    n = int(problem.colour.max()) + 1
    k, devices = problem.accelerators, problem.accelerators + problem.cpus
    forward = [e for e in problem.edges.tolist() if not problem.is_backward[e].any()]
    best = np.inf
    for stage in itertools.product(range(devices), repeat=n):
        if any(stage[u] > stage[v] for u, v in forward):
            continue
        for order in itertools.permutations(range(devices)):
            device = np.array(order)[list(stage)][problem.colour]
            used = np.bincount(device, problem.memory_bytes, devices)[:k]
            if (used > problem.accelerator_memory).any() or (
                ~problem.supported & (device < k)
            ).any():
                continue
            best = min(best, partition_loads(problem, device, k).max())
    return float(best)


@pytest.mark.parametrize("method", ["ideals", "milp"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_is_better(seed: int, backward: bool, method: str) -> None:
    """The optimum over all plans, by either route, with a plan that costs what is said."""
    problem = random_problem(seed, 5, backward)
    found = throughput_partition(problem, method=method)
    assert found.proven
    assert found.max_load == pytest.approx(best_of_all(problem), rel=1e-9)
    loads = partition_loads(problem, found.device, problem.accelerators)
    assert loads.max() == found.max_load
    assert sorted(name for stage in found.stages for name in stage) == sorted(problem.names)


@pytest.mark.parametrize("method", ["ideals", "milp"])
@pytest.mark.parametrize("seed", range(12))
def test_no_plan_is_better_where_some_operators_do_no_work(seed: int, method: str) -> None:
    """Inputs and labels, not run or held by accelerators, stay on CPUs without what they feed."""
    problem = random_problem(seed, 5, memory=9.0)
    idle = np.random.default_rng(seed).random(5) < 0.5
    times = {
        name: np.where(idle, 0, getattr(problem, name)) for name in ("accelerator_time", "cpu_time")
    }
    weight = np.where(idle, 5 * problem.memory_bytes, problem.memory_bytes)
    problem = replace(
        problem, **times, supported=~idle if seed % 2 else problem.supported, memory_bytes=weight
    )
    found = throughput_partition(problem, method=method)
    assert found.proven
    assert found.max_load == pytest.approx(best_of_all(problem), rel=1e-9)


@pytest.mark.parametrize("fault", [{"supported": [False, True]}, {"memory_bytes": [9.0, 9.0]}])
@pytest.mark.parametrize("method", ["ideals", "milp"])
def test_an_input_stays_on_the_cpu_without_the_layer(fault: dict[str, list], method: str) -> None:
    """1 s on the accelerator, 14 s on the CPU."""
    given = {"supported": [True, True], "memory_bytes": [1.0, 1.0]} | fault
    problem = PartitionProblem(
        names=("input", "layer"),
        edges=[(0, 1)],
        accelerator_time=[0.0, 1.0],
        cpu_time=[0.0, 14.0],
        transfer_time=[0.0, 0.0],
        colour=range(2),
        is_backward=[False] * 2,
        accelerators=1,
        cpus=1,
        accelerator_memory=10.0,
        **given,
    )
    assert throughput_partition(problem, method=method).max_load == 1.0


@pytest.mark.parametrize("seed", range(20, 28))
def test_programme_equals_chain_of_ideals(seed: int) -> None:
    """Two routes, on larger graphs."""
    problem = random_problem(seed, 11, backward=seed % 2 == 0, memory=20.0)
    ideals, milp = (throughput_partition(problem, method=method) for method in ("ideals", "milp"))
    assert ideals.max_load == pytest.approx(milp.max_load, rel=1e-9)
    roomy = replace(problem, accelerator_memory=1e9)
    line = throughput_partition(roomy, method="line")
    assert line.max_load >= throughput_partition(roomy).max_load
    assert ideals.ideals > 0 == milp.ideals
    slow = replace(problem, accelerators=0)
    alone = [throughput_partition(slow, method=method) for method in ("ideals", "milp")]
    assert [found.max_load for found in alone] == [problem.cpu_time.sum()] * 2


def alone(problem: PartitionProblem, device: np.ndarray) -> float:
    """Sample time, starts raised until none changes; infinite if pieces wait for each other."""
    k, n = problem.accelerators, len(problem)
    loads, begin = partition_loads(problem, device, k), np.zeros(n)
    takes = np.where(
        device < k, np.append(loads[:k], [0] * (loads.size - k))[device], problem.cpu_time
    )
    for _ in range(2 * n + 2):
        old = begin.copy()
        for u, v in problem.edges.tolist():
            if device[u] != device[v] or device[u] == k:
                begin[v] = max(begin[v], begin[u] + takes[u])
        for d in range(k):
            begin[device == d] = begin[device == d].max(initial=0.0)
        if (begin == old).all():
            return float((begin + takes).max())
    return float("inf")


@pytest.mark.parametrize("seed", range(5))
def test_no_plan_is_sooner(seed: int) -> None:
    """The latency of all plans on two accelerators and CPUs; the greedy one is never better."""
    problem = random_problem(seed, 6, memory=9.0)
    best = np.inf
    for plan in itertools.product(range(3), repeat=6):
        device = np.array(plan)
        used = np.bincount(device, problem.memory_bytes, 3)[:2]
        if (used <= problem.accelerator_memory).all() and not (
            ~problem.supported & (device < 2)
        ).any():
            best = min(best, alone(problem, device))
    found = latency_partition(problem)
    assert found.proven
    assert found.latency == pytest.approx(best, rel=1e-9)
    greedy = latency_partition(problem, method="greedy")
    assert greedy.latency >= found.latency
    assert greedy.latency == pytest.approx(alone(problem, greedy.device))


@pytest.mark.parametrize("method", ["programme", "greedy"])
@pytest.mark.parametrize(
    "change", [{"supported": [True, False, True]}, {"memory_bytes": [1.0, 20.0, 1.0]}]
)
def test_an_operator_that_no_accelerator_takes_ends_a_piece(change: dict, method: str) -> None:
    """Between its neighbours on a line, of which one has to go to a CPU with it: 2 + 2 + 1."""
    fields = {"supported": [True] * 3, "memory_bytes": [1.0] * 3} | change
    problem = PartitionProblem(
        names=("a", "b", "c"),
        edges=[(0, 1), (1, 2)],
        accelerator_time=[1.0] * 3,
        cpu_time=[2.0] * 3,
        transfer_time=[0.0] * 3,
        colour=range(3),
        is_backward=[False] * 3,
        accelerators=1,
        cpus=1,
        accelerator_memory=10.0,
        **fields,
    )
    found = (
        latency_partition(problem)
        if method == "programme"
        else latency_partition(problem, method=method)
    )
    assert found.latency == 5.0


def test_operators_that_no_device_takes_are_refused() -> None:
    """By either route: too large for the accelerators, or on no accelerator, without a CPU."""
    problem = replace(random_problem(1, 5), supported=np.ones(5, dtype=bool))
    for given in (
        {"accelerator_memory": 1.0},
        {"accelerator_memory": 4.0},
        {"supported": np.arange(5) != 2},
    ):
        for method in ("ideals", "milp", "line"):
            with pytest.raises(ValueError, match="memory must hold the stages"):
                throughput_partition(replace(problem, **given), cpus=0, method=method)
    with pytest.raises(ValueError, match="method must be"):
        throughput_partition(problem, method="greedy")


@needs_data
@pytest.mark.parametrize(
    ("name", "load", "ideals"),
    [
        ("LayerGraphs/bert24_training", 0.0417458, 30),
        ("LayerGraphs/gnmt_inference", 0.0329107, 17914),
        ("LayerGraphs/inceptionv3_inference", 0.0515519, 36596),
        ("OperatorGraphs/bert_l-12_inference", 0.147478, 2906),
        ("OperatorGraphs/resnet50_training", 0.255194, 258),
    ],
)
def test_published_graphs(name: str, load: float, ideals: int) -> None:
    """Loads and numbers of ideals of the authors' own program."""
    path = DATA / f"dnn-partitioning/throughput-inputs/{name}.json"
    found = throughput_partition(read_partition_problem(path), cpus=1)
    assert found.proven
    assert found.max_load == pytest.approx(load, rel=5e-6)
    assert found.ideals == ideals
