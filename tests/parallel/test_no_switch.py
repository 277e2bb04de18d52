"""No fitted constant turns a plan where a strategy can step around it.

A time that a formula adds from one rank, stage or node to two is a switch: strategies dodge it, and
what was the residual of one publication decides plans. Walking the degrees, a parameter may change
the preference between neighbours by no more than predictions there are in doubt.
"""

import itertools
import math
from dataclasses import replace

import pytest

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, step_time
from relparallel.parallel.machine_parameters import calibration
from relparallel.published import shipped_rows
from relparallel.workload import transformer

PLACES = {"h100": "h100-80gb-dgx", "b200": "gb200-186gb-nvl72", "b300": "gb300-279gb-nvl72"}
TIMES = [row["parameter"] for row in shipped_rows("priors.csv") if row["unit"] == "s"]
MODELS = {"qwen3-30b-a3b": 256, "deepseek-v3": 2048, "llama3-8b": 256}


def walk(model, gpus, domain):
    """Neighbours on as many GPUs: one stage or two, experts in a node or over two."""
    split = {"zero_stage": 1}
    experts = {"expert": min(model.experts, gpus // 2, 8)} if model.experts > 1 else {}
    made = [Strategy(pipeline=p, data=gpus // p, **experts, **split) for p in (1, 2, 4)]
    if model.experts > 1 and gpus >= 2 * domain:
        made.append(Strategy(data=gpus, expert=2 * domain, **split))
    return list(itertools.pairwise(made))


def preferences(model, place, batch, known, added=0.0):
    """Logarithms of the times of neighbours beside each other, and how wide their doubt is."""
    found = []
    for pair in walk(model, place.gpus, place.gpus_per_node):
        steps = [step_time(model, one, place, batch, calibrated=known) for one in pair]
        times = [
            step.total + added * (split.pipeline > 1)
            for step, split in zip(steps, pair, strict=True)
        ]
        doubt = max(math.log(step.interval(0.9)[1] / step.total) for step in steps)
        found.append((math.log(times[0] / times[1]), doubt))
    return found


@pytest.mark.parametrize("family", PLACES)
@pytest.mark.parametrize("name", MODELS)
def test_no_time_of_the_calibration_turns_neighbours_by_more_than_their_doubt(family, name):
    model, place = transformer(name), cluster(PLACES[family], 128)
    known, batch = calibration(place.accelerator), MODELS[name]
    usual = preferences(model, place, batch, known)
    for one in TIMES:
        without = replace(known, values={**known.values, one: 1e-12})
        for (here, doubt), (there, _) in zip(
            usual, preferences(model, place, batch, without), strict=True
        ):
            assert abs(here - there) < doubt, one


def test_a_second_for_every_pipeline_is_found_out():
    """The constant that once stood for a mixture on several nodes."""
    model, place = transformer("qwen3-30b-a3b"), cluster(PLACES["h100"], 128)
    known = calibration(place.accelerator)
    usual = preferences(model, place, 256, known)
    turned = preferences(model, place, 256, known, added=1.2)
    assert any(
        abs(here - there) > doubt for (here, doubt), (there, _) in zip(usual, turned, strict=True)
    )
