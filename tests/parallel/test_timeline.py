"""The simulator against the longest path of networkx and a step-by-step list scheduler."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.parallel.timeline import Timeline, simulate_timeline


@st.composite
def workloads(draw):
    """Random tasks whose dependencies point from smaller to larger numbers."""
    n = draw(st.integers(1, 14))
    pairs = [(i, j) for j in range(n) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    whole = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    return {
        "resource": draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)),
        "duration": draw(whole),
        "priority": draw(whole),
        "before": [i for i, _ in edges],
        "after": [j for _, j in edges],
        "lag": draw(st.lists(st.integers(0, 3), min_size=len(edges), max_size=len(edges))) or 0,
    }


def lags(work):
    return np.broadcast_to(work["lag"], len(work["before"]))


def longest_paths(work):
    """Start times if every resource goes strictly by priority: longest paths of the task graph."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(work["resource"])))
    edges = list(zip(work["before"], work["after"], lags(work), strict=True))
    order = sorted(
        range(len(work["resource"])), key=lambda i: (work["resource"][i], work["priority"][i], i)
    )
    same = [(a, b, 0) for a, b in pairwise(order) if work["resource"][a] == work["resource"][b]]
    for a, b, lag in edges + same:
        weight = work["duration"][a] + lag
        graph.add_edge(a, b, weight=max(weight, graph.get_edge_data(a, b, {"weight": 0})["weight"]))
    if not nx.is_directed_acyclic_graph(graph):
        return None
    start = dict.fromkeys(graph, 0.0)
    for node in nx.topological_sort(graph):
        for follower in graph.successors(node):
            start[follower] = max(
                start[follower], start[node] + graph.edges[node, follower]["weight"]
            )
    return [start[i] for i in range(len(start))]


def list_schedule(work):
    """Start times by looking at every whole second; a task of length 0 needs several looks."""
    n = len(work["resource"])
    start, now = [None] * n, 0
    edges = list(zip(work["before"], work["after"], lags(work), strict=True))
    while None in start:
        changed = True
        while changed:
            changed = False
            for resource in range(4):
                mine = [i for i in range(n) if work["resource"][i] == resource]
                if any(start[i] is not None and start[i] + work["duration"][i] > now for i in mine):
                    continue
                able = [
                    i
                    for i in mine
                    if start[i] is None
                    and all(
                        start[a] is not None and start[a] + work["duration"][a] + lag <= now
                        for a, b, lag in edges
                        if b == i
                    )
                ]
                if able:
                    start[min(able, key=lambda i: (work["priority"][i], i))] = now
                    changed = True
        now += 1
    return start


@given(work=workloads())
@settings(max_examples=150, deadline=None)
def test_in_order_the_start_times_are_longest_paths(work):
    expected = longest_paths(work)
    if expected is None:
        with pytest.raises(ValueError, match="before and after must let every task start"):
            simulate_timeline(**work, in_order=True)
    else:
        assert simulate_timeline(**work, in_order=True).tolist() == expected


@given(work=workloads())
@settings(max_examples=150, deadline=None)
def test_by_priority_the_start_times_are_those_of_a_step_by_step_scheduler(work):
    # Tasks of length 0 end in the second in which they start, where the order of looking decides.
    work["duration"] = [max(1, d) for d in work["duration"]]
    assert simulate_timeline(**work).tolist() == list_schedule(work)


@given(work=workloads(), in_order=st.booleans())
@settings(deadline=None)
def test_resources_run_one_task_at_a_time_and_dependencies_hold(work, in_order):
    if in_order and longest_paths(work) is None:
        return
    start = simulate_timeline(**work, in_order=in_order)
    finish = start + work["duration"]
    for i, j, lag in zip(work["before"], work["after"], lags(work), strict=True):
        assert finish[i] + lag <= start[j]
    for resource in set(work["resource"]):
        mine = np.flatnonzero(np.array(work["resource"]) == resource)
        mine = mine[np.lexsort((finish[mine], start[mine]))]
        assert (finish[mine][:-1] <= start[mine][1:]).all()


def test_the_more_urgent_task_goes_first_and_in_order_waits_for_it():
    # Task 1 is urgent but waits for task 2 on the other resource.
    work = {
        "resource": [0, 0, 1],
        "duration": [5, 1, 2],
        "priority": [1, 0, 0],
        "before": [2],
        "after": [1],
    }
    assert simulate_timeline(**work).tolist() == [0, 5, 0]
    assert simulate_timeline(**work, in_order=True).tolist() == [3, 2, 0]


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle that stops task 0"):
        simulate_timeline([0, 1], 1.0, [0, 0], before=[0, 1], after=[1, 0])


def timeline(**changes):
    tasks = {
        "resources": 2,
        "resource": np.array([0, 0, 1]),
        "start": np.array([0.0, 2.0, 2.0]),
        "duration": np.array([2.0, 4.0, 2.0]),
        "holding": np.array([1.0, -1.0, 0.5]),
        "kind": np.array(["a", "b", "a"]),
        "item": np.arange(3),
        "part": np.zeros(3, int),
    }
    return Timeline(**tasks | changes)


def test_idle_and_bubble_compare_with_makespan_and_work():
    t = timeline()
    assert (t.makespan, t.busy.tolist()) == (6.0, [6.0, 2.0])
    assert t.idle_fraction == pytest.approx(1 - 8 / 12)
    assert t.bubble_fraction == pytest.approx(12 / 8 - 1)


def test_holdings_grow_at_a_start_shrink_at_an_end_and_are_released_before_they_are_taken():
    assert timeline().peak_in_flight.tolist() == [1.0, 0.5]
    late = timeline(resource=np.array([0, 0, 0]), start=np.array([0.0, 2.0, 6.0]))
    assert late.peak_in_flight.tolist() == [1.0, 0.0]
    early = timeline(resource=np.array([0, 0, 0]), start=np.array([0.0, 2.0, 5.0]))
    assert early.peak_in_flight.tolist() == [1.5, 0.0]


def test_the_table_lists_tasks_by_resource_and_start():
    table = timeline(start=np.array([4.0, 0.0, 2.0])).to_frame()
    assert list(table) == ["resource", "kind", "item", "part", "start", "finish"]
    assert table["item"].tolist() == [1, 0, 2]
    assert table["finish"].tolist() == [4.0, 6.0, 4.0]


WORK = {
    "resource": [0, 1],
    "duration": 1.0,
    "priority": [0, 0],
    "before": [0],
    "after": [1],
    "lag": 0.0,
}


@pytest.mark.parametrize("name", [*WORK, "in_order"])
@pytest.mark.parametrize("bad", [float("nan"), "text", None, -1, [-1.5], [[0]]])
def test_bad_arguments_are_refused(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        simulate_timeline(**WORK | {name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("resource", []),
        ("duration", [1.0]),
        ("priority", [0]),
        ("before", [7]),
        ("after", [1, 1]),
        ("lag", [0, 0]),
    ],
)
def test_columns_of_the_wrong_length_or_range_are_refused(name, bad):
    with pytest.raises((TypeError, ValueError), match=name):
        simulate_timeline(**WORK | {name: bad})
