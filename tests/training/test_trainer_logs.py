"""What trainers print is read as the run that printed it, whatever stands before its lines."""

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import relparallel as rp
from relparallel.training import read_run_log
from relparallel.training.trainer_logs import TRAINERS

DATA = os.environ.get("RELPARALLEL_DATA")
BEGIN = datetime(2026, 9, 1, 10)
BATCH, SEQUENCE = 512, 4096
MEGATRON = """using world size: 64, data-parallel size: 8, context-parallel size: 1, \
hierarchical context-parallel sizes: None, tensor-model-parallel size: 4, \
encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 2
  encoder_seq_length .............................. 4096
  expert_model_parallel_size ...................... 1
  fp8 ............................................. None
  micro_batch_size ................................ 2
  recompute_granularity ........................... selective
  seq_length ...................................... 4096
  sequence_parallel ............................... True
  use_distributed_optimizer ....................... True
  virtual_pipeline_model_parallel_size ............ None"""


def date(seconds: float) -> str:
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f}"


def megatron(step: int, seconds: float, at: float | None = None, batch: int = BATCH) -> str:
    front = "" if at is None else f" [{date(at)}]"
    return (
        f"{front} iteration {step:8d}/   10000 | consumed samples: {step * BATCH:12d} | elapsed time "
        f"per iteration (ms): {1e3 * seconds:.1f} | throughput per GPU (TFLOP/s/GPU): 411.3 | "
        f"learning rate: 3.0E-04 | global batch size: {batch:5d} | lm loss: 9.9E+00 | grad norm: 1.2 |"
    )


def maxtext(step: int, seconds: float, tokens: int = 24576) -> str:
    return (
        f"completed step: {step}, seconds: {seconds:.3f}, TFLOP/s/device: {1500 / seconds:.3f}, "
        f"Tokens/s/device: {tokens / seconds:.3f}, total_weights: 65536, loss: 9.1"
    )


def titan(step: int, rate: float, at: float) -> str:
    """A line in colours, as they are by default."""
    return (
        f"[titan] {date(at)[:-3].replace('.', ',')} - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss:  7.6258  \x1b[38;5;208mgrad_norm: 26.6  \x1b[36mmemory: 66.91GiB(37.51%)  "
        f"\x1b[34mtps: {round(rate):,}  \x1b[36mtflops: 314.71  \x1b[35mmfu: 13.99%\x1b[39m"
    )


SAID = """[titan] 2026-09-01 09:59:20,000 - root - INFO - Building 3-D device mesh with \
['dp_replicate', 'dp_shard', 'tp'], [2, 16, 2]
[titan] 2026-09-01 09:59:30,000 - root - INFO - Applied full activation checkpointing to the model
[titan] 2026-09-01 09:59:59,000 - root - INFO - Trainer is initialized with local batch size 2, \
global batch size 64, gradient accumulation steps 1, sequence length 8192, total steps 1000"""
TOKENS = 2 * 8192 // 2


def read(folder: Path, lines, *names):
    path = folder / "log.txt"
    path.write_text((lines if isinstance(lines, str) else "\n".join(lines)) + "\n")
    return read_run_log(path, *names)


def plain_mean(text: str) -> float:
    """The rival: five lines that take the mean of what every line says."""
    values = [float(one) for one in re.findall(r"\(ms\): ([\d.]+)", text)]
    return float(np.mean(values)) / 1e3


@pytest.mark.skipif(not DATA, reason="RELPARALLEL_DATA names no folder")
def test_public_logs_have_their_right_answers():
    folder = Path(DATA) / "data/public-cases"
    log = read_run_log(folder / "megatron_stdout.log")
    assert (log.batch, log.sequence, log.gpus) == (512, 4096, 64)
    assert log.step_time == pytest.approx(6.0, rel=1e-3)
    assert rp.parallel.notation(log.strategy) == "TP4 PP2 DP8"
    log = read_run_log(folder / "maxtext.log")
    assert (log.step_time, log.tokens) == (pytest.approx(4.1, rel=1e-3), 24576)
    assert read_run_log(folder / "goodput_events.jsonl").training_time_ratio == pytest.approx(
        50 / 540
    )
    for name in ("", "-rank-prefixed"):
        log = read_run_log(folder / f"mlperf-v6.0-deepseek-v3-first5{name}.txt")
        assert log.steps == pytest.approx([20.715, 20.620, 21.179, 20.197, 20.179], abs=1e-3)


