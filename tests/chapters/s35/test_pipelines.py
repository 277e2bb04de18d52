"""Stages of pipelines against every division, the authors' own numbers, and devices that fail."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from chapters.s35.pipelines import alpa, dapple, pipedream, stanza
from chapters.s35.profiles import read_profile
from public_data import DATA, needs_data
from relparallel.hardware import Cluster
from relparallel.training import FailureModel
from relparallel.workload import LayerGraph


def graph(seed: int, n: int = 5) -> LayerGraph:
    rng = np.random.default_rng(seed)
    return LayerGraph(
        names=tuple(f"layer {i}" for i in range(n)),
        kinds=("dense",) * n,
        forward=rng.integers(1, 9, n),
        backward=rng.integers(1, 9, n),
        parameter_bytes=rng.integers(0, 40, n),
        activation_bytes=rng.integers(1, 20, n),
        edges=[(i, i + 1) for i in range(n - 1)],
        unit="s",
    )


def divisions(n: int, devices: int):
    for count in range(1, min(n, devices) + 1):
        for cuts, shares in product(
            combinations(range(1, n), count - 1), combinations(range(1, devices), count - 1)
        ):
            yield list(pairwise((0, *cuts, n))), np.diff((0, *shares, devices)).tolist()


def slowest_stage(g: LayerGraph, devices: int, bandwidth: float) -> float:
    """Narayanan et al. 2019, with the sum of their program in place of the paper's maximum."""
    work, best = g.forward + g.backward, np.inf
    for stages, shares in divisions(len(g), devices):
        times = []
        for (i, j), k in zip(stages, shares, strict=True):
            times.append(
                (work[i:j].sum() + 4 * (k - 1) * g.parameter_bytes[i:j].sum() / (k * bandwidth)) / k
            )
            if i:
                times.append(2 * g.activation_bytes[i - 1] / (k * bandwidth))
                times += [2 * g.activation_bytes[j - 1] / (k * bandwidth)] * (j < len(g))
        best = min(best, max(times))
    return best


@pytest.mark.parametrize("bandwidth", [3.0, 30.0])  # at the second stages are replicated
@pytest.mark.parametrize("seed", range(5))
def test_no_stages_of_pipedream_are_faster(seed, bandwidth):
    g = graph(seed)
    plan = pipedream(g, [(4, bandwidth)])
    assert plan.time == pytest.approx(slowest_stage(g, 4, bandwidth))
    assert sum(stage.devices for stage in plan.stages) == plan.devices == 4
    assert [name for stage in plan.layers for name in stage] == list(g.names)


@pytest.mark.parametrize("seed", range(3))
def test_equal_links_are_one_bandwidth_and_a_level_of_one_changes_nothing(seed):
    g = graph(seed)
    flat = pipedream(g, [(4, 3.0)]).time
    assert pipedream(g, [(4, [3.0, 3.0, 3.0])]).time == flat
    assert pipedream(g, [(1, 9.0), (4, 3.0)]).time == flat
    assert pipedream(g, [(4, 3.0)], straight=True).time >= flat


@pytest.mark.parametrize("seed", range(3))
def test_servers_as_devices_do_what_their_own_pipelines_do(seed):
    g = graph(seed)
    plan = pipedream(g, [(2, 30.0), (2, 3.0)])
    for stage in plan.stages:
        assert sum(inner.devices for inner in stage.inside) == 2
        assert stage.inside[0].start == stage.start
        assert stage.inside[-1].stop == stage.stop


@needs_data
@pytest.mark.parametrize(
    ("name", "levels", "seconds"),
    [
        ("gnmt", [(16, 1e9)], 0.019285),
        ("gnmt", [(4, 16e9), (4, 1.25e9)], 0.011081),
        ("densenet121", [(16, 1e9)], 0.024545866666666666),
        ("resnet101", [(16, 1e9)], 0.051380224),
        ("resnext101", [(16, 1e9)], 0.056029999999999976),
        ("gnmt_large", [(16, 1e9)], 0.05897099999999994),
        ("alexnet", [(4, 16e9), (4, 1.25e9)], 0.0150994944),
    ],
)
def test_other_profiles_give_what_the_authors_program_gives(name, levels, seconds):
    """Seconds by ``optimizer_graph_hierarchical.py``, transcribed; published rows come out too."""
    assert pipedream(
        read_profile(DATA / "pipedream-profiles" / name / "graph.txt"), levels
    ).time == pytest.approx(seconds, rel=1e-12)


