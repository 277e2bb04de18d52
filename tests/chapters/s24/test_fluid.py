"""Fixed points, roots, critical delays and runs of congestion control, each by two routes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters import s24
from chapters.s24.congestion import dctcp, hpcc, patched_timely, timely
from chapters.s24.delay_equations import crossings
from chapters.s24.ecn import dcqcn, dcqcn_plus
from chapters.s24.fluid import FluidModel, stability_probability
from pace import pace
from public_data import DATA, needs_data
from relparallel._checks import reals, record
from relparallel.metrics import hop_statistics
from relparallel.topology import fat_tree, leaf_spine

GBIT, MICRO = 1e9 / 8, 1e-6
FLOWS = np.arange(2.0, 15.0)
COMMON = {"rate": 40 * GBIT, "feedback_delay": 50e-6}
MODELS = {
    "dcqcn": dcqcn(flows=FLOWS, **COMMON),
    "dcqcn_plus": dcqcn_plus(flows=FLOWS * 10, **COMMON),
    "patched_timely": patched_timely(flows=FLOWS, rate=10 * GBIT, feedback_delay=4e-6),
    "hpcc": hpcc(flows=FLOWS, rate=100 * GBIT, feedback_delay=10e-6, increase=[[200.0], [9000.0]]),
    "dctcp": dctcp(flows=FLOWS, rate=10 * GBIT, feedback_delay=0.0),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_nothing_moves_at_the_fixed_point(model):
    p = model.values()
    state = model.equilibrium(p)[0][:, None]
    past = [state] * len(model.lags(p, state))
    scale = np.maximum(np.abs(state), 1.0) / 1e-3
    assert np.abs(model.derivative(p, state, *past) / scale).max() < 1e-9
    assert np.all(model.fixed_point().valid)


@pytest.mark.parametrize("name", ["dcqcn", "patched_timely", "dctcp"])
def test_the_complex_step_is_the_slope_of_the_right_hand_side(name):
    model = MODELS[name]
    p = model.values()
    state = model.equilibrium(p)[0]
    slopes = model.linear()[0]
    for j, size in enumerate(np.where(state == 0, 1.0, state)):
        h = 1e-5 * size * np.eye(len(state))[j][:, None]
        past = [state[:, None]] * len(slopes.past)
        up, down = (model.derivative(p, (state + d)[:, None], *past)[:, 0] for d in (h, -h))
        wanted = (up - down) / 2e-5 / np.where(state == 0, 1.0, state)
        assert slopes.now[:, :, j] == pytest.approx(
            wanted.T, rel=1e-4, abs=1e-4 * np.abs(slopes.now).max()
        )


@given(
    flows=st.floats(1.5, 12),
    rate=st.sampled_from([40.0, 100.0, 400.0]),
    step=st.floats(10, 40),
    kmax=st.floats(200e3, 1000e3),
)
@settings(max_examples=30, deadline=None)
def test_a_pair_of_roots_crosses_the_axis_at_the_critical_delay(flows, rate, step, kmax):
    given = {"flows": flows, "rate": rate * GBIT, "increase": step * GBIT / 1000, "kmax": kmax}
    critical = dcqcn(feedback_delay=0.0, **given).critical_delay()
    near = dcqcn(feedback_delay=critical * np.array([0.999, 1.0, 1.001]), **given).rightmost_root()
    assert near[0].real < 0 < near[2].real
    assert abs(near[1].real) < 1e-6 * abs(near[1])


def test_the_scan_finds_every_crossing_of_the_polynomial():
    """|P(iw)|^2 - |Q(iw)|^2 is a polynomial in w^2: its positive roots are the crossings."""
    model = dcqcn(flows=FLOWS, rate=np.array([[40.0], [100.0], [400.0]]) * GBIT, feedback_delay=0.0)
    for mode in model.linear():
        omega = crossings(mode)[0]
        for i in range(0, len(omega), 5):
            now, late = mode.now[i] * 5e-5, mode.past[0][1][i] * 5e-5
            p, q = np.poly(now), np.poly(now + late) - np.poly(now)
            sides = []
            for c in (p, q):
                at = c * 1j ** np.arange(len(c) - 1, -1, -1)
                sides.append(np.polymul(at, at.conj()).real)
            roots = np.roots(np.polysub(*sides))
            real = np.sort(roots[(np.abs(roots.imag) < 1e-9) & (roots.real > 1e-4)].real)
            assert np.sort(omega[i][~np.isnan(omega[i])]) * 5e-5 == pytest.approx(real, rel=1e-6)


def test_counting_crossings_says_what_the_rightmost_root_says():
    rng = np.random.default_rng(3)
    for model in (
        dcqcn(
            flows=rng.uniform(1, 14, 200),
            rate=40 * GBIT,
            feedback_delay=rng.uniform(1e-6, 150e-6, 200),
        ),
        patched_timely(
            flows=rng.uniform(1, 50, 60),
            rate=10 * GBIT,
            feedback_delay=rng.uniform(1e-6, 500e-6, 60),
        ),
    ):
        roots = model.rightmost_root(nodes=20).real
        clear = np.abs(roots) > 0.1
        assert np.array_equal(model.stable()[clear], (roots < 0)[clear])
        assert 0.1 < np.mean(model.stable()) < 0.9


@record(eq=False)
class Oscillator(FluidModel):
    """x'' + 0.1 x' + x + 0.5 x(t - D) = 0 in units of 50 us: stability comes and goes with D."""

    flows: object = reals(default=1.0, above=0)
    rate: object = reals(default=1.0, above=0)
    feedback_delay: object = reals(at_least=0)

    @staticmethod
    def equilibrium(p):
        return np.zeros((3, p.flows.size)), 0.0, True

    @staticmethod
    def derivative(p, now, *past):
        x, v, q = now
        return np.stack([v, -x - 0.1 * v - 0.5 * past[0][0], -q]) / 50e-6


