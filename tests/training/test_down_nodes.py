"""The chain of nodes against closed forms, dense linear algebra and the exact transient."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from chapters import s43
from relparallel import training
from relparallel.reliability import stationary_distribution
from relparallel.training import JobShape, Recovery
from relparallel.training.down_nodes import NodeChain

ONE = np.array([1.0, 0.0])
rng = np.random.default_rng(20)
CASES = [
    (
        int(rng.integers(1, 3000)),
        int(rng.integers(0, 30)),
        float(10 ** rng.uniform(-5, -2)),
        float(10 ** rng.uniform(-1, 1)),
    )
    for _ in range(25)
]


@pytest.mark.parametrize("case", range(25))
def test_cold_spares_are_erlangs_formula_and_hot_spares_the_binomial_tail(case):
    nodes, spares, rate, repair = CASES[case]
    for kind in ("cold", "hot"):
        chain = NodeChain(
            nodes=nodes,
            spares=spares,
            rates={1: nodes * rate},
            repair=repair,
            speed=ONE,
            hot=kind == "hot",
            waits=True,
        )
        expected = training.shortage_probability(nodes, spares, rate, repair, kind)
        assert chain.shares()[0] == pytest.approx(expected, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("case", range(25))
def test_elastic_job_has_the_throughput_of_its_closed_form(case):
    replicas, size, rate, repair = CASES[case]
    replicas, size = replicas % 60 + 1, size % 9 + 1
    shape = JobShape(
        nodes=replicas * size, replicas=replicas, stages=size, tensor=8, nodes_per_replica=size
    )
    speed = Recovery("elastic", repair=repair).speed(shape, shape.nodes)
    chain = NodeChain(nodes=shape.nodes, rates={1: shape.nodes * rate}, repair=repair, speed=speed)
    expected = s43.elastic_throughput(shape.nodes, size, rate, repair, 0.0)
    assert chain.shares()[2] == pytest.approx(expected, rel=1e-10)


def test_a_new_job_loses_its_nodes_as_independent_nodes_do():
    nodes, size, rate, repair = 32, 4, 3e-3, 2.0
    shape = JobShape(nodes=nodes, replicas=8, stages=4, tensor=8, nodes_per_replica=size)
    speed = Recovery("elastic", repair=repair).speed(shape, nodes)
    chain = NodeChain(nodes=nodes, rates={1: nodes * rate}, repair=repair, speed=speed)
    times = np.array([0.0, 0.01, 0.5, 3.0, 100.0])
    up = 1 / (1 + rate * repair)
    alive = up + (1 - up) * np.exp(-(rate + 1 / repair) * times)
    np.testing.assert_allclose(chain.transient(times), alive**size, rtol=1e-9)


def test_pauses_with_second_failures_and_crews_against_a_dense_solve():
    chain = NodeChain(
        nodes=12,
        spares=2,
        rates={1: 0.3, 3: 0.05},
        repair=1.5,
        speed=np.linspace(1, 0, 13),
        pause=0.4,
        crews=2,
    )
    dense = chain.generator().toarray()
    assert np.abs(dense.sum(axis=1)).max() < 1e-12
    system = np.vstack([dense.T, np.ones(len(dense))])
    law = np.linalg.lstsq(system, np.append(np.zeros(len(dense)), 1.0), rcond=None)[0]
    np.testing.assert_allclose(chain.stationary().ravel(), law, atol=1e-12)
    assert chain.shares()[1] > 0.1


def test_second_failure_begins_the_pause_anew():
    # Equal speed everywhere, a pause of mean t after failures at rate v: clear for the share 1 / (1
    # + v t).
    chain = NodeChain(nodes=50, rates={1: 0.2}, repair=1e-3, speed=np.ones(51), pause=2.0, hot=True)
    assert chain.shares()[2] == pytest.approx(1 / (1 + 0.2 * 2.0), rel=1e-3)


def test_fewer_crews_are_worse_and_enough_crews_change_nothing():
    made = {
        "nodes": 200,
        "spares": 6,
        "rates": {1: 2.0},
        "repair": 2.0,
        "speed": ONE,
        "waits": True,
    }
    waiting = [NodeChain(**made, crews=crews).shares()[0] for crews in (1, 3, 5, 7, 50)]
    assert waiting[0] > waiting[1] > waiting[2] > waiting[3]
    assert waiting[-1] == pytest.approx(NodeChain(**made).shares()[0], rel=1e-12)


def test_one_crew_is_the_queue_of_the_repairman():
    load, most = 0.7, 9  # M/M/1/K with K = spares + 1
    chain = NodeChain(
        nodes=100, spares=most - 1, rates={1: load}, repair=1.0, speed=ONE, waits=True, crews=1
    )
    assert chain.shares()[0] == pytest.approx(
        load**most * (1 - load) / (1 - load ** (most + 1)), rel=1e-12
    )


@pytest.mark.parametrize("seed", range(20))
def test_stationary_law_of_random_chains(seed):
    dice = np.random.default_rng(seed)
    n = int(dice.integers(1, 30))
    rates = np.where(dice.random((n, n)) < 0.4, 10 ** dice.uniform(-6, 3, (n, n)), 0.0)
    rates[np.arange(1, n), np.arange(n - 1)] += 1e-3
    rates[np.arange(n - 1), np.arange(1, n)] += 1e-3
    np.fill_diagonal(rates, 0)
    law = stationary_distribution(csr_array(rates))
    assert law.sum() == pytest.approx(1)
    flow = law @ (rates - np.diag(rates.sum(axis=1)))
    assert np.abs(flow).max() <= 1e-12 * (law * rates.sum(axis=1)).max() + 1e-300


def test_tiny_probabilities_keep_their_digits():
    n, ratio = 60, 1e-4
    up, down = np.full(n - 1, ratio), np.ones(n - 1)
    law = stationary_distribution(csr_array(np.diag(up, 1) + np.diag(down, -1)))
    np.testing.assert_allclose(law, (1 - ratio) * ratio ** np.arange(n), rtol=1e-11)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (np.zeros((2, 3)), "square"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), "before it"),
        (np.array([[0.0, -1.0], [1.0, 0.0]]), "generator"),
    ],
)
def test_chains_without_a_stationary_law_are_refused(table, what):
    with pytest.raises(ValueError, match=what):
        stationary_distribution(csr_array(table))