def test_a_lost_device_slows_its_stage_and_the_last_one_of_a_stage_stops_the_job():
    g = LayerGraph(
        names=("a", "b"),
        kinds=("conv", "dense"),
        forward=[4.0, 1.0],
        backward=[8.0, 2.0],
        parameter_bytes=[0, 90],
        activation_bytes=[1, 1],
        edges=[(0, 1)],
        unit="s",
    )
    plan = pipedream(g, [(5, 10.0)])
    assert [stage.devices for stage in plan.stages] == [4, 1]
    assert plan.device_stage.tolist() == [0, 0, 0, 0, 1]
    assert plan.slowdown() == 1
    assert plan.slowdown([0]) == pytest.approx(4 / 3)
    assert plan.slowdown([0, 2]) == pytest.approx(2)
    assert plan.slowdown([4]) == np.inf
    classes = plan.component_classes(rate=1e-6)
    assert [(c.effect, c.parts, c.slowdown) for c in classes] == [
        ("degrade", 4, pytest.approx(4 / 3)),
        ("stop", 1, 1.0),
    ]
    model = FailureModel(classes=classes, cluster=Cluster(nodes=1, gpus_per_node=5))
    assert model.mtbf == pytest.approx(1e6)  # the four others only slow the job down


@pytest.mark.parametrize("seed", range(40))
def test_no_stages_end_a_step_sooner(seed):
    rng, g = np.random.default_rng(seed), graph(seed)
    seconds = rng.integers(2, 60, (4, 6, 6)) / np.array([1.0, 1.0, 1.8, 2.5])[:, None, None]
    seconds[2, :3, 4:] = np.inf
    for micro_batches in (1, 2, 3, 40):
        steps = []
        for stages, shares in divisions(5, 3):
            took = [seconds[k, i, j] for (i, j), k in zip(stages, shares, strict=True)]
            if np.isfinite(took).all():
                steps.append(sum(took) + (micro_batches - 1) * max(took))
        plan = alpa(g, seconds, micro_batches)
        assert plan.time == pytest.approx(min(steps))
        assert plan.slowdown([0]) >= 0


def test_dapple_keeps_sums_of_gradients_inside_a_machine():
    n = 8
    bert = LayerGraph(
        names=tuple(f"layer {i}" for i in range(n)),
        kinds=("block",) * n,
        forward=[0.02] * n,
        backward=[0.04] * n,
        parameter_bytes=[3e8] * n,
        activation_bytes=[1e7] * n,
        edges=[(i, i + 1) for i in range(n - 1)],
        unit="s",
    )
    plan = dapple(bert, machines=2, gpus=4, micro_batches=4)
    assert [(stage.start, stage.stop, stage.devices) for stage in plan.stages] == [
        (0, 4, 4),
        (4, 8, 4),
    ]
    ring = 2 * 3 / 4 * 1.2e9 / (25e9 * 2)
    assert plan.time == pytest.approx(5 * 0.06 + 2 * 1e7 / 1e9 + 2 * ring)


def test_stanza_of_layers_without_parameters_is_data_parallel():
    g = graph(1)
    free = LayerGraph(
        **{
            name: getattr(g, name)
            for name in ("names", "kinds", "forward", "backward", "edges", "unit")
        },
        parameter_bytes=np.zeros(5),
        activation_bytes=g.activation_bytes,
    )
    plan = stanza(free, workers=4, bandwidth=1.0)
    assert [stage.devices for stage in plan.stages] == [4]
    assert plan.time == pytest.approx((g.forward + g.backward).sum())


def test_more_straight_stages_than_layers_are_refused():
    with pytest.raises(ValueError, match="devices must be"):
        pipedream(graph(0), [(9, 1.0)], straight=True)
    with pytest.raises(ValueError, match="graph must hold seconds"):
        pipedream(LayerGraph(**{**graph(0).__dict__, "unit": "FLOP"}), [(2, 1.0)])


def test_layers_without_work_are_not_slowed_down():
    sizes = {"forward": np.zeros(3), "backward": np.zeros(3), "parameter_bytes": np.zeros(3)}
    idle = LayerGraph(**{**graph(0, 3).__dict__, **sizes, "activation_bytes": np.zeros(3)})
    plan = pipedream(idle, [(2, 1.0)])
    assert plan.slowdown() == 1.0
    assert plan.slowdown([0]) in (1.0, float("inf"))
