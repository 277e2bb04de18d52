"""What data parallelism sends, layer by layer, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from relparallel.workload import (
    DataParallelCost,
    Gradients,
    LayerGraph,
    data_parallel_cost,
    gradients,
    resnet_graph,
    vgg_graph,
)


def chain(parameters: list[float], backward: list[float], unit: str = "s") -> LayerGraph:
    n = len(parameters)
    return LayerGraph(
        names=tuple("abcdefgh"[:n]), kinds=("dense",) * n, forward=np.ones(n), backward=backward,
        parameter_bytes=parameters, activation_bytes=np.ones(n), edges=[(v, v + 1) for v in range(n - 1)],
        unit=unit, batch=4,
    )  # fmt: skip


def test_gradients_come_last_layer_first_when_all_work_before_them_is_done():
    found = gradients(chain([5, 0, 7, 9, 0], [1, 2, 4, 8, 16]))
    assert found.names == ("d", "c", "a")
    assert found.sizes.tolist() == [9, 7, 5]
    assert found.ready.tolist() == [24, 28, 31]
    assert found.to_frame()["bytes"].tolist() == [9, 7, 5]


def test_gradients_hold_all_parameters_and_all_backward_work_of_a_real_model():
    graph = resnet_graph(50)
    found = gradients(graph)
    assert found.sizes.sum() == graph.totals["parameter_bytes"]
    assert found.ready[-1] == pytest.approx(graph.totals["backward"])  # its first layer has parameters
    assert len(found.names) == 53 + 1  # convolutions with their normalisation, and the dense layer


def test_a_model_without_parameters_has_no_gradients():
    with pytest.raises(ValueError, match="graph must have parameters"):
        gradients(chain([0, 0], [1, 1]))


def test_a_gradient_is_never_made_before_the_last_one():
    with pytest.raises(ValueError, match=r"ready must never fall, got \[2\.0, 1\.0\]"):
        Gradients(names=("a", "b"), sizes=[1, 1], ready=[2, 1])


def test_measured_layers_cost_their_seconds_and_a_ring_all_reduce():
    cost = data_parallel_cost(chain([8, 0], [2, 5]), workers=4, bandwidth=2.0, batch=8)
    assert cost.compute.tolist() == [2 * 3, 2 * 6]  # twice the batch
    assert cost.communication.tolist() == [2 * 3 / 4 * 8 / 2, 0]
    assert cost.share.tolist() == [0.5, 0]
    assert cost.total_share == 6 / 24
    assert cost.to_frame()["share"].tolist() == [0.5, 0]


def test_counted_layers_need_a_rate_and_measured_ones_refuse_it():
    counted = data_parallel_cost(chain([8], [2], unit="FLOP"), 2, 1.0, flops=3.0)
    assert counted.compute.tolist() == [1.0]
    with pytest.raises(ValueError, match="flops must be the rate of a worker for work in FLOP, got None"):
        data_parallel_cost(chain([8], [2], unit="FLOP"), 2, 1.0)
    with pytest.raises(ValueError, match="flops must be omitted for work in s, got 3"):
        data_parallel_cost(chain([8], [2]), 2, 1.0, flops=3.0)


def test_one_worker_sends_nothing_and_nothing_has_a_share_of_nothing():
    assert data_parallel_cost(vgg_graph(11), 1, 1.0, flops=1.0).total_share == 0
    idle = DataParallelCost(names=("a",), compute=[0.0], communication=[0.0])
    assert (idle.share.tolist(), idle.total_share) == ([0.0], 0.0)


def test_dense_layers_of_vgg_send_most_and_compute_least():
    """Why Stanza and the hybrid plans of PipeDream keep them out of data parallelism."""
    graph = vgg_graph(16)
    dense = np.array(graph.kinds) == "dense"
    assert graph.parameter_bytes[dense].sum() / graph.totals["parameter_bytes"] == pytest.approx(
        0.8936, abs=1e-4
    )
    assert graph.forward[dense].sum() / graph.totals["forward"] == pytest.approx(0.0080, abs=1e-4)
    cost = data_parallel_cost(graph, 16, 1e9, batch=32, flops=1e13)
    assert cost.share[dense].min() > 0.95
    others = cost.communication[~dense].sum(), cost.compute[~dense].sum()
    assert others[0] / sum(others) < 0.3
