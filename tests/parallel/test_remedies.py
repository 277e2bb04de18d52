"""What is advised where a strategy does not fit, against all of its neighbours priced one by one."""

from dataclasses import replace
from itertools import product

import pytest

from relparallel.hardware import cluster
from relparallel.parallel import Strategy, memory, notation, read_strategy, step_time
from relparallel.parallel.corrections import Learned
from relparallel.parallel.run import Run
from relparallel.units import GB
from relparallel.workload import Transformer, transformer

GPT = Transformer(layers=24, hidden=8192, heads=64, vocabulary=51200, sequence=2048)
MACHINE = cluster("a100-80gb-selene", gpus=16)


def neighbours(split, most, chunks=()):
    """Every strategy and what leaves the GPUs, up to so many changes away with the same degrees."""
    axes = {
        "sequence_parallel": {split.sequence_parallel, True},
        "zero_stage": range(split.zero_stage, 4),
        "recompute": {split.recompute, "selective", "between", "mlp", "full"},
        "micro_batch": {max(split.micro_batch >> k, 1) for k in range(8)},
        "virtual_stages": {split.virtual_stages, *chunks},
        "offload": ("none", "activations"),
    }
    for values in product(*axes.values()):
        change = dict(zip(axes, values, strict=True))
        away = change.pop("offload")
        other = {name: one for name, one in change.items() if one != getattr(split, name)}
        if other.get("virtual_stages"):
            other["schedule"] = "interleaved_1f1b"
        many = len(other.keys() - {"schedule"}) + (away != "none")
        if 0 < many <= most:
            yield many, other, away


def priced(model, split, batch, most, chunks=()):
    """Step times of those that can be and that fit, by notation and what leaves the GPUs."""
    software = step_time(model, split, MACHINE, batch).software
    for many, change, away in neighbours(split, most, chunks):
        try:
            other = replace(split, **change)
            held = memory(model, other, batch, software=software, offload=away)
            if held.fits(MACHINE).fits:
                time = step_time(model, other, MACHINE, batch, offload=away).total
                yield many, time, notation(other), away
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("layers", "split", "chunks"),
    [
        (24, Strategy(tensor=2, data=8, micro_batch=4), ()),
        (48, Strategy(tensor=2, pipeline=4, data=2, micro_batch=2), (2, 3, 4, 6, 12)),
        (96, Strategy(tensor=8, pipeline=2, micro_batch=2), (2, 3, 4, 6, 8, 12)),
        (48, Strategy(tensor=4, data=4, zero_stage=1), ()),
    ],
)
def test_the_advice_is_the_fastest_neighbour_that_fits(layers, split, chunks):
    """One in no more changes than others that are as fast, with the time that it is predicted."""
    model = replace(GPT, layers=layers)
    found = step_time(model, split, MACHINE, 64)
    assert not found.fits
    every = sorted(priced(model, split, 64, 3, chunks))
    fastest = min(time for _, time, *_ in every)
    many, time, name, away = min(one for one in every if one[1] <= 1.01 * fastest)
    words, _, told = found.notes[-1].removeprefix("it fits with ").partition(": ")
    assert told.startswith(f"{name}, {time:.4g} s per step, MFU ")
    assert len(words.split(", ")) == many
    assert ("offload 'activations'" in words) == (away == "activations")


def test_degrees_grow_only_where_nothing_else_helps():
    model, split = replace(GPT, sequence=2**18), Strategy(tensor=2, data=8)
    assert not [*priced(model, split, 64, 3)]
    told = step_time(model, split, MACHINE, 64).notes[-1]
    other = read_strategy(told.partition(": ")[2].partition(",")[0])
    assert other.tensor * other.pipeline * other.context > 2
    assert other.gpus == 16
    assert (
        "no four changes make it fit"
        in step_time(replace(model, layers=960), split, MACHINE, 64).notes[-1]
    )


def test_the_shortage_is_said_in_gb_and_by_stage():
    found = step_time(GPT, Strategy(tensor=2, pipeline=2, data=4, micro_batch=4), MACHINE, 64)
    over = (found.memory.needed - found.memory.available) / GB
    assert f"stage {found.memory.stage} needs" in found.notes[-2]
    assert found.notes[-2].endswith(f" of reserve, {over:,.4g} GB too many")


def test_the_split_of_llama_3_is_told_what_its_authors_did():
    """TP8 PP16 DP128 on 16,384 H100: chunks, sharded gradients; Llama 3, table 4 prints MFU 0.41."""
    machine = cluster("h100-80gb-dgx", gpus=16384)
    found = step_time(transformer("llama3-405b"), read_strategy("TP8 PP16 DP128"), machine, 2048)
    told = found.notes[-1]
    assert "TP8 PP16 DP128 VPP8 ZeRO-2 SP, " in told
    assert float(told.rpartition("MFU ")[2].rstrip("%")) == pytest.approx(40, rel=0.1)


def test_own_runs_change_the_time_that_is_advised():
    split, model = Strategy(tensor=2, data=8, micro_batch=4), GPT
    run = replace(split, zero_stage=2)
    before = step_time(model, run, MACHINE, 64)
    runs = [
        Run(
            id="own",
            source="own",
            model=model,
            strategy=run,
            cluster=MACHINE,
            global_batch=64,
            software=before.software,
            time=1.5 * before.total,
        )
    ]
    learnt = Learned.of(runs)
    told = learnt.predict(model, split, MACHINE, 64).notes[-1]
    name, _, time = told.partition(": ")[2].partition(", ")
    then = learnt.predict(model, read_strategy(name), MACHINE, 64)
    assert time.startswith(f"{then.total:.4g} s")
    assert then.total > 1.1 * step_time(model, read_strategy(name), MACHINE, 64).total
