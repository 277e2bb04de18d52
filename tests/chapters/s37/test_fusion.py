"""Merged gradients and groups of layers against every way of merging a few, and special cases."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s35.profiles import read_profile
from chapters.s37.fusion import fuse_gradients, merge_gradients
from public_data import DATA, needs_data

CASES = st.tuples(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=7),
    st.integers(0, 9),
)


def every_grouping(n):
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = (0, *cuts, n)
            yield list(pairwise(edges))


@given(CASES)
@settings(max_examples=100)
def test_no_merging_ends_sooner(case):
    steps, latency = case
    ready, sent = np.cumsum([step for step, _ in steps]), np.array([size for _, size in steps])

    def finish(groups):
        end = 0.0
        for i, j in groups:
            end = max(end, ready[j - 1]) + latency + sent[i:j].sum() / 2
        return end

    rows = np.column_stack((ready, sent))
    found = merge_gradients(rows, latency=latency, bandwidth=2)
    assert found.finish == finish(found.groups) == min(map(finish, every_grouping(len(steps))))
    for method, groups in {
        "none": [(i, i + 1) for i in range(len(steps))],
        "all": [(0, len(steps))],
    }.items():
        assert merge_gradients(rows, latency=latency, bandwidth=2, method=method).finish == finish(
            groups
        )
    for other in (
        merge_gradients(rows, latency=latency, bandwidth=2, method="greedy"),
        fuse_gradients(rows, latency=latency, bandwidth=2, buffer=9, cycle=3),
    ):
        assert [i for i, _ in other.groups] == [0, *(j for _, j in other.groups[:-1])]
        assert other.groups[-1][1] == len(steps)
        assert other.finish >= found.finish
        assert (other.begin >= ready[[j - 1 for _, j in other.groups]]).all()


def test_the_buffer_and_the_cycle_of_horovod_cut_the_messages():
    rows = np.column_stack((np.arange(1.0, 9.0), np.full(8, 4.0)))
    fused = [
        fuse_gradients(rows, latency=1, bandwidth=4, buffer=buffer, cycle=cycle)
        for buffer, cycle in ((1, 1e-9), (1e9, 100), (8, 100), (1e9, 1e-9))
    ]
    assert [len(found.groups) for found in fused] == [8, 1, 4, 4]
    assert fused[0].finish == pytest.approx(
        merge_gradients(rows, latency=1, bandwidth=4, method="none").finish
    )
    assert fused[1].begin[0] == 100
    assert fused[2].finish == 100 + 4 * (1 + 2)


@needs_data
def test_the_rule_of_mg_wfbp_is_optimal_on_measured_profiles_but_where_messages_are_slow_to_start():
    """It is the optimum on the paper's networks and a faster one; not always at 2 ms a message."""
    names = ("alexnet", "vgg16", "resnet50", "resnet101", "gnmt")
    networks = [
        (9.1e-4, 7.4e-10),
        (5.2e-4, 8.6e-10),
        (2.4e-4, 4.1e-10),
        (4e-5, 1.5e-10),
        (2e-3, 3e-10),
    ]
    worse = []
    for name in names:
        graph = read_profile(DATA / f"pipedream-profiles/{name}/graph.txt")
        for latency, per_byte in networks:
            greedy, optimal = (
                merge_gradients(
                    graph, latency=latency, bandwidth=1 / per_byte, method=method
                ).finish
                for method in ("greedy", "optimal")
            )
            assert greedy >= optimal * (1 - 1e-9)
            worse += [(name, latency)] if greedy > optimal * (1 + 1e-6) else []
    assert worse == [("alexnet", 2e-3), ("gnmt", 2e-3)]


@pytest.mark.parametrize("rows", [[[2, 1], [1, 1]], [[1, 1, 1]], [1.0]])
def test_rows_that_are_no_gradients_are_refused(rows):
    with pytest.raises(
        ValueError, match="gradients must be rows of a time that never falls and bytes"
    ):
        merge_gradients(rows, latency=1, bandwidth=1)