def test_stability_that_comes_back_is_counted():
    delays = 50e-6 * np.linspace(0.02, 40, pace(60, 300))
    model = Oscillator(feedback_delay=delays)
    roots = model.rightmost_root(nodes=40).real * 50e-6
    clear = np.abs(roots) > 1e-4
    assert np.array_equal(np.broadcast_to(model.stable(), delays.shape)[clear], (roots < 0)[clear])
    assert np.count_nonzero(np.diff(model.stable())) == 3
    first = int(np.argmin(model.stable()))
    assert delays[first - 1] < model.critical_delay()[0] < delays[first]


@pytest.mark.slow
def test_a_run_flips_within_a_hundredth_of_the_critical_delay_and_grows_like_the_root():
    flows = np.array([2.0, 4.0, 10.0])
    critical = dcqcn(flows=flows, rate=40 * GBIT, feedback_delay=0.0).critical_delay()
    model = dcqcn(flows=flows, rate=40 * GBIT, feedback_delay=critical * np.array([[0.99], [1.01]]))
    run = model.simulate(0.04, 4e-6)
    assert (run.growth[0] < 0).all()
    assert (run.growth[1] > 0).all()
    assert run.growth == pytest.approx(model.rightmost_root().real, rel=0.05)
    assert set(run.verdict[1]) == {"oscillates"}
    assert np.isnan(run.final_queue[1]).all()
    assert run.final_queue[0] == pytest.approx(model.fixed_point().queue[0], rel=1e-3)


@pytest.mark.slow
def test_patched_timely_runs_as_its_own_roots_say_and_not_as_the_published_margins():
    """At 20 flows the published slope promises 43 degrees; with the paper's the queue cycles."""
    printed = patched_timely(flows=20, rate=10 * GBIT, feedback_delay=0.0)
    script = patched_timely(flows=20, rate=10 * GBIT, feedback_delay=0.0, slope=0.5)
    assert printed.phase_margin("published") == pytest.approx(script.phase_margin(), abs=1e-9)
    assert script.phase_margin() > 40
    assert script.stable()
    assert not printed.stable()
    assert printed.critical_delay() == 0
    both = patched_timely(flows=20, rate=10 * GBIT, feedback_delay=0.0, slope=[2.0, 0.5])
    assert both.simulate(0.02, 4e-6).verdict.tolist() == ["oscillates", "settles"]


