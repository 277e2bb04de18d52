"""Estimators: mean and coverage against exact answers, rare events, and what is refused."""

from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom, gamma

import relparallel as rp
from pace import pace
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sampling.estimation import ESTIMATORS, estimate_problem
from relparallel.reliability.sampling.moments import Moments, mean_interval, share_interval
from relparallel.reliability.sampling.samplers import hypoexponential_tail
from relparallel.reliability.sampling.sampling_network import sampling_network

DODECAHEDRON = nx.dodecahedral_graph()
TORUS = nx.grid_2d_graph(4, 4, periodic=True)
MIXED = nx.gnm_random_graph(12, 24, seed=3), [0, 5, 9], 0.95, 0.9
NETWORKS = {
    "dodecahedron .1": (DODECAHEDRON, "all", 0.9, 1.0),
    "dodecahedron .01": (DODECAHEDRON, "all", 0.99, 1.0),
    "dodecahedron pair": (DODECAHEDRON, [0, 10], 0.9, 1.0),
    "torus": (TORUS, "all", 0.999, 1.0),
    "fat-tree": (rp.topology.fat_tree(4), "all", 0.99, 1.0),
    "fat-tree pair": (rp.topology.fat_tree(4), [0, 15], 0.99, 0.95),
    "three of a random graph": MIXED,
}
RUNS = pace(60, 120)
LEAST, MOST = binom.ppf([1e-4, 1 - 1e-4], RUNS, 0.95)
COVERED = [
    ("dodecahedron .1", "crude", 1500),
    ("three of a random graph", "crude", 500),
    ("dodecahedron .1", "permutation", 512),
    ("torus", "permutation", 512),
    ("three of a random graph", "permutation", 512),
]


def problem_of(name):
    return read_problem(*NETWORKS[name])


def exact(name):
    return rp.reliability.evaluate(*NETWORKS[name], method="exact").unreliability


@pytest.mark.parametrize(("name", "method", "samples"), COVERED)
def test_intervals_hold_as_often_as_they_say(name, method, samples):
    """A band that an estimator of coverage 0.95 leaves once in 5,000 tests."""
    truth, problem = exact(name), problem_of(name)
    found = [
        estimate_problem(problem, method, np.random.default_rng(seed), samples=samples)
        for seed in range(RUNS)
    ]
    assert LEAST <= sum(x.lower <= truth <= x.upper for x in found) <= MOST
    assert max(x.bias_bound for x in found) == 0


@pytest.mark.parametrize("method", ["permutation", "karp_luby"])
@pytest.mark.parametrize("name", ["dodecahedron pair", "fat-tree pair", "three of a random graph"])
def test_means_agree_with_the_exact_programme(name, method):
    found = estimate_problem(problem_of(name), method, np.random.default_rng(11), samples=2000)
    error = (found.value - exact(name)) / (found.upper - found.lower)
    assert abs(error) < 1  # half a width is 1.96 standard errors
    assert found.relative_error < 0.3


@pytest.mark.parametrize("method", ["permutation", "karp_luby"])
def test_rare_failures_do_not_cost_accuracy(method):
    graph = nx.petersen_graph()
    truth = rp.reliability.evaluate(graph, link_down=1e-6).unreliability
    found = rp.reliability.estimate(
        graph, link_down=1e-6, method=method, rng=np.random.default_rng(2), samples=1000
    )
    assert truth < 2e-17
    assert found.lower <= truth <= found.upper
    assert found.relative_error < 0.1


def test_a_tolerance_is_reached():
    found = rp.reliability.estimate(
        nx.petersen_graph(),
        "all",
        0.99,
        method="permutation",
        rng=np.random.default_rng(3),
        rtol=0.02,
    )
    assert 0.005 < found.relative_error < 0.02


def test_auto_picks_one_that_needs_little_work():
    found = rp.reliability.estimate(
        nx.petersen_graph(), "all", 0.999, rng=np.random.default_rng(4), rtol=0.05
    )
    assert (found.method, found.relative_error < 0.05) == ("karp_luby", True)
    frequent = rp.reliability.estimate(
        nx.petersen_graph(), "all", 0.5, rng=np.random.default_rng(4), samples=2000
    )
    assert frequent.method in ("crude", "permutation")
    assert frequent.relative_error < 0.06


