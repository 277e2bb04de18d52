"""Groups of layers that are sent to a GPU: bounds, brute force and limits."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s38.model_switching import switch_plan, switching_time

TIMES = st.lists(st.tuples(st.floats(0.01, 3), st.floats(0.01, 3)), min_size=1, max_size=7)
CALL = st.floats(0.01, 2)


def groupings(n):
    for cuts in product((0, 1), repeat=n - 1):
        yield np.diff(np.flatnonzero([1, *cuts, 1])).tolist()


@settings(deadline=None)
@given(
    layers=TIMES, per_send=st.one_of(st.just(0.0), CALL), per_group=st.one_of(st.just(0.0), CALL)
)
def test_no_grouping_is_faster_and_none_beats_the_bound(layers, per_send, per_group):
    send, compute = np.array(layers).T
    calls = {"per_send": per_send, "per_group": per_group}
    plan = switch_plan(send, compute, **calls)
    every = [switching_time(send, compute, g, **calls) for g in groupings(len(layers))]
    assert plan.time == pytest.approx(min(every), rel=1e-12)
    assert switching_time(send, compute, plan.groups, **calls) == pytest.approx(
        plan.time, rel=1e-12
    )
    assert plan.bound <= plan.time * (1 + 1e-12)


def test_what_is_computed_waits_for_what_is_sent_and_for_the_layer_before():
    assert switching_time([2, 1], [5, 1], [1, 1], per_send=0, per_group=0) == 8
    assert switching_time([2, 9], [5, 1], [1, 1], per_send=0, per_group=0) == 12
    assert switching_time([2, 9], [5, 1], [2], per_send=0.5, per_group=0.25) == 17.75


def test_groups_that_do_not_hold_the_layers_are_refused():
    with pytest.raises(ValueError, match="groups must hold all 2 layers, got \\[1\\]"):
        switching_time([1, 1], [1, 1], [1], per_send=0, per_group=0)
    with pytest.raises(ValueError, match="send and compute must be as long as each other"):
        switch_plan([1, 1], [1], per_send=0, per_group=0)
