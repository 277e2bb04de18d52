from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from scipy.spatial.distance import pdist

from relparallel.drawing import draw_topology, positions
from relparallel.plotting import PALETTE, figure
from relparallel.topology import (
    aspen,
    bcube,
    c_through,
    dcell,
    dragonfly,
    fat_tree,
    ficonn,
    hammingmesh,
    helios,
    leaf_spine,
    mdcube,
    nvl72,
    rail_only,
    reconfigure,
    slim_fly,
    three_tier,
    torus,
    tpu_v4,
    vl2,
)

DESIGNS = [
    fat_tree(4),
    leaf_spine(3, 2, 4),
    bcube(3, 0),
    bcube(4, 1),
    bcube(3, 2),
    dcell(4, 0),
    dcell(4, 1),
    dcell(3, 2),
    torus((1,)),
    torus((7,)),
    torus((2, 3)),
    torus((4, 1, 4)),
    torus((4, 3, 3)),
    nx.petersen_graph(),
    leaf_spine(1, 9, 1),
    vl2(4, 4),
    three_tier(2, 3, 2, 3),
    three_tier(9, 1, 1, 1),
    aspen(4, 4, (0, 1, 0)),
    helios(4, 8, 0.5, 0.5, 2),
    reconfigure(c_through(3, 2, 3), [(0, 5), (1, 2)]),
    rail_only(4, 4),
    nvl72(),
    dragonfly(1, 2, 1),
    slim_fly(5, 2),
    hammingmesh(2, 2, 2, 3),
    hammingmesh(1, 3, 2, 1),
    tpu_v4((4, 4, 4)),
    ficonn(4, 0),
    ficonn(2, 2),
    ficonn(4, 2),
    mdcube(4, 1, (3, 3)),
    mdcube(2, 2, (2,)),
]


@pytest.mark.parametrize("t", DESIGNS, ids=str)
def test_no_two_nodes_stand_in_one_place(t):
    points = positions(t)
    assert points.shape == (len(t) if isinstance(t, nx.Graph) else t.num_nodes, 2)
    assert np.isfinite(points).all()
    assert len(points) == 1 or pdist(points).min() > 0.2


def test_tiers_are_rows_and_pods_do_not_overlap():
    t = fat_tree(6)
    x, y = positions(t).T
    assert np.array_equal(np.unique(y, return_inverse=True)[1], t.tier)
    spans = [(x[t.pod == pod].min(), x[t.pod == pod].max()) for pod in range(6)]
    assert all(right < left for (_, right), (left, _) in pairwise(spans))


@pytest.mark.parametrize(
    "t",
    [vl2(4, 6), three_tier(2, 3, 2, 3), aspen(4, 6, (0, 0, 0)), helios(4, 8, 0.5, 0.5), rail_only(4, 4)],
    ids=repr,
)
def test_tiers_of_every_clos_network_are_rows_and_its_pods_groups(t):
    x, y = positions(t).T
    assert np.array_equal(np.unique(y, return_inverse=True)[1], np.unique(t.tier, return_inverse=True)[1])
    spans = [(x[t.pod == pod].min(), x[t.pod == pod].max()) for pod in range(int(t.pod.max()) + 1)]
    assert all(right < left for (_, right), (left, _) in pairwise(spans))


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
    edges = t.number_of_edges() if isinstance(t, nx.Graph) else len(t.edges)
    around = (
        0
        if isinstance(t, nx.Graph) or t.meta.name not in ("torus", "tpu_v4")
        else stubs(t.meta.parameters["dims"])
    )
    assert drawn == edges + around
    nodes = sum(len(c.get_offsets()) for c in ax.collections if c not in lines(ax))
    assert nodes == (len(t) if isinstance(t, nx.Graph) else t.num_nodes)


def stubs(dims):
    """Cables round the edge of a grid, drawn as two stubs each."""
    longer = [length for length in dims if length > 1]
    total = int(np.prod(longer))
    return sum(total // length for length in longer if length > 2) if len(longer) > 1 else 0


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
