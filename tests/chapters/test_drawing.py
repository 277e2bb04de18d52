from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from scipy.spatial.distance import pdist

from chapters.drawing import draw_topology, positions
from chapters.drawing.layouts import shades
from chapters.drawing.paint import PLAIN, cable_colours, switch_colours
from chapters.s22.abridged import abridge
from chapters.s22.moved_circuits import reconfigure
from relparallel.plotting import PALETTE, figure
from relparallel.topology import (
    aspen,
    bcube,
    c_through,
    dcell,
    dgx_superpod,
    dragonfly,
    dragonfly_plus,
    f10,
    fat_tree,
    ficonn,
    hammingmesh,
    helios,
    hpn7,
    hyperx,
    leaf_spine,
    mdcube,
    meta_roce,
    nvl72,
    polarfly,
    rail_only,
    slim_fly,
    three_tier,
    torus,
    tpu_v4,
    vl2,
    xpander,
)
from small_networks import small_networks

PODS = [  # abridged
    abridge(vl2(4, 4)),
    abridge(dgx_superpod(2), {"gpu": 4}),
    abridge(hpn7(2), {"gpu": 3, "aggregation": 8}),
    abridge(meta_roce(2), {"rack": 3, "cluster": 4, "aggregation": 1}),
]
CIRCUITS = reconfigure(c_through(3, 2, 3), [(0, 5), (1, 2)])
DESIGNS = [
    *(t for t in small_networks(130, 1) if t.meta.name not in ("polarfly", "dragonfly_plus")),
    *(polarfly(q, p) for q, p in ((2, 1), (3, 0), (4, 1), (5, 1), (7, 2))),
    *(dragonfly_plus(*shape) for shape in ((2, 2, 2, 2), (3, 2, 1, 1))),
    *(leaf_spine(1, 9, 1), torus((4, 1, 4)), nx.petersen_graph(), CIRCUITS, *PODS),
]


@pytest.mark.parametrize("t", DESIGNS, ids=str)
def test_no_two_nodes_stand_in_one_place(t):
    points = positions(t)
    assert points.shape == (len(t) if isinstance(t, nx.Graph) else t.num_nodes, 2)
    assert np.isfinite(points).all()
    assert len(points) == 1 or pdist(points).min() > 0.2


@pytest.mark.parametrize(
    "t",
    [
        fat_tree(6),
        vl2(4, 6),
        three_tier(2, 3, 2, 3),
        aspen(4, 6, (0, 0, 0)),
        helios(4, 8, 0.5, 0.5),
        *PODS,
    ],
    ids=repr,
)
def test_tiers_of_every_clos_network_are_rows_and_its_pods_groups(t):
    x, y = positions(t).T
    assert np.array_equal(
        np.unique(y, return_inverse=True)[1], np.unique(t.tier, return_inverse=True)[1]
    )
    spans = [(x[t.pod == pod].min(), x[t.pod == pod].max()) for pod in range(int(t.pod.max()) + 1)]
    assert all(right < left for (_, right), (left, _) in pairwise(spans))


def test_nvswitches_stand_below_the_gpus_and_rails_above():
    t = rail_only(4, 4)
    y = positions(t)[:, 1]
    assert (
        y[t.is_kind("nvswitch")].max()
        < y[t.hosts].min()
        <= y[t.hosts].max()
        < y[t.is_kind("leaf")].min()
    )


def test_circuits_are_arcs_above_their_racks():
    t = reconfigure(c_through(3, 2, 3), [(0, 5)])
    _, ax = figure()
    draw_topology(t, ax)
    arcs = [path for path in lines(ax)[0].get_segments() if len(path) > 2]
    assert len(arcs) == 1
    assert arcs[0][:, 1].max() > positions(t)[t.is_kind("tor"), 1].max()


def test_hosts_stand_outside_the_switches_of_their_group():
    t = dragonfly(2, 4, 2)
    points = positions(t)
    for pod in range(int(t.pod.max()) + 1):
        centre = points[t.pod == pod].mean(axis=0)
        away = np.hypot(*(points - centre).T)
        assert away[(t.pod == pod) & t.endpoint].min() > away[(t.pod == pod) & ~t.endpoint].max()
        assert away[t.pod != pod].min() > away[t.pod == pod].max()


def test_containers_of_an_mdcube_stand_on_the_grid_of_its_dimensions():
    t = mdcube(4, 1, (2, 3))
    points = positions(t)
    low = np.array([points[t.pod == pod].min(axis=0) for pod in range(6)]).reshape(2, 3, 2)
    high = np.array([points[t.pod == pod].max(axis=0) for pod in range(6)]).reshape(2, 3, 2)
    assert np.all(high[:, :-1, 0] < low[:, 1:, 0])
    assert np.all(low[:-1, :, 1] > high[1:, :, 1])
    assert np.ptp(low[0, :, 1]) == 0


