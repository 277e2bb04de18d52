"""Layer graphs: order, levels, cuts and contraction against definitions; sizes of known models."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.workload import LayerGraph, Transformer, layer_graphs, transformer, transformers
from relparallel.workload.encoders import bert
from relparallel.workload.published_graphs import (
    bert_graph,
    gnmt_graph,
    resnet_graph,
    transformer_graph,
    vgg_graph,
)


def layers(edges: list[tuple[int, int]], sizes: list[int]) -> LayerGraph:
    """Layers of those output sizes, other amounts made of them."""
    n = len(sizes)
    amounts = np.array(sizes, dtype=float)
    return LayerGraph(
        names=tuple(f"layer{v}" for v in range(n)),
        kinds=("conv",) * n,
        forward=amounts + 1,
        backward=3 * amounts,
        parameter_bytes=amounts % 3,
        activation_bytes=amounts,
        edges=edges,
    )


@st.composite
def graphs(draw):
    """Any graph without cycles, its layers numbered against or along the edges."""
    n = draw(st.integers(1, 9))
    shuffled = draw(st.permutations(range(n)))
    pairs = [(shuffled[u], shuffled[v]) for u in range(n) for v in range(u + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return layers(edges, draw(st.lists(st.integers(0, 50), min_size=n, max_size=n)))


def plain(graph: LayerGraph) -> nx.DiGraph:
    found = nx.DiGraph(graph.edges.tolist())
    found.add_nodes_from(range(len(graph)))
    return found


@given(graph=graphs())
def test_every_edge_goes_up_in_order_and_level_and_a_layer_needs_its_ancestors(graph):
    for maker, user in graph.edges:
        assert graph.positions[maker] < graph.positions[user]
        assert graph.levels[maker] < graph.levels[user]
    assert sorted(graph.order) == list(range(len(graph)))
    assert graph.levels.max() == nx.dag_longest_path_length(plain(graph))
    for layer in range(len(graph)):
        assert set(np.flatnonzero(graph.ancestors[layer])) == nx.ancestors(plain(graph), layer)


@settings(max_examples=100)
@given(graph=graphs(), data=st.data())
def test_a_cut_is_crossed_once_by_each_output_that_is_used_behind_it(graph, data):
    stage = np.sort(
        data.draw(st.lists(st.integers(0, 3), min_size=len(graph), max_size=len(graph)))
    )
    places = np.unique(stage, return_inverse=True)[1][graph.positions]
    for cut, bytes_over in enumerate(graph.cut_bytes(places)):
        crossing = {u for u, v in graph.edges.tolist() if places[u] <= cut < places[v]}
        assert bytes_over == sum(graph.activation_bytes[u] for u in crossing)


@given(graph=graphs())
def test_a_chain_keeps_the_sums_and_the_cuts_and_is_its_own_chain(graph):
    chain = graph.to_chain()
    assert chain.edges.tolist() == [list(pair) for pair in pairwise(range(len(chain)))]
    for name in ("forward", "backward", "parameter_bytes"):
        assert chain.totals[name] == pytest.approx(graph.totals[name])
    assert chain.cut_bytes().tolist() == graph.cut_bytes().tolist()
    assert chain.to_chain() == chain


def test_the_last_link_of_a_chain_hands_on_the_results_of_the_model_alone():
    graph = layers([(0, 1), (1, 2), (1, 3)], [10, 20, 30, 40])
    assert graph.to_chain([0, 1, 1, 1]).activation_bytes.tolist() == [10.0, 70.0]
    assert graph.to_chain([0, 0, 1, 1]).activation_bytes.tolist() == [20.0, 70.0]


@given(graph=graphs())
def test_the_table_holds_every_field(graph):
    frame = graph.to_frame()
    assert frame["backward"].tolist() == graph.backward.tolist()
    assert frame["activation_bytes"].tolist() == graph.activation_bytes.tolist()
    assert frame["level"].tolist() == graph.levels.tolist()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (2, 0)], "no cycle, got layer0 -> layer1 -> layer2 -> layer0"),
        ([(1, 1)], "no cycle, got layer1 -> layer1"),
        ([(0, 1), (0, 1)], r"differ from each other, got \[0, 1\] twice"),
        ([(0, 3)], "integers >= 0 and <= 2"),
        ([(0, 1, 2)], "got shape"),
    ],
)
def test_edges_that_make_no_graph_are_refused(edges, message):
    with pytest.raises(ValueError, match=rf"edges must.*{message}"):
        layers(edges, [1, 1, 1])


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([0, 2, 2], "use every stage"),
        ([1, 0, 1], "fall along an edge.*layer0 -> layer1"),
        ([0, 1], "shape"),
    ],
)
def test_places_that_are_no_stages_are_refused(places, message):
    with pytest.raises(ValueError, match=rf"places must .*{message}"):
        layers([(0, 1), (1, 2)], [1, 1, 1]).cut_bytes(places)


def test_equality_sees_every_field_and_arrays_cannot_be_written():
    graph = vgg_graph(11)
    assert graph == vgg_graph(11)
    assert graph != replace(graph, batch=2)
    assert graph != replace(graph, forward=graph.forward + 1)
    assert graph != "graph"
    with pytest.raises(ValueError, match="read-only"):
        graph.forward[0] = 1
    assert re.match("<LayerGraph VGG-11: 16 layers, 15 edges, .* FLOP", repr(graph))
    assert "conv1_1" in graph._repr_html_()


# Parameters and billions of multiply-adds as torchvision documents them (``num_params``, ``GFLOPS``
# of the weights ``VGG16_Weights.IMAGENET1K_V1`` and so on).
TORCHVISION = {
    "vgg11": (vgg_graph(11), 132863336, 7.609),
    "vgg13": (vgg_graph(13), 133047848, 11.308),
    "vgg16": (vgg_graph(16), 138357544, 15.47),
    "vgg19": (vgg_graph(19), 143667240, 19.632),
    "resnet50": (resnet_graph(50), 25557032, 4.089),
    "resnet101": (resnet_graph(101), 44549160, 7.801),
    "resnet152": (resnet_graph(152), 60192808, 11.514),
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_parameters_are_exact_and_multiply_adds_equal_to_the_printed_digits(name):
    graph, parameters, billions = TORCHVISION[name]
    assert graph.totals["parameter_bytes"] == 4 * parameters
    assert graph.totals["forward"] / 2e9 == pytest.approx(billions, abs=5.01e-4)
    assert graph.totals["backward"] == 2 * graph.totals["forward"]


@pytest.mark.parametrize(("depth", "billions"), [(50, 3.8), (101, 7.6), (152, 11.3)])
def test_with_the_stride_first_a_residual_network_has_the_operations_of_the_paper(depth, billions):
    """He et al. 2016, table 1: 3.8e9, 7.6e9, 11.3e9 multiply-adds, cut or rounded to two digits."""
    graph = resnet_graph(depth, stride_first=True)
    assert billions - 0.05 <= graph.totals["forward"] / 2e9 < billions + 0.1
    assert graph.totals["parameter_bytes"] == resnet_graph(depth).totals["parameter_bytes"]


def test_the_paper_s_vgg_sizes_are_those_of_table_2():
    sizes = [
        vgg_graph(depth, element_bytes=1).totals["parameter_bytes"] for depth in (11, 13, 16, 19)
    ]
    millions = [round(size / 1e6) for size in sizes]
    assert millions == [133, 133, 138, 144]


def test_a_bottleneck_adds_its_shortcut_to_its_last_convolution():
    graph = resnet_graph(50)
    number = {name: v for v, name in enumerate(graph.names)}
    made = plain(graph)
    assert set(made.predecessors(number["block1_1.add"])) == {
        number["block1_1.conv3"],
        number["block1_1.shortcut"],
    }
    assert set(made.predecessors(number["block1_2.add"])) == {
        number["block1_2.conv3"],
        number["block1_1.add"],
    }
    assert sum(name.endswith("shortcut") for name in graph.names) == 4


@pytest.mark.parametrize(("layers", "parameters"), [(8, 193765952), (16, 277717568)])
def test_gnmt_has_the_parameters_that_pipedream_profiled(layers, parameters):
    """Sums of ``parameter_size`` over gnmt/graph.txt and gnmt_large/graph.txt, four bytes each."""
    assert gnmt_graph(layers).totals["parameter_bytes"] == 4 * parameters


def test_every_later_decoder_layer_of_gnmt_reads_the_context():
    graph = gnmt_graph(8)
    users = set(plain(graph).successors(graph.names.index("decoder.attention")))
    assert {graph.names[v] for v in users} == {f"decoder.lstm{i}" for i in (2, 3, 4)}
    with pytest.raises(ValueError, match="layers must be even, got 7"):
        gnmt_graph(7)


def test_operations_of_a_sentence_are_those_of_its_words_but_for_attention():
    """Doubling the sentence doubles everything but the scores and sums of attention, 2 s^2 h."""
    one, two = (gnmt_graph(8, sequence=s).totals["forward"] / 2 for s in (10, 20))
    assert two - 2 * one == 2 * (20**2 - 2 * 10**2) * 1024


def test_bert_sums_to_the_tensors_that_an_implementation_allocates():
    h, f, L = 768, 3072, 12
    tables = [(30522, h), (512, h), (2, h), (h,), (h,)]
    layer = [(h, h), (h,)] * 4 + [(h,)] * 4 + [(h, f), (f,), (f, h), (h,)]
    shapes = [*tables, *layer * L, (h, h), (h,)]
    assert bert_graph().totals["parameter_bytes"] == 4 * sum(
        int(np.prod(shape)) for shape in shapes
    )


@pytest.mark.parametrize(("layers", "hidden", "heads"), [(12, 768, 12), (24, 1024, 16)])
def test_bert_agrees_with_its_table_of_operators(layers, hidden, heads):
    table, graph = bert(layers, hidden, heads), bert_graph(layers, hidden=hidden)
    assert graph.totals["parameter_bytes"] == 4 * table.parameters
    assert graph.totals["forward"] == 2 * table.multiply_adds


@pytest.mark.parametrize("name", [name for name in transformers() if name in layer_graphs()])
def test_layers_of_every_shipped_transformer_sum_to_its_own_counts(name):
    model = transformer(name)
    graph = transformer_graph(model, element_bytes=1)
    assert graph.totals["parameter_bytes"] == model.parameters
    assert graph.totals["forward"] * 3 == pytest.approx(model.flops_per_iteration(1), rel=1e-12)
    assert graph.kinds.count("mixture layer") == model.mixture_layers


MODELS = {
    "gpt": Transformer(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=1024),
    "llama": Transformer(
        layers=6,
        hidden=512,
        heads=8,
        kv_heads=2,
        ffn=1376,
        gated=True,
        vocabulary=1000,
        sequence=64,
        tied=False,
        learned_positions=False,
        biases=False,
    ),
    "mixture": Transformer(
        layers=7,
        hidden=64,
        heads=4,
        vocabulary=100,
        sequence=16,
        experts=8,
        active_experts=2,
        shared_experts=1,
        expert_ffn=32,
        dense_layers=2,
        tied=False,
    ),
    "one layer": Transformer(layers=1, hidden=64, heads=4, vocabulary=100, sequence=16),
}


@pytest.mark.parametrize("name", MODELS)
def test_layers_of_a_transformer_sum_to_its_own_counts(name):
    model, graph = MODELS[name], transformer_graph(MODELS[name], element_bytes=2)
    assert graph.totals["parameter_bytes"] == 2 * model.parameters
    assert graph.totals["forward"] + graph.totals["backward"] == pytest.approx(
        model.flops_per_iteration(1)
    )
    assert len(graph) == model.layers + 2
    assert graph.parameter_bytes[-1] == 2 * (
        (1 + model.biases) * model.hidden + (not model.tied) * model.vocabulary * model.hidden
    )
