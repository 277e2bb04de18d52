import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad

from relparallel.training._speeds import template_speed
from relparallel.training.redundancy import (
    independent_failures_survived,
    pair_failures,
    pipeline_survival,
)


def survives(failed, stages, ring):
    """Whether no pipeline has two failed neighbours."""
    last = stages if ring else stages - 1
    return not any(((s + 1) % stages, d) in failed for s, d in failed if s < last)


SHAPES = [(1, 3), (2, 4), (3, 4), (4, 3), (5, 2), (8, 1), (13, 1), (7, 2)]


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize(("stages", "pipelines"), SHAPES)
def test_survival_is_the_share_of_all_sets(stages, pipelines, ring):
    nodes = list(product(range(stages), range(pipelines)))
    for failures in range(len(nodes) + 1):
        sets = [survives(set(chosen), stages, ring) for chosen in combinations(nodes, failures)]
        found = pipeline_survival(stages, failures, pipelines, ring)
        assert found == pytest.approx(sum(sets) / len(sets), rel=1e-12)


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize(("stages", "pipelines"), SHAPES[:6])
def test_independent_failures_are_the_sum_over_all_states(stages, pipelines, ring):
    nodes, down = list(product(range(stages), range(pipelines))), Fraction(1, 8)
    total = Fraction(0)
    for failures in range(len(nodes) + 1):
        for chosen in combinations(nodes, failures):
            total += (
                survives(set(chosen), stages, ring)
                * down**failures
                * (1 - down) ** (len(nodes) - failures)
            )
    found = independent_failures_survived(stages, pipelines, 0.125, ring)
    assert found == pytest.approx(float(total), rel=1e-12)


def test_survival_takes_many_nodes():
    found = [independent_failures_survived(16, 1024, down) for down in (0.0, 1e-3, 1.0)]
    assert found == pytest.approx([1.0, (1 - 16e-6) ** 1024, 0.0], rel=1e-3)
    assert pipeline_survival(16, 62, pipelines=1024) == pytest.approx(
        math.exp(-62 * 61 / 16384), rel=1e-3
    )


def test_more_failures_than_nodes_are_refused():
    with pytest.raises(ValueError, match=r"failures must be an integer in \[0, 16\], got 17"):
        pipeline_survival(8, 17, pipelines=2)


@pytest.mark.parametrize("pairs", [1, 2, 3, 7, 50])
def test_failures_of_pairs_are_those_of_the_chain(pairs):
    # From i pairs hit: 2 i of 2 b processes matter, i of them end the run and i hit a dead process
    # again.
    left = Fraction(0)
    for hit in range(pairs, 0, -1):
        end, again = Fraction(hit, 2 * pairs), Fraction(hit, 2 * pairs)
        left = (1 + (1 - end - again) * left) / (1 - again)
    assert pair_failures(pairs) == pytest.approx(float(1 + left), rel=1e-13)
    integral = quad(lambda t: (1 - (1 - np.exp(-t)) ** 2) ** pairs, 0, 60, epsabs=1e-13)[0]
    assert pair_failures(pairs) / (2 * pairs) == pytest.approx(integral, rel=1e-9)


def test_pairs_are_simulated():
    rng, pairs = np.random.default_rng(2), 5
    ends = rng.exponential(1.0, (200_000, pairs, 2)).max(axis=2).min(axis=1)
    error = ends.std() / math.sqrt(len(ends))
    assert abs(ends.mean() - pair_failures(pairs) / (2 * pairs)) < 4 * error


def test_pairs_are_whole():
    with pytest.raises(TypeError, match="pairs must be an integer"):
        pair_failures(2.5)


def partitions(nodes, smallest, largest):
    if not nodes:
        yield ()
    for size in range(smallest, min(nodes, largest) + 1):
        for rest in partitions(nodes - size, size, largest):
            yield (size, *rest)


@pytest.mark.parametrize("faults", [0, 1, 3])
@pytest.mark.parametrize("smallest", [1, 2, 5, 9])
def test_sizes_up_to_twice_the_smallest_leave_no_node_idle(smallest, faults):
    first = (faults + 1) * smallest
    speed = template_speed(first + 100, smallest, 2 * smallest - 1, faults)
    assert speed.tolist() == [0.0] * first + list(range(first, first + 101))


@pytest.mark.parametrize("layers", [None, 7, 12])
@pytest.mark.parametrize("nodes", [0, 3, 4, 9, 14, 17])
def test_the_best_pipelines_have_the_best_speed(nodes, layers):
    speed = template_speed(nodes, 2, 5, 1, layers)
    rates = {
        size: size if layers is None else layers / math.ceil(layers / size) for size in range(2, 6)
    }
    best = max(
        (
            sum(rates[s] for s in sizes)
            for n in range(nodes + 1)
            for sizes in partitions(n, 2, 5)
            if len(sizes) > 1
        ),
        default=0.0,
    )
    assert speed[-1] == pytest.approx(best)


def test_templates_with_more_nodes_than_layers_are_refused():
    with pytest.raises(ValueError, match="layers must be an integer"):
        template_speed(20, 2, 5, layers=4)
    with pytest.raises(ValueError, match="largest must be an integer"):
        template_speed(20, 5, 4)
