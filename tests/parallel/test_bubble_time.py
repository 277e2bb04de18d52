"""The waiting time of a step by the formula against the simulator, for any number of micro-batches."""

import pytest
from hypothesis import given, settings, strategies as st

from chapters.s34.weight_versions import iteration_period
from relparallel.hardware import cluster
from relparallel.parallel import Strategy, bubble_fraction, simulate_schedule
from relparallel.parallel.layer_times import passes
from relparallel.parallel.machine_parameters import calibration, software
from relparallel.parallel.quantities import Rates, Sizes, Split
from relparallel.parallel.schedules import ASYNCHRONOUS, SCHEDULES, V_SHAPED
from relparallel.parallel.steady_state import bubble_time
from relparallel.workload import transformer, transformers

# Qi et al., ICLR 2024, table 1; Li and Hoefler, SC 2021, table 2.
PUBLISHED = {
    "zb_h1": lambda p, m, f, b, w: (p - 1) * max(f + b - w, b),
    "zb_2p": lambda p, m, f, b, w: (p - 1) * max(f + b - 2 * w, b - f, 0.0),
    "zb_v": lambda p, m, f, b, w: (p - 1) * (b - w),
    "chimera": lambda p, m, f, b, w: (p - 2) * (max(f, b + w) + (m / p - 1) * abs(b + w - f)),
}
OWN_WEIGHTS = tuple(name for name in SCHEDULES if name not in ASYNCHRONOUS)
# passes
SLACK = {"zb_v": (0.0, 1.0), "chimera": (0.0, 1.0), "v_half": (2.0, 1.0), "v_min": (1.0, 1.0)}


@given(
    name=st.sampled_from(OWN_WEIGHTS),
    p=st.integers(1, 8),
    m=st.integers(1, 30),
    v=st.integers(1, 4),
    b=st.floats(0.5, 4),
    part=st.floats(0.2, 1.0),
    more=st.floats(0.1, 1.0),
)
@settings(max_examples=400, deadline=None)
def test_every_schedule_waits_as_long_as_when_simulated(name, p, m, v, b, part, more):
    v = 2 if name in V_SHAPED else v if name == "interleaved_1f1b" and p > 1 else 1
    p = 2 * p if name == "chimera" else p
    w = b * part
    f = more * (b + 2 * w)
    times = {"forward": f, "backward": b + w, "backward_weight": w}
    period = iteration_period(simulate_schedule(name, p, m, v, **times, iterations=8), m)
    early, late = SLACK.get(name, (0.0, 0.0))
    error = (m * (f + b + w) + bubble_time(SCHEDULES.index(name), p, m, v, f, b, w) - period) / max(
        f, b
    )
    assert -early - 1e-9 * m <= error <= late + 1e-9 * m


@pytest.mark.parametrize("name", transformers())
@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("tensor", [1, 8])
def test_passes_of_models_lie_where_the_forms_hold(name, recompute, tensor):
    """Input gradients cost about a forward pass, and gradients of weights no more than that."""
    device = cluster("h100-80gb-dgx", 8)
    machine = Rates.of(device, calibration("h100-80gb"), software("megatron-bridge-2025"))
    split = Split.of(Strategy(tensor=tensor, recompute=recompute), global_batch=1)
    forward, backward, weight, *_ = passes(Sizes.of(transformer(name)), machine, split)
    assert forward <= backward + weight
    assert weight <= backward - weight


@given(
    name=st.sampled_from([n for n in SCHEDULES if n not in ("v_half", "v_min")]),
    p=st.integers(1, 6),
    rounds=st.integers(2, 5),
    f=st.floats(0.5, 2),
    more=st.floats(1.01, 3),
    part=st.floats(0.2, 0.99),
)
def test_where_the_published_form_holds_ours_says_the_same(name, p, rounds, f, more, part):
    v, p = (2 if name == "zb_v" else 1), (2 * p if name == "chimera" else p)
    m, w, b = rounds * p, f * part, f * more
    whole = 0.0 if name in ASYNCHRONOUS else (p - 1) * (f + b + w) / v
    form = PUBLISHED[name](p, m, f, b, w) if name in PUBLISHED else whole
    assert bubble_time(SCHEDULES.index(name), p, m, v, f, b, w) == pytest.approx(
        form, rel=1e-9, abs=1e-9
    )
    fraction = bubble_fraction(name, p, m, v, forward=f, backward=b + w, backward_weight=w)
    assert fraction * m * (f + b + w) == pytest.approx(form, rel=1e-9, abs=1e-9)
