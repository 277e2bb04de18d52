"""Strategies of operators against every choice, and searches against the optimum."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s35.halving import hypar, tofu
from chapters.s35.mesh_program import MeshProgram
from chapters.s35.operator_strategies import OperatorProblem, anneal_plan, operator_plan
from relparallel.workload import LayerGraph


def random_problem(seed: int, room: float = np.inf) -> OperatorProblem:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 5)
    edges = {
        (u, v): rng.integers(0, 9, (sizes[u], sizes[v])).astype(float)
        for u, v in [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    }
    nodes, memory = (
        tuple(rng.integers(0, 9, size).astype(float) for size in sizes) for _ in range(2)
    )
    return OperatorProblem(nodes=nodes, edges=edges, memory=memory, room=room)


def choices(problem: OperatorProblem):
    return product(*(range(costs.size) for costs in problem.nodes))


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_choice_costs_less(seed):
    problem = random_problem(seed)
    choice, cost = operator_plan(problem)
    assert cost == problem.cost(choice) == min(map(problem.cost, choices(problem)))
    assert anneal_plan(problem, np.random.default_rng(seed), steps=3000)[1] >= cost


@pytest.mark.parametrize("seed", range(5))
def test_no_choice_that_fits_costs_less(seed):
    problem = random_problem(seed, room=15.0)

    def held(choice):
        return sum(m[s] for m, s in zip(problem.memory, choice, strict=True))

    fitting = [problem.cost(choice) for choice in choices(problem) if held(choice) <= problem.room]
    if fitting:
        choice, cost = operator_plan(problem)
        assert cost == min(fitting)
        assert held(choice) <= problem.room
    else:
        with pytest.raises(ValueError, match="room must hold some strategy"):
            operator_plan(problem)


def test_tied_operators_share_a_choice():
    pairs = {(0, 1): np.arange(9.0).reshape(3, 3), (1, 2): np.eye(3)}
    same = OperatorProblem(nodes=(np.array([3.0, 1.0, 2.0]),) * 3, edges=pairs)
    tied = same.tied(["a", "b", "a"])
    for a, b in choices(tied):
        assert tied.cost((a, b)) == same.cost((a, b, a))
    assert same.tied("xxx").cost((0,)) == same.cost((0, 0, 0))


def test_costs_of_layouts_are_those_of_collectives():
    program = MeshProgram((4, 2), latency=[1.0, 0.0], per_byte=[1.0, 0.5])
    out = program.product(program.matrix(8, 16), program.matrix(16, 32))
    layouts, costs = (
        program.layouts[out],
        dict(zip(program.layouts[out], program.costs[out], strict=True)),
    )
    assert len(layouts) == 6
    assert costs[0, 1] == 0  # rows along the first axis, columns along the second
    assert costs[-1, 0] == 1 + 2 * 3 / 4 * (
        4 * 8 * 32 / 2
    )  # summed along the first axis, rows along the second
    assert costs[0, -1] == 2 * 1 / 2 * (4 * 8 * 32 / 4) * 0.5
    moving = program.edges[0, out]
    whole, rows = program.layouts[0].index((-1, -1)), program.layouts[0].index((0, -1))
    assert (moving[whole] == 0).all()
    assert moving[rows][layouts.index((1, 0))] == 1 + 3 / 4 * 4 * 8 * 16


def test_halvings_follow_the_sizes():
    def chain(weights, outputs):
        n = len(weights)
        return LayerGraph(
            names=tuple(map(str, range(n))),
            kinds=("dense",) * n,
            forward=[1.0] * n,
            backward=[1.0] * n,
            parameter_bytes=weights,
            activation_bytes=outputs,
            edges=[(i, i + 1) for i in range(n - 1)],
        )

    convolutional = chain([1, 1, 1000], [500, 500, 1])
    assert hypar(convolutional, 1).choices == (("data", "data", "model"),)
    assert hypar(convolutional, 0).volume == 0
    # One halving: two small weights, half of the boundary, and the last output.
    assert hypar(convolutional, 1).volume == 1 + 1 + 250 + 1
    assert set(tofu(chain([1, 1], [500, 500]), 1).choices[0]) == {"batch"}
    assert tofu(chain([1, 1], [500, 500]), 2).volume == pytest.approx((1 + 1) * (1 + 2))


def test_problems_that_do_not_fit_together_are_refused():
    two = (np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="edges must join"):
        OperatorProblem(nodes=two, edges={(0, 1): np.zeros((2, 2))})
    with pytest.raises(ValueError, match="edges must join"):
        OperatorProblem(nodes=two, edges={(1, 0): np.zeros((3, 2))})
