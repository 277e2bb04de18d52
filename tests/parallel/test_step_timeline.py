"""The simulated step against the closed forms: two routes to the same time."""

import pytest

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, step_time
from relparallel.parallel.step import step_timeline
from relparallel.workload import Transformer

GPT = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)
BLOOM = Transformer(layers=22, hidden=4096, heads=32, vocabulary=250880, sequence=2048)


def passes(time):
    """Closed form of the time of all passes."""
    return time.total - time.data - time.optimizer - time.overhead


@pytest.mark.parametrize(
    ("model", "changed"),
    [
        (GPT, {"pipeline": 4}),
        (GPT, {"pipeline": 8, "recompute": "full"}),
        (GPT, {"pipeline": 4, "schedule": "gpipe"}),
        (GPT, {"pipeline": 4, "tensor": 2, "schedule": "eager_1f1b"}),
        (GPT, {"pipeline": 4, "virtual_stages": 3, "schedule": "interleaved_1f1b"}),
        (BLOOM, {"pipeline": 8}),  # 22 layers, embedding and output layer on 8 stages of 3
        (BLOOM, {"pipeline": 4, "tensor": 2, "recompute": "selective"}),
        (GPT, {}),
    ],
)
@pytest.mark.parametrize("batch", [16, 64])
def test_the_simulation_takes_as_long_as_the_closed_form(model, changed, batch):
    split = Strategy(**changed)
    machine = cluster("a100-80gb-selene", gpus=split.gpus)
    simulated = step_timeline(model, split, machine, batch)
    assert simulated.makespan == pytest.approx(
        passes(step_time(model, split, machine, batch)), rel=0.03
    )


def test_the_last_stage_is_the_busy_one():
    split = Strategy(pipeline=4)
    found = step_timeline(GPT, split, cluster("a100-80gb-selene", gpus=4), 16)
    assert found.busy[-1] > found.busy[0] == found.busy[1]


def test_a_zero_bubble_schedule_takes_less_time():
    split = Strategy(pipeline=4, schedule="zb_h1")
    machine = cluster("a100-80gb-selene", gpus=4)
    plain = step_timeline(GPT, Strategy(pipeline=4), machine, 16)
    assert step_timeline(GPT, split, machine, 16).makespan < plain.makespan


def test_a_broken_rule_is_named_as_for_the_closed_form():
    with pytest.raises(ValueError, match=r"pipeline \* virtual_stages must be at most"):
        step_timeline(GPT, Strategy(pipeline=32), cluster("a100-80gb-selene", gpus=32), 16)