@needs_data
@pytest.mark.parametrize(
    "path", sorted(DATA.glob("ecn-or-delay/*.txt")), ids=lambda path: path.stem
)
def test_every_published_margin_and_bound_is_reproduced(path):
    flows, published = np.loadtxt(path).T
    given = {
        "flows": flows,
        "feedback_delay": float((re.search(r"delay(\d+)", path.stem) or [0, 0])[1]) * MICRO,
    }
    if "timely" in path.stem:
        computed = patched_timely(rate=10 * GBIT, **given).phase_margin("published")
    else:
        given["rate"] = (100 if "100gbps" in path.stem else 40) * GBIT
        given["increase"] = (10 if "rai10" in path.stem else 40) * GBIT / 1000
        given["kmax"] = 1000e3 if "kmax1000" in path.stem else 200e3
        model = dcqcn(**given)
        if "convergence" in path.stem:
            assert model.convergence_bound() == pytest.approx(published, rel=1e-4)
            return
        computed = model.phase_margin("published")
    assert np.abs(computed - published).max() <= 0.1


def test_the_expansion_is_exact_where_counters_are_short_and_the_slips_are_not():
    """The expansion's small quantity is F B p; short counters and small steps make it small."""
    given = {"flows": 10.0, "rate": 40 * GBIT, "feedback_delay": 0.0, "byte_counter": 27e3}
    off = {}
    for step in (5e4, 5e0):
        model = dcqcn(**given, increase=step)
        off[step] = [
            model.critical_delay(name) / model.critical_delay() - 1 for name in model.models[1:]
        ]
    assert np.abs(off[5e0][:2]).max() < 0.006 < np.abs(off[5e4][:2]).max()
    assert off[5e0][2] < -0.9


@pytest.mark.parametrize("steps", [27.0, 10_000.0])
def test_what_the_expansion_leaves_out_is_of_the_second_order(steps):
    p = dcqcn(flows=10.0, rate=40 * GBIT, feedback_delay=0.0, byte_counter=steps * 1e3).values()
    rate = p.rate / p.flows
    left = []
    for marking in (1e-7, 1e-8):
        exact, expanded = (
            np.array(s24.ecn._terms(p, np.array([marking]), rate, e)) for e in (False, True)
        )
        left.append(np.abs(exact - expanded)[:, 0])
    assert np.all(left[1] < left[0] / 80 + 1e-15)


def test_differences_between_dcqcn_flows_fade_at_delays_a_hundred_times_longer():
    model = dcqcn(flows=FLOWS, **COMMON)
    omega, _, lead, unstable = crossings(model.linear()[1])
    assert not unstable.any()
    assert ((lead / omega)[:, 0] > 100 * model.critical_delay()).all()


@given(flows=st.floats(1.5, 40), share=st.floats(0.1, 0.9))
@settings(max_examples=20, deadline=None)
def test_hpcc_loses_stability_at_the_delay_of_its_scalar_equation(flows, share):
    """T x' = -a x - b x(t - D) with b = eta/U and a = 1 - b: D = arccos(-a/b) T/sqrt(b^2 - a^2)."""
    whole = 100 * GBIT * 10e-6
    model = hpcc(
        flows=flows, rate=100 * GBIT, feedback_delay=0.0, increase=share * 0.05 * whole / flows
    )
    b = 0.95 / (0.95 + share * 0.05)
    a = 1 - b
    assert model.critical_delay() == pytest.approx(
        np.arccos(-a / b) * 10e-6 / np.sqrt(b**2 - a**2), rel=1e-9
    )


def test_hpcc_fills_the_link_and_queues_what_is_above():
    run = hpcc(
        flows=4, rate=100 * GBIT, feedback_delay=10e-6, increase=[781.25, 1562.5, 3125.0]
    ).simulate(4e-3, 5e-6, rates=[1 * GBIT, 7 * GBIT])
    assert run.queue[-1] == pytest.approx([0, 0, 6250], abs=20)
    assert 2 * run.rates[-1].sum(axis=0) == pytest.approx(
        np.array([0.975, 1, 1]) * 100 * GBIT, rel=0.02
    )


@given(flows=st.floats(1, 30), delay=st.floats(20e-6, 500e-6))
@settings(max_examples=25, deadline=None)
def test_a_dctcp_window_loses_in_a_round_trip_what_it_gains(flows, delay):
    model = dctcp(flows=flows, rate=10 * GBIT, feedback_delay=0.0, round_trip=delay)
    point = model.fixed_point()
    window = (10 * GBIT * delay + point.queue) / flows / 1500
    assert window * point.marking**2 == pytest.approx(2, rel=1e-9)


@given(st.floats(2, 15))
@settings(max_examples=20, deadline=None)
def test_patched_timely_flows_grow_alike_at_half_of_delta_over_the_burst(flows):
    mode = patched_timely(flows=flows, rate=10 * GBIT, feedback_delay=0.0).linear()[1]
    roots = np.linalg.eigvals(mode.now[0])
    assert np.sort(roots.real)[-1] == pytest.approx(-10e6 / 8 / (2 * 16e3), rel=1e-9)


