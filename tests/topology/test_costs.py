from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import relparallel as rp
from chapters import s12, s22
from relparallel.published import data_folder
from relparallel.topology import Design, Topology, bcube, fat_tree, leaf_spine, torus
from relparallel.topology.designs import optical
from relparallel.topology.parts import LINK_CAPACITY

bill_of_materials = rp.topology.bill_of_materials


def helios(electrical, optical, **other):
    return bill_of_materials(
        "helios",
        **{"pods": 64, "hosts_per_pod": 1024, **other},
        electrical=electrical,
        optical=optical,
    )


def test_uplinks_come_in_whole_bundles_of_wavelengths():
    assert helios(0.10, 0.0).switch_ports == 64 * 104  # 102.4, and then whole bundles of eight
    assert helios(0.0, 0.90).ocs_ports == 64 * 115  # 921.6 channels: 115 whole bundles
    assert helios(0.125, 0.0).switch_ports == 64 * 128  # exact: nothing to round
    assert helios(1.0, 0.0, hosts_per_pod=1000, wavelengths=16).switch_ports == 64 * 1000


shares = st.floats(0, 1)


@given(
    electrical=shares,
    optical=shares,
    pods=st.integers(1, 99),
    u=st.integers(1, 999),
    w=st.integers(1, 40),
)
def test_the_core_never_has_more_uplinks_than_hosts(electrical, optical, pods, u, w):
    if electrical + optical > 1:
        optical = 1 - electrical
    bill = helios(electrical, optical, pods=pods, hosts_per_pod=u, wavelengths=w)
    assert bill.switch_ports + w * bill.ocs_ports <= pods * u
    assert bill.cables == bill.switch_ports + bill.ocs_ports
    assert bill.transceivers == 2 * bill.switch_ports + w * bill.ocs_ports


@pytest.mark.parametrize(
    "t", [fat_tree(4), leaf_spine(4, 2, 8), bcube(4, 1), torus((3, 4))], ids=repr
)
def test_every_cable_end_is_plugged_into_one_port(t):
    bill = bill_of_materials(t)
    assert bill.cables == t.num_links
    assert bill.switch_ports == t.degrees[t.switches].sum()
    assert bill.host_ports == t.degrees[t.hosts].sum()
    assert (
        bill.switch_ports + bill.ocs_ports + bill.host_ports == 2 * bill.cables == bill.transceivers
    )
    assert bill == bill_of_materials(t.meta.name, **t.meta.parameters)
    prices = rp.topology.unit_prices()
    assert bill.cost == sum(count * prices.cost[item] for item, count in bill.counts.items())


def test_closed_forms_of_a_fat_tree():
    """3 k^3/4 cables and 5 k^3/4 switch ports (k of each of 5k^2/4 switches) for k^3/4 hosts."""
    bill = bill_of_materials("fat_tree", k=16)
    assert (bill.hosts, bill.cables, bill.switch_ports) == (1024, 3072, 5120)
    assert bill.cables_per_host == 3
    assert bill.cost_per_host == bill.cost / 1024
    assert bill.power_per_host == pytest.approx(5 * 12.5 + 6 * 1)


def test_mirrors_take_no_transceiver_and_the_links_of_an_nvswitch_are_inside():
    """Two GPUs on an NVSwitch of two links each, both on a leaf, the leaf on a circuit switch."""
    t = Topology.of(
        edges=[(0, 2), (0, 2), (1, 2), (1, 2), (0, 3), (1, 3), (3, 4)],
        node_kind={"gpu": 2, "nvlink": 1, "leaf": 1, "mirror": 1},
        device_class={"nvlink": "nvswitch", "leaf": "switch", "mirror": "ocs"},
        meta=Design(name="own"),
    )
    bill = bill_of_materials(t)
    assert (bill.internal_links, bill.cables) == (4, 3)
    assert (bill.host_ports, bill.switch_ports, bill.ocs_ports) == (2, 3, 1)
    assert bill.transceivers == 5


def test_the_links_between_cubes_of_a_tpu_run_through_circuit_switches():
    """Jouppi et al. 2023: 48 links of a cube are optical, 16 on each of three pairs of faces."""
    cubes = 16
    bill = bill_of_materials(rp.topology.tpu_v4((8, 8, 16)))
    assert bill.ocs_ports == bill.transceivers == 2 * 48 * cubes
    assert bill.cables == (3 * 64 - 48) * cubes + 2 * 48 * cubes  # the others are copper
    assert bill.host_ports == 6 * 64 * cubes