def test_executors_do_not_change_the_answer():
    def run(executor):
        return rp.reliability.estimate(
            nx.petersen_graph(),
            "all",
            0.9,
            method="permutation",
            samples=10_000,
            executor=executor,
            rng=np.random.default_rng(5),
        )

    with ThreadPoolExecutor(2) as threads:
        assert run(threads) == run(None)


def test_certain_answers_need_no_samples():
    split = nx.Graph([(0, 1), (2, 3)])
    path = nx.path_graph(5)
    for graph, truth in ((split, 1.0), (path, 1 - 0.9**4)):
        found = rp.reliability.estimate(
            graph, "all", 0.9, method="permutation", rng=np.random.default_rng(6)
        )
        assert (found.samples, found.lower, found.upper) == (0, found.value, found.value)
        assert found.value == pytest.approx(truth, rel=1e-14)


def test_what_is_too_much_work_is_refused():
    with pytest.raises(ValueError, match=r"max_work must be .* or more for method='permutation'"):
        rp.reliability.estimate(
            rp.topology.torus((8, 8, 8)),
            link_down=1e-3,
            method="permutation",
            rng=np.random.default_rng(7),
            max_work=1e6,
        )


def test_crude_sampling_that_would_see_no_failure_is_refused_at_once():
    """A search for cuts says so in less time than the first of a billion states takes."""
    rng, ring = np.random.default_rng(7), nx.cycle_graph(12)
    with pytest.raises(ValueError, match="samples must be given for method='crude' where U is at"):
        rp.reliability.estimate(ring, link_down=1e-6, method="crude", rng=rng)
    asked = rp.reliability.estimate(ring, link_down=1e-6, method="crude", samples=99, rng=rng)
    assert (asked.value, asked.upper > 0) == (0, True)
    seen = rp.reliability.estimate(ring, link_down=1e-2, method="crude", rng=rng, rtol=0.1)
    truth = rp.reliability.evaluate(ring, link_down=1e-2).unreliability
    assert seen.lower * 0.9 < truth < seen.upper * 1.1


def test_terminals_that_relay_nothing_are_left_to_crude_sampling():
    graph = nx.complete_bipartite_graph(3, 2)
    dual = {v: {"kind": "host" if v < 3 else "switch", "transit": v >= 3} for v in graph}
    nx.set_node_attributes(graph, dual)
    network, rng = rp.topology.Topology.from_networkx(graph), np.random.default_rng(8)
    with pytest.raises(ValueError, match="forward"):
        rp.reliability.estimate(network, link_up=0.9, method="permutation", rng=rng)
    assert rp.reliability.estimate(network, link_up=0.9, rng=rng, rtol=0.1).method == "crude"


def test_what_is_set_apart_is_exact():
    apart = sampling_network(problem_of("fat-tree"))
    assert apart.alive + apart.failed == pytest.approx(1)
    assert apart.alive == pytest.approx(0.99**16)
    assert (apart.network.terminal.sum(), len(apart.network.ends)) == (8, 32)


@pytest.mark.parametrize(
    "rates", [[3.0], [5.0, 2.0], [30.0, 20.0, 10.0, 4.0], [900.0, 500.0, 40.0]]
)
def test_the_tail_agrees_with_partial_fractions(rates):
    from fractions import Fraction
    from math import prod

    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        exact_rates = [mp.mpf(Fraction(x).numerator) for x in rates]
        truth = sum(
            mp.exp(-a) * prod(b / (b - a) for b in exact_rates if b != a) for a in exact_rates
        )
        found, _ = hypoexponential_tail(np.array(rates), np.empty(len(rates)))
        assert found == pytest.approx(float(truth), rel=1e-12)


def test_moments_join_as_if_drawn_together():
    values = np.random.default_rng(9).random(50)

    def of(x):
        return Moments(len(x), x.mean(), *(((x - x.mean()) ** k).sum() for k in (2, 3)), 1)

    joined = of(values[:20]).joined(of(values[20:]))
    assert joined == pytest.approx((*of(values)[:4], 2))