def test_megatron_says_how_it_was_split_and_the_first_step_is_no_step(tmp_path):
    lines = [
        megatron(k, 41.25 if k == 1 else 6.0 + 0.01 * (-1) ** k, 6.0 * k + 35) for k in range(1, 12)
    ]
    log = read(tmp_path, [MEGATRON, *lines])
    assert log.step_time == pytest.approx(6.0)
    assert plain_mean("\n".join(lines)) > 1.5 * log.step_time
    assert (log.batch, log.sequence, log.gpus, log.tokens) == (BATCH, SEQUENCE, 64, 32768)
    assert rp.parallel.notation(log.strategy) == "TP4 PP2 DP8 MBS2 ZeRO-1 SP selective"
    assert log.elapsed == pytest.approx(60 + 41.25)
    assert "first steps of a start are not in the step time: 41.25 s" in log.notes
    assert (log.weights.sum(), log.steps.size, log.precision) == (11, 11, None)


def test_dates_before_the_first_step_tell_how_long_the_start_took(tmp_path):
    """They stand behind words, farther than those of the lines of steps."""
    said = "[before the start of training step] datetime: "
    log = read(
        tmp_path, [said + date(0)[:-7], *(megatron(k, 6.0, 70 + 6 * k) for k in range(1, 6))]
    )
    assert log.start_ups == pytest.approx([70.0])
    assert log.elapsed == pytest.approx(100.0)


@settings(max_examples=40, deadline=None)
@given(
    every=st.integers(1, 20),
    lengths=st.lists(st.integers(2, 8), min_size=1, max_size=4),
    back=st.integers(0, 3),
    ranks=st.integers(1, 3),
    dated=st.booleans(),
    rng=st.randoms(use_true_random=False),
)
def test_a_run_that_was_made_is_read_back(
    tmp_path_factory, every, lengths, back, ranks, dated, rng
):
    """Restarts go back to a checkpoint; a line is a mean over some steps; ranks write it in turn."""
    lines, took, time, now, made, repeated = [], [], 0.0, 0, 0, 0
    for length in lengths:
        lines += [f"[rank0]:{line}" for line in MEGATRON.splitlines()]
        now, time = max(now - back * every, 0), time + 300
        for place in range(length):
            seconds = 30.0 if place == 0 else round(rng.uniform(5, 7), 4)
            repeated += max(min(now + every, made) - now, 0)
            now, time = now + every, time + seconds * every
            made = max(made, now)
            took += [] if place == 0 else [seconds]
            lines += [
                f"[rank{rank}]:{megatron(now, seconds, time if dated else None)}"
                for rank in range(ranks)
            ]
    log = read(tmp_path_factory.mktemp("run"), lines)
    assert log.step_time == pytest.approx(np.mean(took), rel=1e-4)
    assert (log.repeated, log.weights.sum()) == (repeated, every * sum(lengths))
    assert log.steps.size == sum(lengths)
    if dated:  # from the end of the last step to the begin of the first
        assert log.elapsed == pytest.approx(time - 300, abs=0.01)
        assert 0 < log.training_time_ratio < 1.001


def test_lines_that_stand_for_many_steps_weigh_as_many(tmp_path):
    """Iterations leap by 1, 9 and 10; the rival takes every line for one step."""
    steps = {1: 40.0, 10: 6.0, 20: 8.0, 30: 8.0}
    text = "\n".join(megatron(k, seconds) for k, seconds in steps.items())
    log = read(tmp_path, text)
    assert log.step_time == pytest.approx((9 * 6 + 20 * 8) / 29)
    assert np.mean([*steps.values()][1:]) != pytest.approx(log.step_time, rel=5e-3)
    assert log.weights.tolist() == [1, 9, 10, 10]
    with pytest.raises(ValueError, match="must be left out unless every step is logged"):
        read_run_log(tmp_path / "log.txt", checkpoint_every=10)


