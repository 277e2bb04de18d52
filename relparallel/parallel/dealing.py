"""How layers are dealt out to the chunks of a pipeline: of how many layers each stage has how many.

p stages with v chunks each; ``folded`` schedules have the last chunk on the first stage. The
embedding and the loss may take the places of layers.
"""

import numpy as np

from relparallel.parallel.columns import Numbers, some, where


def stage_layers(
    layers: Numbers,
    p: Numbers,
    v: Numbers,
    folded: Numbers,
    ends: tuple[Numbers, Numbers],
    i: Numbers,
) -> Numbers:
    """Layers of a stage where all chunks have as many places and the first ones have one more."""
    embedding, loss = ends
    each = (layers + embedding + loss) // (p * v)
    more = layers + embedding + loss - each * (p * v)
    down_and_up = 2 * each + (i < more) + (2 * p - 1 - i < more)
    places = where(folded, down_and_up, v * each + (more - i + p - 1) // p)
    return places - where(i == 0, embedding, 0) - where(i == where(folded, 0, p - 1), loss, 0)


def most_layers(
    layers: Numbers, p: Numbers, v: Numbers, folded: Numbers, ends: tuple[Numbers, Numbers]
) -> Numbers:
    """Layers of the fullest stage: the first one, the second or the last."""
    first, second, last = (
        stage_layers(layers, p, v, folded, ends, i) for i in (0, np.minimum(1, p - 1), p - 1)
    )
    return np.maximum(np.maximum(first, second), last)


def counted_ends(
    layers: Numbers, mtp: Numbers, p: Numbers, v: Numbers, folded: Numbers, said: Numbers
) -> tuple[Numbers, Numbers]:
    """Layers that embedding and loss count as: given, or those that fill chunks and grow no stage.

    Each of the ``mtp`` layers behind the last one counts as a layer and a loss. The loss comes
    first: its stage is the slowest; the embedding only takes memory. Where those layers would grow
    a stage, the loss counts as it does without them.
    """
    embedding, loss = _filling(layers, 0, p, v, folded)
    if some(mtp > 0):
        more = _filling(layers, mtp, p, v, folded)
        fits = more[1] > 0
        embedding, loss = where(fits, more[0], embedding), where(fits, more[1], loss)
    embedding, loss = (
        where(said > 0, asked, found) for asked, found in ((said & 1, embedding), (said >> 1, loss))
    )
    return where(p == 1, 0, embedding), where(p == 1, 0, loss)


def _filling(
    layers: Numbers, mtp: Numbers, p: Numbers, v: Numbers, folded: Numbers
) -> tuple[Numbers, Numbers]:
    """Layers that embedding and loss count as where they fill chunks and grow no stage, else none."""
    loss = np.minimum(np.minimum(-layers % (p * v), 1 + 2 * mtp), np.maximum(layers // (p * v), 1))
    embedding = np.minimum(-layers % (p * v) - loss, 1)
    grown = most_layers(layers, p, v, folded, (embedding, loss))
    grown = grown > most_layers(layers, p, v, folded, (0, 0))
    return where(grown, 0, embedding), where(grown, 0, loss)
