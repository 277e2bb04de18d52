"""Readers of layer graphs: small files written here; all public files if a data folder is given."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from chapters.s35.partition_problems import read_partition_problem
from chapters.s35.profiles import read_profile
from public_data import DATA, needs_data
from relparallel.published import facts
from relparallel.workload import LayerGraph
from relparallel.workload.published_graphs import bert_graph, gnmt_graph, resnet_graph, vgg_graph

NODE = (
    "node{} -- {} -- forward_compute_time={}, backward_compute_time={}, activation_size={}, "
    "parameter_size={}"
)
PROFILE = "\n".join(
    [
        NODE.format(10, "Linear(in_features=2, out_features=3, bias=True)", 2.5, 4, 12.0, 36.0),
        NODE.format(2, "LSTM(1024,  1024)", 1, 3, "[8.0; 4.0; 4.0]", 1e2),
        NODE.format(1, "Input", 17.972, 0, 8, 0),
        "\tnode1 -- node2",
        "\tnode2 -- node10",
    ]
)


def write(folder: Path, text: str, name: str = "graph.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_profile_is_read_in_the_order_of_its_numbers(tmp_path):
    graph = read_profile(write(tmp_path, PROFILE), batch=4)
    assert graph.names == ("node1", "node2", "node10")
    assert graph.kinds[1] == "LSTM(1024, 1024)"
    assert graph.forward == pytest.approx([0, 1e-3, 2.5e-3])
    assert graph.backward == pytest.approx([0, 3e-3, 4e-3])
    assert graph.activation_bytes.tolist() == [8, 16, 12]
    assert graph.parameter_bytes.tolist() == [0, 100, 36]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert (graph.unit, graph.batch, graph.title) == ("s", 4, tmp_path.name)
    assert read_profile(tmp_path / "graph.txt", data_loading=True).forward[0] == pytest.approx(
        17.972e-3
    )


amounts = st.floats(0, 1e12, allow_subnormal=False)


@given(rows=st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=1, max_size=6))
def test_a_written_profile_reads_back(rows, tmp_path_factory):
    forward, backward, parameters, activations = np.array(rows).T
    n = len(rows)
    graph = LayerGraph(
        names=tuple(f"node{v + 1}" for v in range(n)),
        kinds=("Conv2d(3, 64, stride=(1, 1)) -- 2",) * n,
        forward=forward,
        backward=backward,
        parameter_bytes=parameters,
        activation_bytes=activations,
        edges=[(v, v + 1) for v in range(n - 1)],
        unit="s",
        title="graph",
    )
    path = tmp_path_factory.mktemp("profile") / "graph.profile"
    columns = (1e3 * forward, 1e3 * backward, activations, parameters)
    lines = [
        NODE.format(v + 1, graph.kinds[v], *map(float, row))
        for v, row in enumerate(zip(*columns, strict=True))
    ]
    path.write_text("\n".join([*lines, *(f"\tnode{v + 1} -- node{v + 2}" for v in range(n - 1))]))
    back = read_profile(path)
    assert back.forward == pytest.approx(forward, rel=1e-15)
    assert back.backward == pytest.approx(backward, rel=1e-15)
    assert back.activation_bytes.tolist() == activations.tolist()
    assert (back.kinds, back.edges.tolist()) == (graph.kinds, graph.edges.tolist())


def test_a_line_that_is_no_layer_and_no_edge_is_refused_with_its_number(tmp_path):
    with pytest.raises(
        ValueError, match=r"graph\.txt, line 2: 'node2 ReLU' is no layer and no edge"
    ):
        read_profile(write(tmp_path, PROFILE.replace(PROFILE.splitlines()[1], "node2 ReLU")))


def problem(**changes):
    """A small input of dnn-partitioning, with some parts changed."""
    plain = {
        "supportedOnFpga": 1,
        "cpuLatency": 20,
        "fpgaLatency": 2,
        "isBackwardNode": 0,
        "size": 100,
    }
    nodes = [
        {"id": 5, "name": "b", "colorClass": 2, **plain},
        {"id": 1, "name": "a", "colorClass": 1, **plain, "fpgaLatency": 3},
        {"id": 7, "name": "b", "colorClass": 2, **plain, "isBackwardNode": True, "fpgaLatency": 8},
        {
            "id": 9,
            "name": "a grad",
            "colorClass": 1,
            **plain,
            "isBackwardNode": 1,
            "supportedOnFpga": False,
        },
    ]
    pairs = [(1, 5, 0.25), (5, 7, 0.5), (7, 9, 0)]
    edges = [{"sourceId": u, "destId": v, "cost": cost} for u, v, cost in pairs]
    return {
        "maxSizePerFPGA": 1e3,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": nodes,
        "edges": edges,
    } | changes


def test_a_placement_problem_is_read_in_the_order_of_its_ids(tmp_path):
    found = read_partition_problem(write(tmp_path, json.dumps(problem()), "graph.json"))
    assert found.names == ("a", "b (5)", "b (7)", "a grad")
    assert found.accelerator_time == pytest.approx([3e-3, 2e-3, 8e-3, 2e-3])
    assert found.transfer_time == pytest.approx([0.25e-3, 0.5e-3, 0, 0])
    assert found.cpu_time == pytest.approx([20e-3] * 4)
    assert found.supported.tolist() == [True, True, True, False]
    assert found.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert (found.accelerators, found.cpus, found.accelerator_memory) == (2, 1, 1e3)


def test_ids_that_stand_twice_are_refused(tmp_path):
    twice = [{**node, "id": 1} for node in problem()["nodes"]]
    with pytest.raises(ValueError, match="two nodes have the same id"):
        read_partition_problem(
            write(tmp_path, json.dumps(problem(nodes=twice, edges=[])), "graph.json")
        )


def pipedream(model: str) -> LayerGraph:
    return read_profile(DATA / "pipedream-profiles" / model / "graph.txt")


def dapple(name: str) -> LayerGraph:
    return read_profile(DATA / "dapple-profiles" / f"{name}.txt")


@needs_data
def test_every_public_profile_is_read():
    paths = [*DATA.glob("pipedream-profiles/*/graph.txt"), *DATA.glob("dapple-profiles/*.txt")]
    assert len(paths) == 22
    for path in paths:
        graph, text = read_profile(path, data_loading=True), path.read_text()
        assert len(graph) == text.count("parameter_size=")
        assert len(graph.edges) == len(re.findall(r"^\s+node", text, re.MULTILINE))
        parameters = [float(size) for size in re.findall(r"parameter_size=([\d.e+]+)", text)]
        assert graph.totals["parameter_bytes"] == pytest.approx(sum(parameters), rel=1e-12)


SAME_PARAMETERS = {
    "vgg16": lambda: vgg_graph(16),
    "resnet50": lambda: resnet_graph(50),
    "resnet101": lambda: resnet_graph(101),
    "gnmt": lambda: gnmt_graph(8),
    "gnmt_large": lambda: gnmt_graph(16),
}


@needs_data
@pytest.mark.parametrize("model", SAME_PARAMETERS)
def test_a_profiled_model_has_the_parameters_of_the_built_one(model):
    assert (
        pipedream(model).totals["parameter_bytes"]
        == SAME_PARAMETERS[model]().totals["parameter_bytes"]
    )


@needs_data
def test_profiled_convolutions_are_the_built_ones_one_by_one():
    profiled, built = pipedream("vgg16"), vgg_graph(16)
    ours = built.parameter_bytes[built.parameter_bytes > 0]
    assert profiled.parameter_bytes[profiled.parameter_bytes > 0].tolist() == ours.tolist()
    images = profiled.activation_bytes[0] / (4 * 3 * 224**2)  # of the Input node
    convolutions = [kind.startswith("Conv2d") for kind in profiled.kinds]
    made = built.activation_bytes[[kind == "conv" for kind in built.kinds]]
    assert images == 128
    assert (profiled.activation_bytes[convolutions] / images).tolist() == made.tolist()


@needs_data
def test_profiles_of_dapple_have_the_parameters_of_the_built_models():
    assert (
        dapple("gnmt-16-pbs-64").totals["parameter_bytes"]
        == (gnmt_graph(16, vocabulary=36560).totals["parameter_bytes"])
    )
    assert (
        dapple("gnmt-32-pbs-64").totals["parameter_bytes"]
        == (gnmt_graph(32, vocabulary=36560).totals["parameter_bytes"])
    )
    profiled, built = dapple("bert-48-pbs-2"), bert_graph(48, hidden=1024)
    assert profiled.parameter_bytes[2] == built.parameter_bytes[0]
    encoders = [kind.startswith("layer_") for kind in profiled.kinds]
    assert profiled.parameter_bytes[encoders].tolist() == built.parameter_bytes[1:-1].tolist()
    # The file rounds sizes: 548 MB, as PipeDream's VGG-19 would be in units of 2^20 bytes.
    assert dapple("vgg-19-pbs-32").totals["parameter_bytes"] / 1e6 == pytest.approx(
        vgg_graph(19).totals["parameter_bytes"] / 2**20, abs=0.05
    )


@needs_data
@pytest.mark.parametrize("row", ["vgg16_n4", "vgg16_n16", "resnet50_n16", "alexnet_n4"])
def test_speedup_of_data_parallelism_is_that_of_pipedream_s_optimizer(row):
    model, workers = row.split("_n")
    fact = facts()[f"pd_dp_speedup_{row}"]
    total, m = pipedream(model).totals, int(workers)
    compute = total["forward"] + total["backward"]
    both_passes = 2 * 2 * (m - 1) / m * total["parameter_bytes"] / 1e9  # a ring for each
    assert compute / ((compute + both_passes) / m) == pytest.approx(fact.value, rel=1e-9)


# Latency [s] and seconds per byte of a message: MG-WFBP's tables of measured clusters.
NETWORKS = {
    "10G8": (5.230272768511732e-4, 8.570746975492128e-10),
    "10G16": (9.080981007148093e-4, 7.395651186836712e-10),
    "56G16": (2.3583677659915685e-4, 4.0594787739537565e-10),
}


@needs_data
@pytest.mark.parametrize(
    "row", ["resnet101_10G8", "resnet101_10G16", "vgg16_10G8", "gnmt_56G16", "resnet50_10G16"]
)
def test_gradients_sent_one_by_one_or_at_once_finish_as_published(row):
    """Wait-free backpropagation and a single message; columns 2 and 4 of the row, in ms."""
    model, network = row.split("_")
    alpha, beta = NETWORKS[network]
    graph = pipedream(model)
    made = [layer for layer in graph.order[::-1] if graph.parameter_bytes[layer] > 0]
    work = np.empty(len(graph))
    work[graph.order[::-1]] = np.cumsum(graph.backward[graph.order[::-1]])
    _, one_by_one, _, at_once = facts()[f"mgwfbp_{row}"].values
    free = 0.0
    for ready, size in zip(work[made], graph.parameter_bytes[made], strict=True):
        free = max(free, ready) + alpha + beta * size
    assert 1e3 * free == pytest.approx(one_by_one, rel=1e-4)
    assert 1e3 * (work[made[-1]] + alpha + beta * graph.parameter_bytes.sum()) == pytest.approx(
        at_once, rel=1e-4
    )


@needs_data
def test_every_public_placement_problem_is_read():
    paths = sorted(DATA.glob("dnn-partitioning/*-inputs/*/*.json"))
    assert len(paths) == 24
    for path in paths:
        given, found = json.loads(path.read_text()), read_partition_problem(path)
        assert (len(found), len(found.edges)) == (len(given["nodes"]), len(given["edges"]))
        assert 1e3 * found.accelerator_time.sum() == pytest.approx(
            sum(n["fpgaLatency"] for n in given["nodes"])
        )
        assert found.memory_bytes.sum() == sum(n["size"] for n in given["nodes"])


@needs_data
@pytest.mark.parametrize(
    ("kind", "model", "times"), [("Layer", "gnmt", 1000), ("Operator", "bert_l-3", 1)]
)
def test_throughput_inputs_of_layers_hold_seconds_for_transfers(kind, model, times):
    """Against the same tensors' latency inputs, which also tell their bytes: 2 GiB/s, in ms."""
    name = f"{kind}Graphs/{model}_inference.json"
    latency, throughput = (
        read_partition_problem(DATA / f"dnn-partitioning/{of}-inputs" / name).transfer_time
        for of in ("latency", "throughput")
    )
    assert latency == pytest.approx(times * throughput, rel=1e-12)
    edges = json.loads((DATA / "dnn-partitioning/latency-inputs" / name).read_text())["edges"]
    assert all(edge["size"] == pytest.approx(2**31 * 1e-3 * edge["cost"]) for edge in edges)