FRONTS = {
    "srun -l": lambda rank, line, k: f"{rank:3d}: {line}",
    "torchrun": lambda rank, line, k: f"[default{rank}]:{line}",
    "mpirun": lambda rank, line, k: f"[1,{rank}]<stdout>:{line}",
    "kubectl": lambda rank, line, k: f"[pod/job-{rank}-x7f/main] {line}",
    "kubectl --timestamps": lambda rank, line, k: f"2026-09-01T10:{k:02d}:00.123456789Z {line}",
    "absl": lambda rank, line, k: (
        f"I0901 10:{k:02d}:55.5{rank}1340 13830{rank} logger.py:226] {line}"
    ),
    "collector": lambda rank, line, k: json.dumps(
        {"textPayload": line, "resource": {"labels": {"pod_name": f"p{rank}"}}, "timestamp": "?"}
    ),
    "docker": lambda rank, line, k: json.dumps({"log": line + "\n", "stream": "stdout"}),
    "colours": lambda rank, line, k: f"\x1b[3{rank}m{line}\x1b[0m",
}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("form", ["megatron", "maxtext"])
def test_ranks_and_what_a_launcher_puts_in_front_change_nothing(tmp_path, front, form):
    line = megatron if form == "megatron" else maxtext
    steps = [line(k, 40.0 if k == 0 else 6.0 + k / 100) for k in range(9)]
    lines = [FRONTS[front](rank, one, k) for k, one in enumerate(steps) for rank in (0, 1)]
    log = read(tmp_path, ["what is no step", *lines, "", "{not json", "\x00"])
    assert log.steps.size == 9
    assert log.step_time == pytest.approx(6.045)
    assert "left out: 9 lines of other ranks, or that stand there twice" in log.notes


def test_bytes_that_are_no_text_refuse_no_log(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"\xff\xfe\x00\n" + "\n".join(map(maxtext, range(5), [9.0] * 5)).encode())
    assert read_run_log(path).step_time == 9.0


def test_an_export_with_the_newest_line_first_is_turned_round(tmp_path):
    lines = [{"textPayload": maxtext(k, 40.0 if k == 0 else 4.0)} for k in range(6)]
    log = read(tmp_path, json.dumps(lines[::-1], indent=2))
    assert (log.step_time, log.repeated, log.counts.tolist()) == (4.0, 0, [*range(6)])


def test_jax_returns_before_the_second_step_has_run(tmp_path):
    """Compiled, sent off, then as it is; whoever leaves out the first one alone is 12 % off."""
    took = [44.923, 0.319, 5.658, 5.402, 5.6, 5.5, 5.55, 5.45]
    log = read(tmp_path, [maxtext(k, seconds, 49152) for k, seconds in enumerate(took)])
    assert log.step_time == pytest.approx(np.mean(took[2:]))
    assert log.tokens == 49152
    sizes = ["Config param global_batch_size_to_train_on: 768", "Num_devices: 64, shape (1, 64)"]
    sizes.append("Config param max_target_length: 2048")
    log = read(tmp_path, [*sizes, *map(maxtext, range(4), took)])
    assert (log.batch, log.gpus, log.sequence, log.tokens) == (768, 64, 2048, 24576)


def titan_lines(
    every: int = 10, validate: float = 0.0, ranks: int = 4, last: int = 60
) -> list[str]:
    lines, time = SAID.splitlines(), 25.0
    for step in range(1, last + 1):
        time += 3.2 * (step > 1)
        if step == 1 or step % every == 0:
            took = 25.0 if step == 1 else 3.2
            lines += [f"[rank{r}]:{titan(step, TOKENS / took + r / 4, time)}" for r in range(ranks)]
        if validate and step == 30:
            time += validate
            told = titan(step, 9000, time).replace("step:", "validate step:")
            lines.append(f"[rank0]:{told}")
    return lines


@pytest.mark.parametrize("validate", [0.0, 45.0])
def test_torchtitan_steps_are_by_dates_and_by_rates_where_something_stood_between(
    tmp_path, validate
):
    lines = titan_lines(validate=validate)
    log = read(tmp_path, lines)
    assert log.step_time == pytest.approx(3.2, rel=1e-3)
    assert (log.batch, log.sequence, log.gpus, log.tokens) == (64, 8192, 64, TOKENS)
    assert rp.parallel.notation(log.strategy) == "TP2 PP1 DP32 MBS2 ZeRO-3/16 full"
    assert log.start_ups == pytest.approx([40.0], abs=0.1)  # what it was before its first step
    assert (log.weights.sum(), log.repeated) == (60, 0)
    assert any("1 lines came late" in note for note in log.notes) == bool(validate)
    bare = read(tmp_path, [line for line in lines if "step:" in line])  # sizes are not said
    assert bare.step_time == pytest.approx(3.2, rel=1e-3)
    assert (bare.strategy, bare.gpus, bare.tokens) == (None, None, pytest.approx(TOKENS, rel=1e-3))
    undated = [line.partition("INFO - ")[2] for line in lines]
    assert read(tmp_path, undated).step_time == pytest.approx(3.2, rel=1e-3)  # by sizes alone


