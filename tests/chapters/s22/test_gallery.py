import networkx as nx
import pytest

from chapters.s22 import abridge, gallery
from relparallel.topology import as_topology, bcube, hpn7, leaf_spine
from relparallel.topology.disjoint import disjoint_path_set


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
    """Routes share no cable, but may meet in a node."""
    squares = as_topology(
        nx.Graph([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)])
    )
    shown = {"a": bcube(3, 1), "b": leaf_spine(2, 2, 2), "c": squares}
    fig = gallery(shown, {}, {"a": (0, 8), "b": (0, 3), "c": (0, 6)})
    titles = [ax.get_title(loc="left") for ax in fig.axes[:3]]
    assert titles == ["a: 2 routes", "b: 1 route", "c: 2 routes"]


def test_an_abridged_cluster_keeps_all_that_chosen_hosts_reach():
    """In HPN a GPU has two leaves and its NVSwitch; two of 60 aggregation switches of a plane."""
    t = abridge(hpn7(2), {"aggregation": 4}, hosts=[0, 1, 1024, 1025])
    assert [int(t.is_kind(kind).sum()) for kind in t.kinds] == [4, 2, 8, 4]
    assert len(disjoint_path_set(t, t.labels[0], t.labels[3], share="nodes")) == 3