@pytest.mark.parametrize(
    ("t", "fibres", "channels", "circuits"),
    [
        (rp.topology.helios(4, 16, 0.5, 0.5), 4, 8, [(0, 1)]),
        (rp.topology.c_through(2, 3, 4), 6, 1, [(0, 4), (1, 3)]),
    ],
    ids=["Helios", "c-Through"],
)
def test_fibres_to_circuit_switches_are_billed_whatever_is_set_up(t, fibres, channels, circuits):
    bill = bill_of_materials(t)
    assert bill.ocs_ports == fibres
    assert bill.cables == t.num_links + fibres
    assert bill.transceivers == 2 * t.num_links + fibres * channels
    assert bill.switch_ports == t.degrees[t.switches].sum() + fibres * channels
    assert bill_of_materials(s22.reconfigure(t, circuits)).counts == bill.counts
    equipped = s12.equipped(t, prices=rp.topology.unit_prices())
    every = equipped.node_attributes["cost"].sum() + equipped.edge_attributes["cost"].sum()
    assert every == pytest.approx(bill.cost, rel=1e-12)


def test_own_prices_change_the_cost_only():
    prices = rp.topology.unit_prices()
    dear = prices._replace(name="own", cost={**prices.cost, "cable": 1000.0})
    base, other = (
        bill_of_materials("fat_tree", k=4),
        bill_of_materials("fat_tree", k=4, prices=dear),
    )
    assert other.cost - base.cost == 950 * 48
    assert (other.power, other.counts) == (base.power, base.counts)


def test_the_table_adds_up_and_the_bill_is_frozen():
    bill = helios(0.1, 0.9)
    frame = bill.to_frame()
    assert frame["cost [USD]"].iloc[:-1].sum() == frame.loc["total", "cost [USD]"] == bill.cost
    assert np.isnan(frame.loc["total", "count"])
    assert "65,536 hosts, prices of helios2010" in bill._repr_html_()
    with pytest.raises(FrozenInstanceError):
        bill.cables = 0


def test_every_price_has_its_source_and_confidence():
    rows = pd.read_csv(data_folder() / "devices.csv")
    assert not rows.isna().any().any()
    assert not rows.duplicated(["prices", "item", "quantity"]).any()
    assert set(rows["confidence"]) <= {"confirmed", "secondary", "memory-high", "convention"}
    wavelengths = rows[rows["quantity"] == "wavelengths"]["value"].astype(int).tolist()
    assert wavelengths == [optical.WAVELENGTHS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "fat_tree"}, "parameters of fat_tree must be k, got none"),
        ({"design": "fat_tree", "k": 4, "n": 2}, "parameters of fat_tree must be k, got k, n"),
        ({"design": "fat_tree", "k": 3}, "k must be even"),
        ({"design": fat_tree(4), "k": 4}, "parameters must be left out with a network, got k"),
        ({"design": "clos"}, "design must be one of"),
        (
            {"design": "helios", "pods": 2},
            "parameters of helios must be pods, hosts_per_pod, electrical",
        ),
    ],
)
def test_wrong_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        bill_of_materials(**arguments)


def test_shares_above_the_whole_are_refused():
    with pytest.raises(
        ValueError, match=r"electrical \+ optical must be at most 1, got 0.6 \+ 0.5"
    ):
        helios(0.6, 0.5)


def test_what_a_list_leaves_out_is_refused_only_where_it_is_needed():
    modern = rp.topology.unit_prices("ndr2024")
    assert "ocs port" not in modern.cost
    assert (
        bill_of_materials("fat_tree", k=4, prices=modern).to_frame().loc["ocs port"].tolist()
        == [0] * 4
    )
    with pytest.raises(
        ValueError, match=r"prices must have the cost of an ocs port, of which core of helios"
    ):
        helios(0.1, 0.9, prices=modern)


RAILS = [
    (128, 48, 2_621_440),
    (256, 96, 5_242_880),
    (512, 192, 10_485_760),
    (2048, 768, 41_943_040),
]


@pytest.mark.parametrize(("servers", "switches", "cables"), RAILS)
def test_published_prices_of_clusters_of_h100(servers, switches, cables):
    """Spreadsheet rows of 'H100 Freakonomics': $36,000 a switch; row one sets the cable's price."""
    modern = rp.topology.unit_prices("ndr2024")
    bill = bill_of_materials(
        "rail_only", domains=servers, gpus_per_domain=8, switch_ports=64, prices=modern
    )
    assert bill.switch_ports == 64 * switches
    assert bill.cost == 36_000 * switches + cables
    assert bill.power == pytest.approx(747 * switches + 8.5 * 2 * bill.cables, rel=1e-12)


def test_the_capacity_of_a_cable_is_that_of_the_modern_list():
    rows = pd.read_csv(data_folder() / "devices.csv").set_index(["prices", "item", "quantity"])[
        "value"
    ]
    assert float(rows["ndr2024", "switch port", "capacity"]) * rp.units.GBIT == LINK_CAPACITY
    assert float(rows["ndr2024", "transceiver", "capacity"]) * rp.units.GBIT == LINK_CAPACITY
