"""Numbers at borders of formulas: empty queues, huge and tiny vectors, limits instead of hangs."""

import math
import time
from itertools import product

import numpy as np
import pytest
from scipy.special import lambertw

from chapters.s24.congestion import hpcc
from chapters.s24.link_sharing import expected_max_load
from chapters.s36.compression import qsgd, terngrad
from chapters.s37.fusion import fuse_gradients
from chapters.s40.asynchrony import ssp_throughput
from relparallel.parallel import best_blueconnect_order


@pytest.mark.parametrize("flows", [2, 8, 30])
@pytest.mark.parametrize("increase", [100.0, 400.0])
def test_the_rightmost_root_of_hpcc_is_that_of_its_two_modes(flows, increase):
    """Sums: -a + W(-b D e^(a D))/D; differences: -a; a = (1 - eta/U)/T, b = (eta/U)/T."""
    trip, delay, eta, rate = 10e-6, 10e-6, 0.8, 12.5e9
    model = hpcc(flows=flows, rate=rate, feedback_delay=delay, target=eta, increase=increase)
    share = eta / (eta + flows * increase / (rate * trip))
    a, b = (1 - share) / trip, share / trip
    sums = -a + lambertw(-b * delay * math.exp(a * delay)) / delay
    found = model.rightmost_root(nodes=20)
    assert found.real == pytest.approx(max(-a, sums.real), rel=1e-5)
    assert found.real < 0
    assert model.stable()


def test_a_loop_without_a_crossing_has_an_infinite_margin():
    model = hpcc(flows=8, rate=12.5e9, feedback_delay=0.0, target=0.3, increase=9375.0)
    assert model.phase_margin() == math.inf
    assert model.critical_delay() == math.inf


@pytest.mark.parametrize("power", [1e200, 1e-200, 5e-310])
@pytest.mark.parametrize("method", [qsgd(4), terngrad()], ids=lambda m: m.name)
def test_vectors_of_any_size_are_rounded_without_bias(power, method):
    v = np.array([1.0, 2.0, -1.5])
    drawn = [
        method.encode(power * v, np.random.default_rng(seed)).decode() / power
        for seed in range(4000)
    ]
    assert np.mean(drawn, axis=0) == pytest.approx(v, abs=0.1)
    usual = method.variance(v)
    expected = usual * power * power  # 0 or infinite where floats end
    assert method.variance(power * v) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert method.variance(0 * v) == 0


def most_loaded(n, m):
    return np.mean([max(np.bincount(way, minlength=m)) for way in product(range(m), repeat=n)])


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (4, 3), (6, 4), (2, 30)])
def test_the_busiest_link_is_that_of_all_ways(n, m):
    assert expected_max_load(n, m) == pytest.approx(most_loaded(n, m), rel=1e-12)


def test_many_flows_on_many_links_take_seconds():
    begin = time.process_time()
    found = expected_max_load(512, 64)
    assert time.process_time() - begin < 20
    rng = np.random.default_rng(1)
    drawn = [np.bincount(rng.integers(64, size=512)).max() for _ in range(4000)]
    assert found == pytest.approx(np.mean(drawn), abs=5 * np.std(drawn) / 4000**0.5)
    assert expected_max_load(512, 10**9) == pytest.approx(1 + math.comb(512, 2) / 1e9, abs=1e-6)


def test_too_many_workers_for_the_chain_are_refused_at_once():
    with pytest.raises(ValueError, match=r"workers must be an integer in \[1, 400\], got 3000"):
        ssp_throughput(3000, 0)
    assert ssp_throughput(3000, None) == 1.0


def test_horovods_cycles_begin_anew_after_a_look_that_waited():
    given = {"latency": 0.0221, "bandwidth": 2.934, "cycle": 0.3366}
    found = fuse_gradients([[0.1415, 0.95], [1.0118, 0.70]], **given)
    first = 0.3366 + 0.0221 + 0.95 / 2.934
    assert found.finish == pytest.approx(first + 0.3366 + 0.0221 + 0.70 / 2.934)


def test_ranks_have_a_limit():
    with pytest.raises(ValueError, match=r"ranks of 1 to 2\*\*31"):
        best_blueconnect_order(1.0, [(2**61 - 1, 1e-6, 1e9)])
