import pytest

import relparallel as rp
from relparallel.hardware import (
    Cluster,
    ComponentRate,
    ComponentRates,
    accelerator,
    accelerators,
    cluster,
    llama3_interruptions,
)
from relparallel.hardware.machines import LEVELS
from relparallel.published import facts, shipped_rows


def test_the_causes_add_up_to_all_unexpected_interruptions():
    table = llama3_interruptions()
    assert table.events == facts()["L3-003"].value == 419
    assert len(table.causes) == 18
    assert sum(table.share(cause=row.cause) for row in table.causes) == pytest.approx(1)


def test_every_category_has_a_part_to_mend():
    levels = {row.category: row.level for row in llama3_interruptions().causes}
    assert levels == {
        "GPU": "gpu",
        "host": "node",
        "maintenance": "node",
        "network": "switch",
        "dependency": "job",
        "unknown": "job",
    }


def test_a_cause_keeps_the_parentheses_of_its_name():
    assert "Host maintenance (unplanned)" in {row.cause for row in llama3_interruptions().causes}


def test_parts_and_gpus_per_part_multiply_to_the_cluster():
    cluster = Cluster(
        nodes=12,
        gpus_per_node=4,
        nodes_per_switch=3,
        nodes_per_rack=6,
        gpus_per_tray=2,
        nvlink_trays=9,
    )
    assert [cluster.parts(level) for level in LEVELS] == [48, 24, 12, 108, 4, 2, 1]
    every = {level: cluster.parts(level) * cluster.gpus_per_part(level) for level in LEVELS}
    assert every == dict.fromkeys(LEVELS, cluster.gpus) | {"nvlink": 9 * cluster.gpus}


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": 0},
        {"nodes": 2.0},
        {"gpus_per_node": True},
        {"nodes": 5, "nodes_per_switch": 2},
        {"gpus_per_tray": 3},
        {"nvlink_trays": 0},
    ],
)
def test_a_cluster_checks_its_fields(fields):
    with pytest.raises((ValueError, TypeError), match=list(fields)[-1]):
        Cluster(**{"nodes": 4, **fields})


def test_rows_and_tables_check_their_fields():
    row = {
        "cause": "PSU",
        "category": "host",
        "level": "node",
        "events": 3,
        "components": 10,
        "duration": 1e6,
    }
    with pytest.raises(ValueError, match="level"):
        ComponentRate(**{**row, "level": "hall"})
    with pytest.raises(TypeError, match="causes"):
        ComponentRates(source="here", causes=(3,))


@pytest.mark.parametrize(
    "names", [{}, {"category": "GPU", "cause": "NIC"}, {"category": "gpu"}, {"cause": "fan"}]
)
def test_a_share_is_of_one_known_name(names):
    with pytest.raises(ValueError, match=r"(category|cause) "):
        llama3_interruptions().share(**names)


def test_the_frame_has_a_row_for_each_cause():
    frame = llama3_interruptions().to_frame()
    assert frame["events"].sum() == 419
    assert frame["share"].sum() == pytest.approx(1)


def test_a_bandwidth_in_gigabits_is_not_taken_for_bytes():
    with pytest.raises(
        ValueError, match=r"at least 1e6 bytes/s \(400 Gbit/s is 400 \* units.GBIT\), got 400"
    ):
        Cluster(nodes=4, network_bandwidth=400)


def test_a_bandwidth_in_bits_is_not_taken_for_bytes():
    for bits in (3200e9, 400e9 * 8):
        with pytest.raises(
            ValueError, match=r"at most 2.5e\+11 bytes/s a GPU .* got 3.2e\+12 for 8: bits?"
        ):
            Cluster(nodes=4, network_bandwidth=bits)
    assert Cluster(nodes=4, network_bandwidth=1e15).gpus == 32  # limits nothing
    assert cluster("gb200-186gb-nvl72", gpus=8).nodes == 1  # with the adapters of 64