def test_the_newer_line_of_the_mesh_and_the_older_word_for_tokens(tmp_path):
    mesh = (
        "Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=1, tp=4, ep=8"
    )
    schedule = "Using pipeline schedule 1F1B with 8 microbatches and 2 stages."
    said = SAID.splitlines()[2].replace("local batch size 2", "local batch size 8")
    lines = [mesh, schedule, "Applied Tensor Parallelism to the model", said]
    lines += ["Applied selective activation checkpointing to the model"]
    lines += [titan(k, 8192, 2.0 * k).replace("tps:", "wps:") for k in range(1, 7)]
    log = read(tmp_path, lines)
    assert rp.parallel.notation(log.strategy) == "TP4 PP2 DP8 EP8 ZeRO-3/8 SP alternate"
    assert log.step_time == pytest.approx(2.0)


def test_nemo_deepspeed_and_those_who_print_like_megatron(tmp_path):
    nemo = [
        f"Training epoch 0, iteration {k}/99 | lr: 1e-06 | global_batch_size: 128 | global_step: {k} | "
        f"reduced_train_loss: 11.96 | train_step_timing in s: {30 if k == 0 else 6.08} | consumed_samples: 8"
        for k in range(6)
    ]
    bar = [
        f"Epoch 0: :  1%| | {k}/9 [00:50<11:00, v_num=0, global_step={k}.0, consumed_samples=256.0, "
        f"train_step_timing in s={6.08}]"
        for k in range(6)
    ]
    log = read(tmp_path, nemo)
    assert (log.step_time, log.batch, log.source) == (pytest.approx(6.08), 128, "log.txt")
    assert read(tmp_path, "\r".join(bar)).step_time == pytest.approx(6.08)
    both = [f"steps: {k} loss: 5.55 iter time (s): 0.936 samples/sec: 136.7" for k in range(1, 9)]
    assert read(tmp_path, both).step_time == pytest.approx(0.936)
    both += [megatron(k, 1.0) for k in range(1, 9)]
    assert read(tmp_path, both).step_time == 1.0  # Megatron-DeepSpeed prints both
    primus = [megatron(k, 6.0).replace(" | learn", "/7000.0 | learn") for k in range(1, 9)]
    assert read(tmp_path, primus).step_time == 6.0  # the mean so far stands behind


def test_what_is_torn_contradicts_itself_or_ramps_up_is_said(tmp_path):
    lines = [megatron(k, 6.0, batch=256 if k < 5 else BATCH) for k in range(1, 10)]
    lines += [megatron(10, 60.0).partition("000.0 |")[0]]
    log = read(tmp_path, [MEGATRON, MEGATRON.replace("size: 4,", "size: 8,"), *lines])
    assert log.strategy is None
    assert log.steady.tolist() == [False] * 4 + [True] * 5
    told = " ".join(log.notes)
    assert "steps of another batch are not in the step time: 3 lines" in told
    assert "1 torn lines of steps" in told
    assert "as the log says several: tensor ['4', '8']" in told
    odd = MEGATRON.replace("world size: 64", "world size: 63")
    log = read(tmp_path, [odd, *lines])
    assert log.strategy is None
    assert "gpus must be tensor * pipeline" in " ".join(log.notes)
    for number in ("1e999", "9" * 400, "nan", "-6000.0", "0.0"):
        log = read(tmp_path, [*lines, megatron(12, 6.0).replace("6000.0", number)])
        assert log.step_time == 6.0


TABLES = {
    "seconds": ("step,seconds,loss", lambda k: f"{k},{40 if k == 0 else 6.5},1"),
    "milliseconds": ("iteration;ms", lambda k: f"{k};{40000 if k == 0 else 6500}"),
    "ends": ("step\ttime", lambda k: f"{k}\t{1000 + 6.5 * k}"),
    "lengths": ("step,time", lambda k: f"{k},{40 if k == 0 else 6.5}"),
    "dates": ("step,timestamp", lambda k: f"{10 * k},{date(65 * k)}"),
    "TensorBoard": ("Wall time,Step,Value", lambda k: f"{1.7e9 + 6.5 * k},{k},3.5"),
}


@pytest.mark.parametrize("form", TABLES)
def test_a_table_of_ones_own_is_read(tmp_path, form):
    head, row = TABLES[form]
    log = read(tmp_path, [head, *map(row, range(12))])
    assert log.step_time == pytest.approx(6.5, rel=1e-3)