def test_servers_of_a_bcube_switch_stand_in_its_row_or_column():
    t = bcube(n=4, k=1)
    points = positions(t)
    for switch in t.switches:
        servers = t.indices[t.indptr[switch] : t.indptr[switch + 1]]
        level = t.tier[switch] - 1
        assert np.ptp(points[servers, 1 - level]) == 0
        assert np.allclose(points[servers, 1 - level], points[switch, 1 - level])


def test_the_copies_of_a_dcell_stand_on_a_circle():
    t = dcell(n=4, k=1)
    points = positions(t)
    middle = np.array([points[t.endpoint & (t.pod == pod)].mean(axis=0) for pod in range(5)])
    assert np.allclose(np.hypot(*middle.T), np.hypot(*middle[0]))
    assert np.allclose(middle, points[t.switches])


def lines(ax):
    return [c for c in ax.collections if isinstance(c, LineCollection)]


@pytest.mark.parametrize("t", DESIGNS, ids=str)
def test_every_cable_and_node_is_drawn(t):
    _, ax = figure()
    draw_topology(t, ax)
    (cables,) = lines(ax)
    drawn = len(cables.get_segments())
    assert drawn == (t.number_of_edges() if isinstance(t, nx.Graph) else len(t.edges))
    nodes = sum(len(c.get_offsets()) for c in ax.collections if c not in lines(ax))
    assert nodes == (len(t) if isinstance(t, nx.Graph) else t.num_nodes)


@pytest.mark.parametrize(
    ("t", "broken"), [(torus((4, 3, 3)), 33), (torus((4, 3, 3), (True, False, False)), 9)]
)
def test_a_cable_round_the_edge_of_a_box_is_a_stub_at_both_ends(t, broken):
    _, ax = figure()
    draw_topology(t, ax)
    assert sum(bool(np.isnan(path.vertices).any()) for path in lines(ax)[0].get_paths()) == broken


def test_the_sheets_of_a_torus_stand_above_each_other():
    y = positions(torus((4, 3, 3)))[:, 1].reshape(4, 3, 3)
    assert np.all(y[:, :, :-1].max(axis=(0, 1)) < y[:, :, 1:].min(axis=(0, 1)))


def test_a_pentagon_is_an_outer_subgroup_of_a_slim_fly_and_a_pentagram_an_inner_one():
    t = slim_fly(5, 0)
    points = positions(t)
    side = np.hypot(*(points[t.edges[:, 0]] - points[t.edges[:, 1]]).T)
    own = t.pod[t.edges[:, 0]] == t.pod[t.edges[:, 1]]
    outer = t.pod[t.edges[:, 0]] < 5
    assert np.ptp(side[own & outer]) < 1e-9
    assert np.allclose(side[own & ~outer].mean() / side[own & outer].mean(), (1 + 5**0.5) / 2)