@given(st.floats(0.1, 10), st.floats(2, 12))
@settings(max_examples=20, deadline=None)
def test_only_packets_count(scale, flows):
    """A network whose rates and sizes are all larger by one factor is the same network."""
    sizes = {
        "rate": 40 * GBIT,
        "increase": 40e6 / 8,
        "packet": 1e3,
        "kmin": 5e3,
        "kmax": 2e5,
        "byte_counter": 1e7,
    }
    models = [
        dcqcn(flows=flows, feedback_delay=50e-6, **{k: v * s for k, v in sizes.items()})
        for s in (1.0, scale)
    ]
    assert models[0].critical_delay() == pytest.approx(models[1].critical_delay(), rel=1e-9)
    assert models[0].fixed_point().queue * scale == pytest.approx(
        models[1].fixed_point().queue, rel=1e-9
    )


def test_beyond_the_marking_ramp_there_is_no_number():
    model = dcqcn(flows=[14, 15], **COMMON)
    assert model.fixed_point().valid.tolist() == [True, False]
    assert np.isnan(model.critical_delay()).tolist() == [False, True]
    assert np.isnan(model.phase_margin()).tolist() == [False, True]
    assert np.isfinite(model.phase_margin("published")).all()
    assert not model.stable()[1]
    with pytest.raises(ValueError, match="rates must be given where the fixed point is not valid"):
        model.simulate(1e-3)
    with pytest.raises(ValueError, match="without a fixed point has no linearisation"):
        timely(flows=2, rate=10 * GBIT, feedback_delay=4e-6).critical_delay()


@pytest.mark.slow
def test_timely_keeps_the_rates_it_began_with():
    model = timely(flows=2, rate=10 * GBIT, feedback_delay=4e-6)
    ends = []
    for share in (0.5, 0.9):
        run = model.simulate(0.03, 5e-6, rates=10 * GBIT * np.array([share, 1 - share]))
        assert run.verdict == "oscillates"
        assert np.isnan(run.final_queue)
        rates = run.rates[len(run.rates) // 2 :].mean(axis=0)
        ends.append(rates[0] / rates.sum())
    assert ends[0] == pytest.approx(0.5)
    assert ends[1] > 0.6


def test_the_probability_of_stability_is_the_sum_over_flows_and_distances():
    fabric, chance = fat_tree(4), {2: 0.25, 8: 0.5, 20: 0.25}
    model = dcqcn(flows=1, rate=40 * GBIT, feedback_delay=0.0)
    found = stability_probability(model, fabric, chance, hop_delay=11e-6, base_delay=5e-6)
    wanted = {"stable": 0.0, "unstable": 0.0, "invalid": 0.0}
    statistics = hop_statistics(fabric)
    for n, p in chance.items():
        for hops, count in statistics.histogram.items():
            one = dcqcn(flows=n, rate=40 * GBIT, feedback_delay=5e-6 + hops * 11e-6)
            kind = (
                "invalid"
                if not one.fixed_point().valid
                else "stable"
                if one.stable()
                else "unstable"
            )
            wanted[kind] += p * count / statistics.pairs
    assert (found.stable, found.unstable, found.invalid) == pytest.approx(tuple(wanted.values()))
    assert found.stable + found.unstable + found.invalid == pytest.approx(1)
    assert min(wanted.values()) > 0.2
    shares = [
        stability_probability(model, leaf_spine(4, 2, 4), {10: 1.0}, h * MICRO).stable
        for h in (1, 20, 40)
    ]
    assert shares[0] == 1
    assert sorted(shares, reverse=True) == shares
    assert shares[2] == 0


def test_unclear_flows_are_refused():
    model = dcqcn(flows=1, **COMMON)
    with pytest.raises(ValueError, match="flows must have probabilities that sum to 1"):
        stability_probability(model, fat_tree(4), {2: 0.5}, 1e-6)
    with pytest.raises(ValueError, match="broadcast"):
        dcqcn(flows=[1, 2], rate=[1e9, 2e9, 3e9], feedback_delay=0.0).fixed_point()
    with pytest.raises(ValueError, match="kmax must be above kmin"):
        dcqcn(flows=2, **COMMON, kmax=5e3).fixed_point()
