"""Steps whose stages differ: equal ones by the closed form, others by bounds of their own."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, simulated_steps, step_time
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.stages import dealt_layers
from relparallel.parallel.step import step_timeline
from relparallel.parallel.strategy import RECOMPUTE
from relparallel.workload import Transformer

GPT = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)
FLUSHED = ("gpipe", "1f1b", "interleaved_1f1b", "eager_1f1b", "dapple")
UNFLUSHED = ("pipedream", "pipedream_2bw", "pipemare")
INSIDE = ("compute", "recompute", "launch", "tensor", "context", "expert")


def on(gpus):
    return cluster("a100-80gb-selene", gpus=gpus if gpus < 8 else -(-gpus // 8) * 8)


def passes(time):
    """Of a step, the time until the last micro-batch is done."""
    return time.total - time.data - time.optimizer - time.overhead


@st.composite
def steps(draw, names=SCHEDULES):
    """A model and a strategy of equal stages, with the layers of a chunk and the batch."""
    name = draw(st.sampled_from(names))
    p = draw(st.sampled_from([2, 4, 6] if name == "chimera" else [1, 2, 3, 4, 8]))
    v = (
        2
        if name in V_SHAPED
        else draw(st.integers(1, 3))
        if name == "interleaved_1f1b" and p > 1
        else 1
    )
    layers, hidden = draw(st.integers(1, 3)), 1024 * draw(st.integers(1, 4))
    mixture = {"experts": 4, "active_experts": 2, "expert_ffn": 512} if draw(st.booleans()) else {}
    model = Transformer(
        layers=p * v * layers,
        hidden=hidden,
        heads=8,
        vocabulary=draw(st.sampled_from([32000, 250880])),
        sequence=2048,
        **mixture,
    )
    split = Strategy(
        tensor=draw(st.sampled_from([1, 2, 8])),
        pipeline=p,
        data=draw(st.sampled_from([1, 2])),
        context=draw(st.sampled_from([1, 2])),
        virtual_stages=v,
        schedule=name,
        recompute=draw(st.sampled_from(RECOMPUTE)),
        zero_stage=draw(st.integers(0, 1)),
    )
    m = p * draw(st.integers(1, 5)) + (draw(st.integers(0, p - 1)) if name in FLUSHED else 0)
    return model, split, layers, split.data * m


def both(model, split, layers, batch, machine=None, **options):
    """The closed form and the simulation of equal stages."""
    said = [layers] * (split.pipeline * split.virtual_stages)
    machine = machine or on(split.gpus)
    return [
        step_time(model, split, machine, batch, stage_layers=s, **options) for s in (None, said)
    ]


@given(steps(FLUSHED))
@settings(deadline=None, max_examples=150)
def test_equal_stages_take_as_long_as_the_closed_form_part_by_part(case):
    closed, simulated = both(*case)
    assert simulated.total == pytest.approx(closed.total, rel=1e-12)
    parts = [time.to_frame()["seconds"].to_numpy() for time in (closed, simulated)]
    assert parts[1] == pytest.approx(parts[0], rel=1e-9, abs=1e-12 * closed.total)


@given(steps(UNFLUSHED))
@settings(deadline=None, max_examples=60)
def test_without_a_flush_only_the_transfers_of_the_filling_fall_away(case):
    split, m = case[1], case[1].micro_batches(case[3])
    closed, simulated = both(*case)
    assert closed.total - simulated.total == pytest.approx(
        (split.pipeline - 1) * closed.pipeline / m, rel=1e-9, abs=1e-12
    )
    assert simulated.pipeline_bubble == 0


@given(steps(UNFLUSHED))
@settings(deadline=None, max_examples=25)
def test_the_slowest_stage_sets_the_pace_without_a_flush(case):
    """The period that the closed argument gives is the one that many iterations reach."""
    model, split, _, batch = case
    p, m = split.pipeline, split.micro_batches(batch)
    said = [1 + i % 2 for i in range(p)]
    model = replace(model, layers=sum(said))
    found = step_time(model, split, on(split.gpus), batch, stage_layers=said)
    long = step_timeline(model, split, on(split.gpus), batch * 40, stage_layers=said).makespan
    short = step_timeline(model, split, on(split.gpus), batch * 20, stage_layers=said).makespan
    assert (long - short) / (20 * m) == pytest.approx(passes(found) / m, rel=1e-9)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n not in ("v_half", "v_min")])
@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("p", [2, 4, 6])
def test_every_closed_form_holds_without_output_layer_and_transfers(
    name, recompute, p, monkeypatch
):
    """That of zb_v wants w <= f <= b, which only full recomputation gives."""
    v, m = (2 if name in V_SHAPED else 1), 4 * p
    split = Strategy(pipeline=p, virtual_stages=v, schedule=name, recompute=recompute)
    priced = simulated_steps.priced_passes
    monkeypatch.setattr(
        simulated_steps, "priced_passes", lambda rows: priced(rows)._replace(head=0.0, transfer=0.0)
    )
    closed, simulated = both(replace(GPT, layers=2 * p * v), split, 2, m)
    left = closed.total - closed.head - closed.pipeline * (1 + (p - 1) / (m * v))
    if name != "zb_v" or recompute == "full":
        assert simulated.total == pytest.approx(left, rel=1e-9)
    else:
        assert simulated.total == pytest.approx(left, rel=0.05)


@given(steps(("zb_h1", "zb_2p", "zb_v", "v_half", "v_min", "chimera")))
@settings(deadline=None, max_examples=60)
def test_work_is_that_of_the_closed_form_where_the_bubble_is_not(case):
    """A step takes at least the work of the slowest stage; that work is the same by both routes."""
    closed, simulated = both(*case)
    ends = 0.5 if case[1].schedule == "chimera" else 1  # both ends have half of the output layer
    assert simulated.head == pytest.approx(ends * closed.head, rel=1e-9)
    for part in (*INSIDE, "pipeline", "data", "optimizer", "overhead"):
        assert getattr(simulated, part) == pytest.approx(
            getattr(closed, part), rel=1e-9, abs=1e-15
        ), part
    assert abs(simulated.total / closed.total - 1) < 0.5


def alone(model, split, layers):
    """Seconds of a micro-batch on its own stage without output layer, and of the output layer."""
    small = replace(model, layers=layers)
    time = step_time(
        small, replace(split, pipeline=1, schedule="1f1b"), on(split.tensor), split.micro_batch
    )
    return sum(getattr(time, part) for part in INSIDE), time.head


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=6),
    st.integers(1, 12),
    st.sampled_from([32000, 250880]),
    st.sampled_from(RECOMPUTE),
)
@settings(deadline=None, max_examples=60)
def test_unequal_stages_take_what_flow_shops_take(layers, m, vocabulary, recompute):
    """Stages priced one by one. GPipe is two flow shops; 1F1B stages wait for those before them."""
    model, p = replace(GPT, layers=sum(layers), vocabulary=vocabulary), len(layers)
    split = Strategy(tensor=2, pipeline=p, schedule="gpipe", recompute=recompute)
    found = step_time(model, split, on(2 * p), m, stage_layers=layers)
    seconds, heads = (
        np.array(x) for x in zip(*[alone(model, split, n) for n in layers], strict=True)
    )
    seconds = seconds + np.eye(p)[-1] * heads
    slow = int(np.argmax(seconds))
    inside = sum(getattr(found, part) for part in INSIDE) + found.head
    assert inside == pytest.approx(m * seconds[slow], rel=1e-9)
    transfers = found.pipeline / m
    least = (
        m * (seconds + transfers) + np.cumsum(seconds + transfers) - (seconds + transfers)
    ).max()
    flow = step_timeline(model, split, on(2 * p), m, stage_layers=layers)
    first = flow.duration[(flow.kind == "forward") & (flow.item == 0)]
    back = flow.duration[(flow.kind == "backward") & (flow.item == 0)]
    assert passes(found) == pytest.approx(
        first.sum() + back.sum() + (m - 1) * (first.max() + back.max()), rel=1e-9
    )
    assert (first + back).sum() == pytest.approx((seconds + transfers).sum(), rel=1e-9)
    plain = replace(split, schedule="1f1b")
    assert passes(step_time(model, plain, on(2 * p), m, stage_layers=layers)) >= least * (1 - 1e-9)


@given(steps(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_parts_of_any_split_sum_to_the_simulated_step(case, random):
    model, split, layers, batch = case
    said = [layers] * (split.pipeline * split.virtual_stages)
    for _ in range(3):
        give, take = random.randrange(len(said)), random.randrange(len(said))
        if said[take] > 1:
            said[take] -= 1
            said[give] += 1
    found = step_time(model, split, on(split.gpus), batch, stage_layers=said)
    timeline = step_timeline(model, split, on(split.gpus), batch, stage_layers=said)
    assert found.to_frame()["seconds"].sum() == pytest.approx(found.total, rel=1e-12)
    work = passes(found) - found.pipeline_bubble
    assert timeline.busy.max() == pytest.approx(work, rel=1e-9)
    assert passes(found) <= timeline.makespan * (1 + 1e-9)
    if split.schedule in (*FLUSHED, "chimera"):
        assert passes(found) == pytest.approx(timeline.makespan, rel=1e-9)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=5))
@settings(deadline=None, max_examples=40)
def test_the_optimiser_takes_as_long_as_on_the_stage_with_most_weights(layers):
    """Seconds of a layer and of the embedding, from equal stages of one and of two layers."""
    p = len(layers)
    found, one, two = (
        step_time(
            replace(GPT, layers=sum(said)), Strategy(pipeline=p), on(p), 8, stage_layers=said
        ).optimizer
        for said in (layers, [1] * p, [2] * p)
    )
    layer, table = two - one, 2 * one - two
    expected = max(max(layers) * layer, max(layers[0], layers[-1]) * layer + table)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("data", [1, 4])
def test_gradients_between_replicas_wait_for_the_fullest_stage(data):
    split = Strategy(pipeline=4, tensor=2, data=data)
    light, heavy, even = (
        step_time(replace(GPT, layers=sum(said)), split, on(8 * data), 64, stage_layers=said).data
        for said in ([2, 2, 2, 2], [8, 2, 2, 2], [8, 8, 8, 8])
    )
    assert heavy == pytest.approx(even, rel=1e-9)
    assert heavy > light if data > 1 else heavy == 0


@pytest.mark.parametrize("p", [4, 8])
@pytest.mark.parametrize("batch", [8, 64])
def test_slots_of_embedding_and_output_layer_are_a_split_of_their_own(p, batch):
    """BLOOM's layers: the timeline is that split, and the time the closed form's but for what the
    stages differ in after the passes."""
    model = replace(GPT, layers=3 * p - 2, vocabulary=250880)
    split, said = Strategy(pipeline=p), [2, *[3] * (p - 2), 2]
    assert dealt_layers(model, split).tolist() == said
    usual, simulated = (
        step_timeline(model, split, on(p), batch, stage_layers=s) for s in (None, said)
    )
    assert usual.start.tolist() == simulated.start.tolist()
    closed, found = (step_time(model, split, on(p), batch, stage_layers=s) for s in (None, said))
    layer, head = alone(model, split, 1)
    assert head > layer  # the last stage is the slow one
    assert closed.total - found.total == pytest.approx(
        closed.optimizer + closed.data - found.optimizer - found.data, rel=1e-6
    )
    assert found.total == pytest.approx(closed.total, rel=0.03)


def test_bloom_itself():
    """70 layers on 12 stages: six on each but the first and the last, which have five."""
    bloom = Transformer(layers=70, hidden=14336, heads=112, vocabulary=250880, sequence=2048)
    split = Strategy(tensor=4, pipeline=12, data=8, micro_batch=2, recompute="full", zero_stage=1)
    machine = cluster("a100-80gb-jean-zay", gpus=384)
    closed, found = (
        step_time(bloom, split, machine, 2048, stage_layers=s) for s in (None, [5, *[6] * 10, 5])
    )
    assert found.total == pytest.approx(closed.total, rel=0.01)


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        ([6, 6, 6], ValueError, "4 integers >= 1 that sum to the 24 layers.*got 3 that sum to 18"),
        ([6, 6, 6, 7], ValueError, "got 4 that sum to 25"),
        ([8, 0, 8, 8], ValueError, r"\[8, 0, 8, 8\]"),
        ("6x3+7", ValueError, "got 4 that sum to 25"),
        ("6x3+", TypeError, "got '6x3"),
        ([-1, 9, 8, 8], ValueError, r"\[-1, 9, 8, 8\]"),
        ([6.0, 6, 6, 6], TypeError, r"got \[6.0"),
        ([True, 7, 8, 8], TypeError, r"got \[True"),
        ([2**70, 6, 6, 6], TypeError, "stage_layers"),
        (24, TypeError, "got 24"),
        ("6666", TypeError, "got '6666'"),
    ],
)
def test_a_bad_split_is_refused(said, error, text):
    split = Strategy(pipeline=4)
    for function in (step_time, step_timeline):
        with pytest.raises(error, match=f"stage_layers must be.*{text}|{text}"):
            function(GPT, split, on(4), 8, stage_layers=said)


def test_layers_that_do_not_divide_are_dealt_out_the_first_stages_having_more():
    split = Strategy(pipeline=5)
    assert dealt_layers(GPT, split).tolist() == [5, 5, 5, 5, 4]
    said, unsaid = (
        step_time(GPT, split, on(5), 10, stage_layers=x) for x in ([5, 5, 5, 5, 4], None)
    )
    # the closed form lets every stage have five
    assert unsaid.total == pytest.approx(said.total, rel=0.02)
    with pytest.raises(ValueError, match="tensor must divide the heads"):
        step_time(GPT, replace(split, tensor=3), on(15), 10, stage_layers=[5, 5, 5, 5, 4])