def test_skewness_is_corrected_for():
    """Means of 40 draws, skewness 4: too low as often as too high, which Student's are not."""
    rng, law = np.random.default_rng(12), gamma(0.25)
    misses = {"Hall": [0, 0], "Student": [0, 0]}
    for _ in range(4000):
        x = rng.gamma(0.25, size=40)
        power = [((x - x.mean()) ** k).sum() for k in (2, 3)]
        ways = {
            "Hall": Moments(40, x.mean(), *power, 1),
            "Student": Moments(40, x.mean(), power[0], 0.0, 1),
        }
        for way, moments in ways.items():
            _, lower, upper, _ = mean_interval(moments, 0.95)
            misses[way][0] += upper < law.mean()
            misses[way][1] += lower > law.mean()
    assert sum(misses["Hall"]) < 0.08 * 4000 < 0.9 * sum(misses["Student"])
    assert misses["Hall"][0] < 0.75 * misses["Student"][0]


def test_equal_samples_do_not_pass_for_certainty():
    mean, lower, upper, allowance = mean_interval(Moments(300, 1e-9, 0.0, 0.0, 1), 0.95)
    assert (mean, allowance) == (1e-9, pytest.approx(1e-11, rel=0.01))
    assert lower < mean < upper
    assert share_interval(Moments(100, 0.0, 0.0, 0.0, 1), 0.95)[2] == pytest.approx(1 - 0.025**0.01)
    assert mean_interval(Moments(100, 0.0, 0.0, 0.0, 1), 0.95)[1:3] == (
        0,
        pytest.approx(1 - 0.05**0.01),
    )


def test_a_tail_below_all_floats_is_nothing():
    """Rates of thousands leave no chance floats can tell; the sum over steps must still end."""
    assert hypoexponential_tail(np.full(3, 3000.0), np.empty(3))[0] == 0.0


def test_conditional_permutations_on_hundreds_of_reliable_parts():
    fabric = rp.topology.fat_tree(8)
    edge = np.flatnonzero(fabric.is_kind("edge"))
    found = rp.reliability.estimate(
        fabric,
        edge[[0, -1]],
        0.999,
        0.999,
        method="permutation",
        samples=100,
        rng=np.random.default_rng(1),
    )
    assert found.value == pytest.approx(1 - 0.999**2, rel=1e-3)  # the two ends themselves


@pytest.mark.parametrize("method", [name for name in ESTIMATORS if name != "auto"])
@pytest.mark.parametrize("up", [0.0, 5e-324, 1e-17])
def test_parts_that_are_nearly_never_up(method, up):
    # two routes, of which one is as good as lost: 1 - up has no digits of up left
    links = {(0, 1): 0.9, (1, 2): 0.9, (2, 3): up, (3, 0): 0.9}
    found = estimate_in(links, method)
    assert found.lower * (1 - 1e-12) <= 0.19 <= found.upper * (1 + 1e-12)
    assert estimate_in(dict.fromkeys(links, up), method).upper > 1 - 1e-9


def estimate_in(links, method):
    rng = np.random.default_rng(5)
    return rp.reliability.estimate(
        nx.cycle_graph(4), (0, 2), links, method=method, rng=rng, samples=2000, confidence=0.9999
    )


@pytest.mark.parametrize("method", ESTIMATORS[1:])
def test_a_perfect_link_to_a_node_that_becomes_a_terminal_is_up_from_the_start(method):
    """Node 0 hangs between terminal 1 and the rest, so it is required; its link to 2 is certain."""
    up = {(0, 1): 0.9, (0, 4): 0.9, (0, 2): 1.0, (2, 4): 0.5}
    found = rp.reliability.estimate(
        nx.Graph(list(up)),
        [1, 2],
        up,
        {0: 0.5, 2: 0.8, 4: 0.9},
        method=method,
        rng=np.random.default_rng(5),
        samples=2000,
        confidence=0.9999,
    )
    assert found.lower <= 1 - 0.5 * 0.9 * 0.8 <= found.upper
