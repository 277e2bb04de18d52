"""Which layers the stages of a pipeline hold, and of how many micro-batches at once.

p stages with v chunks each, i the stage, counted from 0, m micro-batches; ``folded`` schedules have
the last chunk on the first stage. The embedding and the loss may take the places of layers. The
first formulas take numbers or columns, those behind `require_stage_layers` one strategy whose
chunks may differ.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_indices, require_int
from relparallel.parallel.quantities import Numbers, some, where
from relparallel.parallel.schedules import FLIGHTS, TABLE, V_SHAPED, group_size
from relparallel.parallel.strategy import ENDS, Strategy
from relparallel.workload import Transformer

FLIGHT_RULES: Final = {name: FLIGHTS.index(known.flight) for name, known in TABLE.items()}
"""Schedule: how many micro-batches stages hold; each part of a split backward pass frees half."""

RULES: Final = np.array(list(FLIGHT_RULES.values()))  # in the order of `SCHEDULES`
INTERLEAVED: Final = FLIGHT_RULES["interleaved_1f1b"]
_EAGER: Final = FLIGHT_RULES["eager_1f1b"]
PIPEDREAM: Final = FLIGHT_RULES["pipedream"]
TWO_VERSIONS: Final = FLIGHT_RULES["pipedream_2bw"]
_SPLIT: Final = FLIGHT_RULES["zb_h1"]
_SPLIT_EAGER: Final = FLIGHT_RULES["zb_2p"]
CHIMERA: Final = FLIGHT_RULES["chimera"]
# from here on, the path through the stages goes down and up again
_FOLDED: Final = FLIGHT_RULES["zb_v"]
_FOLDED_HALF: Final = FLIGHT_RULES["v_half"]
UNLIMITED: Final = 2.0**53
"""Micro-batches that a stage may hold where nothing limits them."""
_ROUNDS: Final = 4  # times p micro-batches, after which a stage holds no more


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


class Flight(NamedTuple):
    """Micro-batches in flight: of the stage (a chunk counts 1/v), its first chunk, its last one."""

    held: Numbers
    first: Numbers
    last: Numbers


def flight(rule: Numbers, p: Numbers, m: Numbers, v: Numbers, i: Numbers) -> Flight:
    """Micro-batches in flight on a stage by one of `FLIGHTS`."""
    behind = p - 1.0 - i
    held = where(rule == _EAGER, 2 * behind + 1, behind + 1)
    held = where(rule == _SPLIT, p - i / 2, where(rule == _SPLIT_EAGER, 2.0 * p - 1 - i, held))
    held = np.minimum(m, held)
    last = where(rule >= _SPLIT, held, 1.0)
    found = Flight(*(where(rule == 0, m, one) for one in (held, held, last)))
    chunks = (rule == INTERLEAVED) & (v > 1)
    if some(chunks):
        group = group_size(p, m)
        ahead = np.minimum(m, (2 * behind + (v - 1) * group + 1) / v)
        rest = m - (np.ceil(m / group) - 1) * group  # its last chunk comes early
        last = np.minimum(rest, 1 + (v - 1) * (group - rest))
        found = _among(chunks, Flight(ahead, np.minimum(m, 2 * group), last), found)
    if some(rule == CHIMERA):  # half of the micro-batches come from the other end
        half = np.maximum(np.ceil(np.minimum(m, 1.0 * p) / 2), 1.0)
        both = np.minimum(m, np.minimum(half, behind + 1) + np.minimum(half, i + 1.0))
        found = _among(rule == CHIMERA, Flight(both, half, 1.0), found)
    if some(rule >= _FOLDED):
        third = where(rule > _FOLDED_HALF, np.floor(2 * p / 3 + 2) / 2, 1.0 * p)
        most = where(rule == _FOLDED_HALF, p // 2 + 1.5, third)
        last = where(rule == _FOLDED_HALF, 2.0, 1.0)
        found = _among(
            rule >= _FOLDED, Flight(np.minimum(m, most), np.minimum(m, 2 * most), last), found
        )
    return found


def _among(condition: Numbers, yes: Flight, no: Flight) -> Flight:
    return Flight(*(where(condition, one, other) for one, other in zip(yes, no, strict=True)))


def waiting(rule: Numbers, m: Numbers, i: Numbers) -> Numbers:
    """Micro-batches of a stage that have gone back but wait for the gradients of the weights."""
    if not some((rule == _SPLIT) | (rule == _SPLIT_EAGER) | (rule >= _FOLDED)):
        return 0.0
    most = where(rule > _FOLDED, where(rule == _FOLDED_HALF, 2.0, 1.0), 0.0)
    most = where(rule == _FOLDED, i + 0.5, most)
    most = where(rule == _SPLIT, i + 1.0, where(rule == _SPLIT_EAGER, 2.0 * i + 1, most))
    return np.minimum(m, most)


def require_stage_layers(
    model: Transformer, strategy: Strategy, stage_layers: Any
) -> NDArray[np.int64]:
    """Return the layers of every chunk as int64 [p v], or refuse them."""
    chunks = strategy.pipeline * strategy.virtual_stages
    allowed = (
        f"{chunks} integers >= 1 that sum to the {model.layers} layers, one for each of "
        f"{strategy.pipeline} "
        f"stages with {strategy.virtual_stages} chunks, 0 at either end too, or a text like "
        "'4x15+1' or 'Et*4|(t*4|)*14tL'"
    )
    if isinstance(stage_layers, str) and (read := read_layout(stage_layers)):
        stage_layers = read
    if isinstance(stage_layers, str) or not isinstance(stage_layers, Sequence | np.ndarray):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}")
    try:
        layers = require_indices(
            "stage_layers", [require_int(stage_layers=n) for n in stage_layers]
        )
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"stage_layers must be {allowed}, got {stage_layers!r:.80}") from None
    if (
        layers.size != chunks
        or np.any(layers < 0)
        or np.any(layers[1:-1] < 1)
        or sum(layers.tolist()) != model.layers
    ):
        said = f"{layers.size} that sum to {sum(layers.tolist())}"
        raise ValueError(f"stage_layers must be {allowed}, got {said}: {stage_layers!r:.80}")
    return layers


def dealt_layers(model: Transformer, strategy: Strategy) -> NDArray[np.int64]:
    """Layers of every chunk where nothing is said, [p v].

    Equal; else the first chunks have one more, and embedding and loss take places as
    ``ends_as_layers`` says.
    """
    return deal(model.layers, model.mtp_layers, strategy)


def deal(layers: int, mtp: int, strategy: Strategy) -> NDArray[np.int64]:
    """The same for so many layers, and so many behind them that predict further tokens."""
    p, v, folded = strategy.pipeline, strategy.virtual_stages, strategy.schedule in V_SHAPED
    said = ENDS.index(strategy.ends_as_layers)
    ends = np.array(counted_ends(layers, mtp, p, v, folded, said))
    dealt = even_chunks(layers + int(ends.sum()), p * v)[::-1].copy()
    np.subtract.at(dealt, [0, -1], ends)
    return dealt


def read_layout(text: str) -> list[int] | None:
    """Layers of the chunks of ``4x15+1`` or ``Et*4|(t*4|)*14,tmL``; None of other texts.

    The second is Megatron's ``pipeline_model_parallel_layout``: E is the embedding, t a layer, m one
    that predicts a further token, L the loss; stages end at ``|``, commas say nothing, ``*n`` repeats
    a letter or what stands in brackets.
    """
    if re.fullmatch(r"(?=.*[x+])(\d{1,6}(x\d{1,4})?\+?\b)+", text):
        runs = [run.split("x") for run in text.split("+")]
        return [int(run[0]) for run in runs for _ in range(int(run[-1]) if run[1:] else 1)]
    if not re.fullmatch(r"(?=.*[|*EL])[EtmL|(),*\d\s]+", text):
        return None
    flat = re.sub(r"[,\s]", "", text)
    for repeated in (r"\(([^()]*)\)\*(\d{1,3})", r"([EtmL|])\*(\d{1,3})"):
        flat = re.sub(repeated, lambda found: found[1] * int(found[2]), flat)
    if not re.fullmatch(r"E[t|]*[m|]*L", flat):
        raise ValueError(
            "layout must be E, then layers t, then m of further tokens, then L, with stages parted "
            f"by |, such as 'Et*4|(t*4|)*14tmL', got {text!r:.80}"
        )
    return [stage.count("t") for stage in flat.split("|")]


def in_letters(layers: NDArray[np.int64], mtp: int) -> str:
    """The layers of chunks as Megatron's layout, which `read_layout` reads back."""
    runs = [(number, len(list(run))) for number, run in groupby(layers[1:-1].tolist())]
    middle = "".join(f"(t*{number}|)*{times}" for number, times in runs)
    first, last = (f"t*{number}" if number else "" for number in layers[[0, -1]])
    return re.sub(r"t\*1(?!\d)", "t", f"E{first}|{middle}{last}{'m' * mtp}L")


