from itertools import pairwise

import pytest

from relparallel.book.s22 import abridge, disjoint_routes, gallery
from relparallel.topology import bcube, dcell, describe, fat_tree, hpn7, leaf_spine, torus


def test_a_gallery_has_titles_notes_and_no_empty_frames():
    fig = gallery({name: bcube(2, 1) for name in "abc"}, {"b": "a note"}, {}, columns=2, height=1.5)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["a", "b", "c", ""]
    assert [text.get_text() for text in fig.axes[1].texts] == ["a note"]
    assert not any(ax.axison for ax in fig.axes)
    assert fig.get_size_inches().tolist() == [7.0, 3.0]


def test_a_note_without_a_picture_is_refused():
    with pytest.raises(ValueError, match="notes and pairs must be for pictures, got c, d"):
        gallery({"a": bcube(2, 1)}, {"c": "none"}, {"d": (0, 1)})


def test_a_panel_counts_the_routes_of_its_pair():
    fig = gallery({"a": bcube(3, 1), "b": leaf_spine(2, 2, 2)}, {}, {"a": (0, 8), "b": (0, 3)})
    titles = [ax.get_title(loc="left") for ax in fig.axes[:2]]
    assert titles == ["a: 2 routes", "b: 1 route"]


@pytest.mark.parametrize(
    ("t", "routes"),
    [(bcube(3, 2), 3), (dcell(3, 2), 3), (fat_tree(4), 1), (torus((3, 3, 3)), 6), (hpn7(1), 3)],
    ids=repr,
)
def test_routes_are_disjoint_and_as_many_as_the_closed_form_says(t, routes):
    """And none passes through a host that does not forward."""
    found = disjoint_routes(t, 0, t.num_hosts - 1)
    steps = [frozenset(step) for route in found for step in pairwise(route)]
    assert len(found) == routes == describe(t.meta.name, **t.meta.parameters).host_connectivity
    assert len(set(steps)) == len(steps)
    assert set(steps) <= {frozenset(edge) for edge in t.edges.tolist()}
    assert all(t.transit[node] for route in found for node in route[1:-1])


def test_an_abridged_cluster_keeps_all_that_chosen_hosts_reach():
    """In HPN a GPU has two leaves and its NVSwitch; two of 60 aggregation switches of a plane."""
    t = abridge(hpn7(2), {"aggregation": 4}, hosts=[0, 1, 1024, 1025])
    assert [int(t.is_kind(kind).sum()) for kind in t.kinds] == [4, 2, 8, 4]
    assert len(disjoint_routes(t, 0, 3)) == 3