def test_lengths_that_grow_like_times_are_told(tmp_path):
    said = "seconds grows from row to row: times since the start want the head time"
    assert said in read(tmp_path, ["step,seconds", *(f"{k},{6 * k}" for k in range(1, 9))]).notes
    log = read(tmp_path, ["step,time", *(f"{k},{6 * k}" for k in range(1, 9))])
    assert (log.step_time, said in log.notes) == (6.0, False)


def test_a_step_in_which_something_else_was_done_is_told(tmp_path):
    ends = [6 * k + 60 * (k >= 10) for k in range(20)]  # a checkpoint
    log = read(tmp_path, ["step,timestamp", *(f"{k},{date(end)}" for k, end in enumerate(ends))])
    assert log.step_time == pytest.approx(6 + 60 / 19)
    assert any(note.startswith("1 lines are far longer than the median") for note in log.notes)


def test_megatron_deepspeed_writes_seconds(tmp_path):
    lines = [
        megatron(k, 0.02).replace("per iteration (ms): 20.0", f"per iteration (s): {t}")
        for k, t in enumerate(("130.22", "105.00", "104.00", "106.00"))
    ]
    assert read(tmp_path, lines).step_time == pytest.approx(105.0)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["step,time", "1,6.0", "2,6.1", "3,6.2"], "name its column 'time' seconds"),
        (["step,seconds", "1,x"], "seconds must be a time .*got 'x' in row 1 .line 2"),
        (["step,seconds", "1.5,3"], "whole numbers of steps, got step '1.5' in row 1"),
        (["step,seconds", "-1,3"], "whole numbers of steps, got step '-1' in row 1"),
        (["step,seconds"], "at least one row"),
        (["step,loss", "1,3"], "nearest to .* is csv, but it lacks a column seconds or timestamp"),
        (["iter 10: loss 4.1, time 560ms"], "is csv, but it lacks a column step and a column sec"),
        (
            [megatron(1, 6.0)[:90]],
            "nearest to .* is megatron, but it lacks a step and its time .*, line 1 the first",
        ),
        ([titan(k, 100, 0).partition("INFO")[2] for k in (1, 2)], "must tell how long steps take"),
    ],
)
def test_what_is_no_log_of_a_run_is_told_what_it_lacks(tmp_path, lines, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path, lines)


@pytest.mark.parametrize("name", [*TRAINERS, "csv"])
def test_a_named_trainer_of_which_there_is_no_line_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"path must .*got none in"):
        read(tmp_path, "nothing", name)


def test_a_log_teaches_a_plan_or_is_told_what_it_lacks(tmp_path):
    path = tmp_path / "log.txt"
    lines = [megatron(k, 9.0) for k in range(1, 9)]
    read(tmp_path, [MEGATRON, *lines])
    place = {"model": "gpt3-6.7b", "cluster": "a100-80gb-selene"}
    ((run,),) = [one.runs for one in rp.learn(path, **place).lessons]
    assert (run.time, run.global_batch, run.model.sequence) == (9.0, BATCH, SEQUENCE)
    assert run.strategy == rp.parallel.read_strategy("TP4 PP2 DP8 MBS2 ZeRO-1 SP selective")
    other = rp.learn(path, strategy="TP4 PP2 DP8 full", **place)  # one's own word comes first
    assert other.lessons[0].runs[0].strategy.recompute == "full"
    given = {"gpus": 64, "global_batch": 256, "strategies": 1}
    plan = rp.plan(*place.values(), **given, measured=path)
    assert "own runs with own software (1)" in str(plan)
    said = (
        "log.txt: a step of 9 s; first steps of a start are not in the step time: 9 s; split as TP4"
    )
    assert any(note.startswith(said) for note in plan.notes)
    read(tmp_path, lines)
    with pytest.raises(ValueError, match=r"does not say strategy, sequence; learn.path, strategy="):
        rp.learn(path, **place)
    learned = rp.learn(path, strategy="TP4 PP2 DP8", sequence=2048, **place)
    assert learned.lessons[0].runs[0].model.sequence == 2048
    read(tmp_path, [maxtext(k, 4.1) for k in range(5)])
    with pytest.raises(ValueError, match=r"measured must be .* does not say strategy, batch"):
        rp.plan(*place.values(), **given, measured=path)  # its own batch is not that of the run
    path.write_text("neither\n")
    with pytest.raises(ValueError, match=r"runs must be a table of runs or a run log, .*nearest"):
        rp.learn(path, **place)
