"""Theorems on jobs that share a cluster, models a GPU, operators a chip."""

from typing import Any

import numpy as np
import pandas as pd
from theorem_table import theorem

from chapters import s31, s38, s62
from chapters.s62.tiles import tile_group


def _chain(rows: int, channels: tuple[int, ...], window: int) -> list[s62.TileOperator]:
    """Convolutions over one image, without borders."""
    found, wide = [], rows
    for i in range(len(channels) - 1):
        wide -= window - 1
        sizes = {
            "d": channels[i + 1],
            "y": wide,
            "x": wide,
            "c": channels[i],
            "r": window,
            "s": window,
        }
        reads = (f"X{i}[c,y+r,x+s]", f"W{i}[d,c,r,s]")
        found.append(
            s62.TileOperator(name=f"layer {i}", writes=f"X{i + 1}[d,y,x]", reads=reads, sizes=sizes)
        )
    return found


@theorem("THM-isosceles-stream", system="ISOSceles")
def test_streamed_words():
    """A pruned network's rows streamed through all layers move what row by row execution counts."""
    draw, layers = np.random.default_rng(0), _chain(12, (3, 5, 4, 2), 3)
    weights = [
        draw.random((b, a, 3, 3)) * (draw.random((b, a, 3, 3)) < 0.3)
        for a, b in ((3, 5), (5, 4), (4, 2))
    ]
    image = draw.random((3, 12, 12)) * (draw.random((3, 12, 12)) < 0.5)
    moved = sum(np.count_nonzero(kernel) for kernel in weights)
    lines: list[list[Any]] = [[] for _ in weights]
    for row in range(12):
        moved += np.count_nonzero(image[:, row])
        fresh = image[:, row]
        for i, kernel in enumerate(weights):
            lines[i] = [*lines[i][-2:], fresh]
            if len(lines[i]) < 3:
                break
            window = np.lib.stride_tricks.sliding_window_view(np.stack(lines[i], axis=1), 3, axis=2)
            fresh = np.einsum("crxs,dcrs->dx", window, kernel)
        else:
            moved += np.count_nonzero(fresh)
    density = {f"W{i}": float((w > 0).mean()) for i, w in enumerate(weights)} | {
        "X0": float((image > 0).mean())
    }
    tile = {"d": 2, "y": 1, "x": 6}
    return tile_group(layers, tile, density=density, stream="y").words, float(moved)


@theorem("THM-tile-data-movement", system="WELDER")
def test_connected_as_fused():
    """Connected pointwise operators move what an encoder layer's operators say of the group."""
    layer = s31.encoder_layer(2, 6, 12, 3, 20)
    part = layer[layer["group"] == "relu"].iloc[:2]
    wide = {"t": 12, "u": 20}
    bias = s62.TileOperator(name="bias", writes="fb[t,u]", reads=("f[t,u]", "b1[u]"), sizes=wide)
    relu = s62.TileOperator(name="relu", writes="fr[t,u]", reads=("fb[t,u]",), sizes=wide)
    found = tile_group([bias, relu], {"t": 3, "u": 20}, stream="t")
    return found.words, float(s31.words_moved(part, ["relu"]).sum())


@theorem("THM-elastic-work", system="ElasticDL / elastic training")
def test_elastic_work():
    """Elastic jobs whose speed is their GPUs keep all GPUs busy: they end at work over GPUs."""
    model = s38.StatisticalGoodput(
        compute=0.0,
        compute_per_sample=1.0,
        nodes=0.0,
        nodes_per_replica=0.0,
        local=0.0,
        local_per_replica=0.0,
        overlap=1.0,
        noise=0.0,
        batch=48,
    )
    app = s38.modelled_application(model, epochs=1, steps=100, limits=(1, 48, 96))
    jobs = pd.DataFrame(
        {"name": list("abcd"), "time": 0, "application": "x", "num_replicas": 16, "batch_size": 48}
    )
    run = s38.share_cluster(jobs, {"x": app}, "elastic", nodes=4, interval=1.0, restart=0.0)
    return float(run.jobs["completion"].max()) - 1.0, 4 * 100 * 48 / 16