@pytest.mark.parametrize("q", [3, 5, 7])
def test_clusters_of_a_polarfly_are_fans_of_triangles_around_the_quadrics(q):
    t = polarfly(q, 0)
    colours, quadric = cable_colours(t), switch_colours(t) == PALETTE["vermilion"]
    assert quadric.sum() == q + 1
    graph = nx.Graph(t.edges[colours == PALETTE["blue"]].tolist())
    fans = list(nx.connected_components(graph))
    assert sorted(map(len, fans)) == [q] * q
    assert all(sum(nx.triangles(graph.subgraph(fan)).values()) == 3 * (q - 1) // 2 for fan in fans)
    assert not quadric[list(graph)].any()


def share(t, colour):
    return int((cable_colours(t) == PALETTE[colour]).sum())


@pytest.mark.parametrize(
    ("t", "counts"),
    [
        (f10(4), {"blue": 8, "orange": 8}),
        (aspen(3, 4, (1, 0)), {"blue": 8}),
        (bcube(3, 2), {"blue": 27, "orange": 27}),
        (dcell(4, 1), {"blue": 10}),
        (ficonn(4, 2), {"blue": 12, "orange": 6}),
        (mdcube(2, 1, (3, 3)), {"blue": 18}),
        (torus((4, 4)), {"blue": 8}),
        (torus((4, 4), wrap=False), {"blue": 0}),
        (tpu_v4((4, 4, 4)), {"vermilion": 48, "blue": 0}),
        (hammingmesh(2, 2, 2, 3), {"blue": 24, "orange": 24}),
        (hyperx((4, 3), 2), {"blue": 12, "orange": 18}),
        (dragonfly(1, 4, 2), {"blue": 36}),
        (dragonfly_plus(2, 2, 2, 2), {"blue": 10}),
        (slim_fly(5, 1), {"blue": 50}),
        (rail_only(4, 4), {"green": 16, "blue": 4, "orange": 4, "purple": 4, "sky": 4}),
        (rail_only(4, 8), {"green": 32, "blue": 4, "orange": 0}),
        (nvl72(), {"green": 72}),
        (reconfigure(helios(4, 8, 0.25, 0.75, 2), [(0, 2), (1, 3)]), {"vermilion": 2}),
        (reconfigure(c_through(2, 3, 3), [(0, 4), (1, 3)]), {"vermilion": 2}),
        (hpn7(1), {"green": 1024, "blue": 1024 + 480, "orange": 1024 + 480}),
        (PODS[2], {"green": 0, "blue": 16 * 3 + 64, "orange": 16 * 3 + 64}),
        (PODS[1], {"blue": 2 * 4 + 2 * 8}),
    ],
    ids=repr,
)
def test_a_colour_tells_a_kind_of_cable(t, counts):
    assert {colour: share(t, colour) for colour in counts} == counts
    known = {PLAIN, *PALETTE.values()}
    assert set(cable_colours(t).tolist()) <= known


@pytest.mark.parametrize(
    ("t", "parts"),
    [
        (fat_tree(4), 4),
        (bcube(4, 1), 0),
        (dcell(4, 1), 5),
        (ficonn(4, 2), 12),
        (mdcube(2, 1, (3, 3)), 9),
        (torus((4, 4)), 0),
        (torus((4, 3, 3)), 3),
        (hammingmesh(2, 2, 2, 3), 6),
        (dragonfly(1, 4, 2), 9),
        (slim_fly(5, 1), 10),
        (polarfly(5, 1), 6),
        (xpander(4, 3, 2, np.random.default_rng(0)), 5),
    ],
    ids=repr,
)
def test_what_belongs_together_is_shaded(t, parts):
    points = positions(t)
    patches = shades(t, points)
    assert len(patches) == parts
    _, ax = figure()
    for patch in patches:
        ax.add_patch(patch)
        inside = patch.get_path().transformed(patch.get_patch_transform()).contains_points(points)
        assert inside.any()


def test_an_abridged_cluster_keeps_the_hosts_of_the_switches_it_shows():
    t = abridge(meta_roce(2), {"rack": 3, "cluster": 4})
    count = t.node_attributes["count"]
    # two servers of eight GPUs on each of three racks of a pod
    assert count[t.hosts].tolist() == [8] * 12
    assert set(t.degrees[t.hosts].tolist()) == {1}
    assert t.node_attributes["of"][t.is_kind("rack")].tolist() == [192] * 6
    assert (
        sorted(np.bincount(t.edges[t.is_kind("rack")[t.edges[:, 1]], 1])[-6:].tolist()) == [2] * 6
    )


def test_hosts_of_a_switch_become_one_and_other_cables_stay():
    t, whole = abridge(vl2(4, 4)), vl2(4, 4)
    assert t.node_attributes["count"].sum() == whole.num_hosts == 80
    assert (t.num_hosts, t.num_switches) == (whole.is_kind("tor").sum(), whole.num_switches)
    assert len(t.edges) == len(whole.edges) - 80 + 4
    kept = {tuple(edge) for edge in whole.edges[~whole.endpoint[whole.edges].any(axis=1)].tolist()}
    named = {tuple(t.labels[v] for v in edge) for edge in t.edges if not t.endpoint[edge].any()}
    assert named == kept


def test_rows_that_are_cut_are_marked_and_circles_numbered():
    _, ax = figure()
    draw_topology(abridge(dgx_superpod(1), {"gpu": 4}), ax)
    assert sorted(text.get_text() for text in ax.texts) == ["8"] * 4 + ["···"]
    _, ax = figure()
    draw_topology(abridge(vl2(4, 4)), ax)
    assert [text.get_text() for text in ax.texts] == ["20"] * 4


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": "net"}, "topology must be"),
        ({"topology": torus((3, 3))}, "topology must have tiers"),
        ({"shown": {"racks": 3}}, "shown must be"),
    ],
)
def test_bad_abridgements_are_named(arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        abridge(**{"topology": fat_tree(4), **arguments})


def test_paths_have_colours_of_their_own_and_filled_ends():
    t = bcube(n=4, k=1)
    _, ax = figure()
    paths = list(nx.edge_disjoint_paths(t.to_networkx(), 0, 15))
    draw_topology(t, ax, paths=paths)
    cables, *drawn = lines(ax)
    assert [len(c.get_segments()) for c in drawn] == [len(path) - 1 for path in paths]
    assert len({tuple(c.get_color()[0]) for c in [cables, *drawn]}) == 3
    filled = [c for c in ax.collections if len(c.get_offsets()) == 2 and c.get_facecolor().size]
    assert any(np.allclose(c.get_offsets(), positions(t)[[0, 15]]) for c in filled)
    assert PALETTE["yellow"] == "#F0E442"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topology": "net"}, "topology must be"),
        ({"topology": torus((3, 3, 3, 3))}, "topology must have at most three dimensions"),
        ({"ax": None}, "ax must be Axes"),
        ({"paths": 3}, "paths must be tuple or list"),
        ({"paths": [(0, 99)]}, "label must be a node"),
        ({"paths": [(0, 1)]}, "paths must follow cables"),
        ({"paths": [(0,)]}, "paths must follow cables"),
        ({"paths": ["01"]}, "paths must be tuple or list"),
    ],
)
def test_bad_arguments_are_named(arguments, error):
    _, ax = figure()
    with pytest.raises((TypeError, ValueError), match=error):
        draw_topology(**{"topology": fat_tree(4), "ax": ax, **arguments})