def in_chunks(layers: Sequence[int] | NDArray[np.int64]) -> str:
    """Layers of chunks in words: ``4x15+1`` are fifteen chunks of four layers and one of one."""
    runs = [(number, len(list(run))) for number, run in groupby(layers)]
    return "+".join(f"{number}x{times}" if times > 1 else str(number) for number, times in runs)


def even_chunks(layers: int, chunks: int) -> NDArray[np.int64]:
    """Layers of one stage's chunks, [v]; they differ by one at most, the later ones have more."""
    return np.arange(layers, layers + chunks) // chunks


def chunk_devices(strategy: Strategy) -> NDArray[np.int64]:
    """Stage that holds each chunk; int64 [p v]. In Chimera, the one on the way down."""
    p = strategy.pipeline
    chunk = np.arange(p * strategy.virtual_stages)
    return (
        np.where(chunk < p, chunk, 2 * p - 1 - chunk)
        if strategy.schedule in V_SHAPED
        else chunk % p
    )


def stage_sums(strategy: Strategy, chunks: NDArray[Any]) -> NDArray[np.float64]:
    """Sum over the chunks of every stage, [p]."""
    return np.bincount(chunk_devices(strategy), weights=chunks).astype(np.float64)


def device_layers(strategy: Strategy, chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Layers a micro-batch meets on each stage, [p]; Chimera's mean over its two directions."""
    held = stage_sums(strategy, chunks)
    return (held + held[::-1]) / 2 if strategy.schedule == "chimera" else held


def kept_layers(
    strategy: Strategy, micro_batches: int, chunks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Most layers times micro-batches that each stage keeps at once, [p].

    A stage runs its passes in a fixed order, so what it keeps does not depend on how long they
    take.
    """
    p, v = strategy.pipeline, strategy.virtual_stages
    # GPipe holds all, and the groups of interleaving follow from their number
    whole = FLIGHT_RULES[strategy.schedule] in (0, INTERLEAVED)
    m = micro_batches if whole else min(micro_batches, _ROUNDS * p)
    order = TABLE[strategy.schedule].rule(p, m, v, np.full(p, UNLIMITED))
    kinds = len(order.turn)
    gains = np.array([1.0, *[-1 / (kinds - 1)] * (kinds - 1)])[:, None, None] * chunks
    change = np.broadcast_to(gains, order.turn.shape).ravel()
    stage = np.broadcast_to(order.stage, order.turn.shape).ravel()
    by_turn = np.lexsort((order.turn.ravel(), stage))
    ends = np.searchsorted(stage[by_turn], np.arange(1, p))
    return np.array([part.cumsum().max() for part in np.split(change[by_turn], ends)])


class Pipeline(NamedTuple):
    """What is split and how, checked: whoever prices a step or counts its bytes asks for its parts.

    ``said`` are the layers of every chunk [p v], None where they are dealt out.
    """

    model: Transformer
    strategy: Strategy
    global_batch: int
    said: NDArray[np.int64] | None

    @property
    def chunks(self) -> NDArray[np.int64]:
        """Layers of every chunk, as said or as they are dealt out; [p v]."""
        return dealt_layers(self.model, self.strategy) if self.said is None else self.said

    @property
    def layers(self) -> NDArray[np.float64]:
        """Layers of every stage, [p]."""
        return stage_sums(self.strategy, self.chunks)
