"""Clusters from files: own accelerators, what a file says twice, numbers that are none."""

import json

import pytest
import yaml

import relparallel as rp
from relparallel.planning import read_cluster

OWN = """- name: lab
  gpus: 64
  network_gbit: 3200
  accelerator:
    name: h100-mine
    peak: {bf16: 989e12, fp8: 1.979e15}
    matmul: {bf16: 794.5e12}
    memory: 85899345920
    memory_bandwidth: 3.35e12
    node_link: 450e9
    multiprocessors: 132
    host_link: 64e9
"""


def test_an_own_accelerator_is_a_block_of_the_file_and_a_plan_says_what_it_borrows(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(OWN)
    (mine,) = read_cluster(path)
    assert mine.accelerator.peak == {"bf16": 989e12, "fp8": 1979e12}
    assert mine.accelerator.host_link == 64e9
    other = tmp_path / "lab.json"
    other.write_text(json.dumps(yaml.safe_load(OWN)))
    assert read_cluster(other) == (mine,)
    plan = rp.plan("gpt3-6.7b", path, global_batch=512, limits={"tensor": 8, "pipeline": 1})
    assert any(
        "no run on this h100 was measured: parameters of the h100" in note for note in plan.notes
    )


def test_trays_of_a_rack_stand_in_the_file(tmp_path):
    path = tmp_path / "racks.csv"
    path.write_text(
        "accelerator,gpus,network_gbit,gpus_per_node,gpus_per_tray,nvlink_trays\n"
        "gb200-186gb,128,25600,64,4,9\nh100-80gb,64,3200,,,\n"
    )
    racks, boxes = read_cluster(path)
    assert (racks.nodes, racks.parts("tray"), racks.parts("nvlink")) == (2, 32, 18)
    assert (boxes.gpus_per_tray, boxes.nvlink_trays) == (None, None)
    path.write_text("accelerator,gpus,network_gbit,nvlink_trays\nh100-80gb,64,3200,0\n")
    with pytest.raises(ValueError, match="cluster 1: nvlink_trays must be"):
        read_cluster(path)


@pytest.mark.parametrize(("gpus", "nodes"), [(72, 1), (144, 2)])
def test_a_rack_of_72_by_file_is_the_rack_by_name(tmp_path, gpus, nodes):
    path = tmp_path / "rack.csv"
    path.write_text(
        "accelerator,gpus,gpus_per_node,network_gbit,gpus_per_tray,nvlink_trays,name\n"
        f"gb300-279gb,{gpus},72,57600,4,9,gb300-279gb-nvl72\n"
    )
    (told,) = read_cluster(path)
    assert told.nodes == nodes
    assert told == rp.cluster("gb300-279gb-nvl72", gpus=gpus)
    path.write_text(path.read_text().replace(f",{gpus},", ",100,"))
    with pytest.raises(ValueError, match="of 72, got 100: the nearest are 72 and 144"):
        read_cluster(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gpus: 64", "gpus: 512.7", "cluster 1: gpus: expected a whole number, got 512.7"),
        ("gpus: 64", "gpus: true", "cluster 1: gpus: expected a number, got True"),
        (
            "gpus: 64",
            "gpus: 64\n  gpus_per_node: true",
            "gpus_per_node: expected a number, got True",
        ),
        ("gpus: 64", "gpus: 64\n  gpus_per_node: 0", "gpus must fill nodes of 0, got 64"),
        ("gpus: 64", "gpus: 64\n  gpus: 128", "'gpus' stands twice"),
        ("    node_link: 450e9\n", "", "accelerator: 'node_link' is missing"),
        ("node_link", "nvlink", "accelerator: fields must be among name, peak, .* got 'nvlink'"),
        (
            "bf16: 989e12",
            "bf16: 989",
            "peak must be at least 1e6, in FLOP/s .989 TFLOP/s is 989e12., got 989",
        ),
        (
            "memory: 85899345920",
            "memory: 80",
            "memory must be at least 1e6, in bytes, bytes/s, got 80",
        ),
        ("bf16: 794.5e12", "bf16: 995e12", "matmul must not exceed peak"),
        ("{bf16: 794.5e12}", "{fp8: 794.5e12}", "matmul must give a rate of bf16"),
        ("{bf16: 794.5e12}", "794.5e12", "matmul: expected rates by number format"),
        ("3200", "fast", "network_gbit: expected a number without a unit"),
        ("3200", ".nan", "network_bandwidth must be a number"),
        ("3200", "32000", "network_bandwidth must be at most"),
        (
            "name: lab",
            "name: lab\n  colour: red",
            "cluster 1: fields must be among .* got 'colour'",
        ),
        ("name: lab", "name: *lab", "no JSON or YAML"),
    ],
)
def test_a_bad_block_of_a_cluster_says_what_is_wrong(tmp_path, old, new, said):
    path = tmp_path / "lab.yaml"
    assert old in OWN
    path.write_text(OWN.replace(old, new))
    with pytest.raises(ValueError, match=said) as refused:
        read_cluster(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"accelerator": "h100-80gb", "gpus": 64, "gpus": 8, "network_gbit": 3200}',
            "'gpus' stands twice",
        ),
        (
            '{"accelerator": "h100-80gb", "gpus": 64.5, "network_gbit": 3200}',
            "expected a whole number, got 64.5",
        ),
        ('{"accelerator": "h100-80gb", "gpus": 64, "network_gbit": NaN}', "NaN is no number"),
        (
            '{"accelerator": null, "gpus": 64, "network_gbit": 3200}',
            "accelerator: expected a text, got None",
        ),
    ],
)
def test_a_bad_json_cluster_says_what_is_wrong(tmp_path, text, said):
    path = tmp_path / "lab.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_cluster(path)


def test_a_csv_with_a_field_twice_or_a_cell_too_many_is_refused(tmp_path):
    path = tmp_path / "lab.csv"
    for text, said in (
        ("gpus,gpus,accelerator,network_gbit\n8,16,h100-80gb,1\n", "'gpus' twice in"),
        ("gpus,accelerator,network_gbit\n8,h100-80gb,1,5\n", "in every row, got 4 .*line 2"),
        ("gpus;accelerator;network_gbit\n8;h100-80gb;1\n", "delimiter must be what separates"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_cluster(path)
