"""Theorems on plans of pipelines and of operators."""

from itertools import product

import numpy as np
from theorem_table import theorem

from chapters import s35, s37
from evidence.claims.planners import mlp_problem
from relparallel.workload import LayerGraph


@theorem("THM-tap-tied", system="TAP")
def test_tied_layers():
    """Twelve dense layers planned as one repeated block of two cost no more than planned freely."""
    whole = mlp_problem(12, 128, 1024, (4,), (1.0,))
    kinds = product(("weight", "product"), range(12))
    period = ["tokens", *(f"{kind} {layer % 2}" for kind, layer in kinds), "loss"]
    for layer in reversed(range(12)):
        period += [f"new weight {layer % 2}"] + [f"gradient {layer % 2}"] * bool(layer)
    choice, cost = s35.operator_plan(whole.tied(period))
    spread = dict(zip(dict.fromkeys(period), choice, strict=True))
    spread_cost = whole.cost([spread[label] for label in period])
    return cost + spread_cost, 2 * s35.operator_plan(whole)[1]


@theorem("THM-flexflow-optimum", system="FlexFlow")
def test_annealed():
    """Annealed strategies of two dense layers on 4 x 8 devices cost as little as can be."""
    problem = mlp_problem(2, 1024, 128, (4, 8), (1.0, 0.01))
    found = min(s35.anneal_plan(problem, np.random.default_rng(seed))[1] for seed in range(4))
    return found, s35.operator_plan(problem)[1]


def _layers(weights: list[float], outputs: list[float]) -> LayerGraph:
    """A chain of dense layers with these bytes of parameters and of outputs, each of a second."""
    n = len(weights)
    return LayerGraph(
        names=tuple(f"layer {i}" for i in range(n)),
        kinds=("dense",) * n,
        forward=np.ones(n),
        backward=np.full(n, 2.0),
        parameter_bytes=np.array(weights),
        activation_bytes=np.array(outputs),
        edges=np.column_stack((np.arange(n - 1), np.arange(1, n))),
        unit="s",
    )


@theorem("THM-hypar-halving", system="HyPar")
def test_hypar_halvings():
    """At two halvings no choice of data or model parallelism moves fewer bytes than HyPar's."""
    weights, outputs = [2.0, 9.0, 40.0, 90.0], [64.0, 30.0, 8.0, 4.0]
    w, f, total = np.array(weights), np.array(outputs), 0.0
    for level in range(2):
        volumes = {}
        for model in product((0, 1), repeat=4):
            moved = sum(f[i] if m else w[i] for i, m in enumerate(model))
            volumes[model] = moved + sum(f[i] / 2 for i in range(3) if model[i] or model[i + 1])
        best = min(volumes, key=lambda model: volumes[model])
        total += 2**level * volumes[best]
        w, f = w / (1 + np.array(best)), f / (2 - np.array(best))
    return s35.hypar(_layers(weights, outputs), 2).volume, total


@theorem("THM-tofu-two-layers", system="Tofu")
def test_tofu_of_two_layers():
    """Of two layers with large weights, Tofu splits the first's outputs and the second's inputs.

    The halves then sum the second output and need the first input whole.
    """
    found = s35.tofu(_layers([1e6, 1e6], [8.0, 4.0]), 1)
    right = found.choices == (("out", "in"),)
    return found.volume if right else np.inf, 4.0 / 2 * 2


@theorem("THM-stanza-separation", system="Stanza")
def test_separated_layers():
    """A step of separated layers takes what workers, cut and sums of its best separation take."""
    work, weights, outputs = (
        np.array([3.0] * 3),
        np.array([900.0, 8.0, 4.0]),
        np.array([20.0, 40.0, 1.0]),
    )
    n, b = 8, 10.0
    times = [work.sum() + 2 * (n - 1) / n * weights.sum() / b]
    for cut, m in product((1, 2), range(1, n)):
        parts = (slice(cut), m), (slice(cut, 3), n - m)
        busy = sum(
            n * work[part].sum() / k + 2 * (k - 1) / k * weights[part].sum() / b
            for part, k in parts
        )
        times.append(busy + 2 * n * outputs[cut - 1] / (b * min(m, n - m)))
    return s35.stanza(_layers(weights.tolist(), outputs.tolist()), n, b).time, min(times)


@theorem("THM-pipe-torch", system="Pipe-torch")
def test_pipeline_on_unequal_links():
    """On a line of unequal links no straight pipeline has a faster slowest stage or transfer."""
    outputs, links = np.array([30.0, 5.0, 20.0, 4.0, 1.0]), np.array([1.0, 8.0, 2.0])
    times = []
    for cuts in product(range(1, 5), repeat=3):
        if cuts[0] < cuts[1] < cuts[2]:
            stages = np.diff([0, *cuts, 5]) * 3.0
            times.append(max(stages.max(), (2 * outputs[np.array(cuts) - 1] / links).max()))
    graph = _layers([0.0] * 5, outputs.tolist())
    return s35.pipedream(graph, [(4, links)], straight=True).time, min(times)


@theorem("THM-alpa-stages", system="Alpa")
def test_alpa_stages():
    """No stages of five layers on four devices end a step of six micro-batches before Alpa's."""
    rng, n = np.random.default_rng(134), 5
    seconds = (
        rng.integers(2, 40, (5, n + 1, n + 1)) / np.array([1.0, 1.0, 1.7, 2.1, 3.5])[:, None, None]
    )
    steps = []
    for count in range(1, 5):
        for cuts in product(range(1, n), repeat=count - 1):
            for shares in product(range(1, 5), repeat=count):
                edges = (0, *cuts, n)
                if sum(shares) == 4 and all(np.diff(edges) > 0):
                    took = [
                        seconds[k, i, j] for i, j, k in zip(edges, edges[1:], shares, strict=False)
                    ]
                    steps.append(sum(took) + 5 * max(took))
    return s35.alpa(_layers([1.0] * n, [1.0] * n), seconds, 6).time, min(steps)


@theorem("THM-fusion-buffers", system="Tensor fusion (Horovod)")
def test_fused_messages():
    """Gradients that are all there at the first look go in messages of a full buffer each."""
    rows = np.column_stack((np.linspace(0.0, 0.9, 30), np.full(30, 4.0)))
    found = s37.fuse_gradients(rows, latency=0.25, bandwidth=8.0, buffer=20.0, cycle=1.0)
    return found.finish, 1.0 + 6 * 0.25 + 120 / 8