@pytest.mark.parametrize("name", ["gb200-186gb-nvl72", "gb300-279gb-nvl72"])
@pytest.mark.parametrize(
    ("gpus", "nodes", "each"),
    [(72, 1, 72), (144, 2, 72), (576, 8, 72), (64, 1, 64), (512, 8, 64), (68, 1, 68), (4, 1, 4)],
)
def test_a_rack_of_72_is_one_node_and_a_job_may_use_64_of_each(name, gpus, nodes, each):
    found = cluster(name, gpus=gpus)
    assert (found.nodes, found.gpus_per_node, found.gpus) == (nodes, each, gpus)
    assert found.tray == 4
    # an adapter of every GPU, however many of a rack are used
    assert found.network_bandwidth / each == (50e9 if "gb200" in name else 100e9)


@pytest.mark.parametrize(
    ("name", "sizes"), [("gb300-279gb-nvl72", (72, 64)), ("gh200-96gb-jupiter", (4,))]
)
def test_gpus_that_fill_no_nodes_are_told_the_nearest_that_do(name, sizes):
    """The numbers of the message, and every number between, against trying all."""
    for gpus in range(max(sizes) + 1, 300, 7):
        filled = [n for n in range(1, 1000) if any(n % size == 0 for size in sizes)]
        if gpus in filled:
            assert cluster(name, gpus).gpus == gpus
            continue
        near = max(n for n in filled if n < gpus), min(n for n in filled if n > gpus)
        with pytest.raises(
            ValueError, match=f"got {gpus}: the nearest are {near[0]} and {near[1]}"
        ):
            cluster(name, gpus)


def test_every_named_cluster_is_made_of_its_row():
    for row in shipped_rows("clusters.csv"):
        each = int(row["gpus_per_node"])
        found = cluster(row["cluster"], gpus=2 * each)
        assert (found.nodes, found.gpus_per_node) == (2, each)
        assert found.accelerator.name == row["accelerator"]
        assert row["source"]
    named = {cluster(row["cluster"], 8).accelerator.name for row in shipped_rows("clusters.csv")}
    assert {"h200-141gb", "h20-96gb", "gb300-279gb"} <= named
    assert sum(int(row["gpus_per_node"]) == 4 for row in shipped_rows("clusters.csv")) >= 2


@pytest.mark.parametrize("name", accelerators())
def test_a_data_sheet_is_plausible(name):
    """Shipped rates in order: what was measured below the peak, half the bits at least as fast."""
    device = accelerator(name)
    assert 0.4 < device.matmul["bf16"] / device.peak["bf16"] < 0.95
    assert list(device.peak.values()) == sorted(device.peak.values())
    assert device.peak.keys() == device.matmul.keys()
    assert 1e10 < device.node_link < device.memory_bandwidth
    assert 16 <= device.memory / 2**30 <= 300
    assert 30 < device.peak["bf16"] / device.memory_bandwidth < 700


def test_accelerators_with_one_chip_are_one_family():
    assert accelerator("gh200-96gb").family == "h100"
    assert accelerator("a100-pcie-80gb").family == "a100"
    assert accelerator("mi350x-288gb").family == accelerator("mi355x-288gb").family
    assert accelerator("h200-141gb").family == accelerator("h100-80gb").family == "h100"
    assert accelerator("gb200-186gb").family == accelerator("b200-180gb").family == "b200"
    assert accelerator("h800-80gb").family == "h100"
    assert accelerator("gb300-279gb").family == accelerator("b300-270gb").family == "b300"
    assert accelerator("v100-16gb").family == accelerator("v100-32gb").family == "v100"


def test_less_than_a_node_has_its_share_of_the_network():
    """All of it on 8 of 64 GPUs was above what a GPU may have; 18 measured runs were dropped."""
    part, whole = rp.cluster("gb200-186gb-nvl72", gpus=8), rp.cluster("gb200-186gb-nvl72", gpus=64)
    assert part.network_bandwidth / part.gpus == whole.network_bandwidth / whole.gpus


def test_accelerators_that_share_a_chip_say_so_in_the_table():
    chips = {name: accelerator(name).family for name in accelerators()}
    assert chips["gh200-96gb"] == chips["h200-141gb"] == chips["h100-80gb"] == "h100"
    assert (chips["a100-pcie-80gb"], chips["l40s-48gb"], chips["mi325x-256gb"]) == (
        "a100",
        "l40s",
        "mi325x",
    )
    named = {(row["accelerator"], row["chip"]) for row in shipped_rows("accelerators.csv")}
    assert len(named) == len(chips)  # every row of an accelerator names the same chip
