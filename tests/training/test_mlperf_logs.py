"""MLPerf logs of all rounds come out as written, whatever counts mean; contradictions are told."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.training import read_run_log

PREFIXES = ("", "0: ", "[0]: ", "[1,0]<stdout>:", "[2026-05-12 18:46:09] ", "(worker pid=71) ")


class Log:
    """Lines as a submitter prints them."""

    def __init__(self, prefix: str = "", batch: int = 64, **sizes: object) -> None:
        self.lines: list[str] = []
        self.prefix, self.now = prefix, 1.7e9
        self.add("init_start")
        for key, value in {"global_batch_size": batch, **sizes}.items():
            self.add(key, value)
        self.now += 100.0
        self.add("init_stop")

    def add(self, key: str, value: object = None, **where: object) -> None:
        event = {"time_ms": round(1e3 * self.now), "key": key, "value": value, "metadata": where}
        self.lines.append(f"{self.prefix}:::MLLOG {json.dumps(event)}")

    def read(self, folder: Path):
        path = folder / "result_0.txt"
        path.write_text("\n".join(["some shell output", *self.lines, ""]))
        return read_run_log(path, "mlperf")


def marks(style: str, before: int, many: int, batch: int) -> tuple[dict, dict, dict]:
    """What block_start, block_stop and eval_start hold in a round, of a block of so many steps."""
    done, long = before * batch, many * batch
    if style == "tokens":  # 3.1 and 4.0
        block = {"first_epoch_num": 8 * done, "epoch_count": 8 * long}
        return block, block, {"epoch_num": 8 * (done + long)}
    if style == "position":  # 4.1 and 5.0
        return (
            {"samples_count": done},
            {"samples_count": done + long},
            {"samples_count": done + long},
        )
    steps = [{"step": before}, {"step": before + many}] if style == "length and steps" else [{}, {}]
    length = {"samples_count": long}  # since 6.0
    return length | steps[0], length | steps[1], {"samples_count": done + long}


@settings(max_examples=60, deadline=None)
@given(
    style=st.sampled_from(["tokens", "position", "length", "length and steps"]),
    blocks=st.lists(st.tuples(st.integers(1, 30), st.floats(0.5, 40)), min_size=1, max_size=6),
    batch=st.sampled_from([8, 64, 15360]),
    prefix=st.sampled_from(PREFIXES),
    own=st.booleans(),
)
def test_steps_are_those_that_were_written_in_every_round(
    tmp_path_factory, style, blocks, batch, prefix, own
):
    log = Log(prefix, batch, **({"max_sequence_length": 8} if style == "tokens" else {}))
    before = 0
    for many, seconds in blocks:
        start, stop, after = marks(style, before, many, batch)
        log.add("block_start", **start)
        for step in range(many):
            log.now += seconds
            if own:
                log.add("tracked_stats", {"train_step_time": seconds}, step=(before + step) * batch)
        log.add("block_stop", **stop)
        log.add("eval_start", **after)
        log.now += 5.0
        log.add("eval_stop", **after)
        before += many
    found = log.read(tmp_path_factory.mktemp("run"))
    assert found.weights.tolist() == [many for many, _ in blocks]
    assert found.steps == pytest.approx([seconds for _, seconds in blocks], abs=1.1e-3)
    assert found.notes == ()


def test_a_log_whose_own_steps_take_another_time_says_so(tmp_path):
    log = Log(batch=8)
    for block in range(3):
        log.add("block_start", samples_count=80 * block)
        log.add("tracked_stats", {"train_step_time": 1.9}, step=80 * block)
        log.add("tracked_stats", {"throughput": 8 / 2.5})
        log.now += 20.0
        log.add("block_stop", samples_count=80 * (block + 1))
    found = log.read(tmp_path)
    assert found.step_time == pytest.approx(2.0)
    assert "+5.3 % of the log's own train_step_time, 1.9 s" in found.notes[0]
    assert "-20.0 % of the log's own throughput, 2.5 s" in found.notes[1]
    assert "5.3 %" in repr(found)


def test_what_other_ranks_write_counts_once(tmp_path):
    log = Log("0: ", batch=8)
    for block in range(3):
        for key, late in (("block_start", 0.0), ("block_stop", 30.0)):
            log.now += late
            for rank in (0, 8):
                log.prefix = f"{rank}: "
                log.add(key, samples_count=80, step=10 * block + 10 * (late > 0))
                log.now += 0.4
    found = log.read(tmp_path)
    assert found.steps == pytest.approx([3.08] * 3)
    assert found.notes == ("left out: 6 lines of other ranks",)


def test_blocks_that_contradict_themselves_are_left_out_and_counted(tmp_path):
    log = Log(batch=8)
    for block, steps in enumerate([10, 10, 4, 10]):
        log.add("block_start", samples_count=80, step=10 * block)
        log.now += 20.0
        log.add("block_stop", samples_count=80, step=10 * block + steps)
    found = log.read(tmp_path)
    assert found.steps.tolist() == [2.0, 2.0, 2.0]
    assert found.notes == ("left out: blocks without counts that agree to 1 %, of lines 9",)


def test_epochs_are_counted_by_the_samples_of_one(tmp_path):
    log = Log(batch=100, train_samples=5000)
    log.add("block_start", first_epoch_num=1, epoch_count=4)
    log.now += 600.0
    log.add("block_stop", first_epoch_num=1)
    assert log.read(tmp_path).steps == pytest.approx([3.0])


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            [
                ("block_start", {"samples_count": 4}),
                ("block_stop", {}),
                ("eval_start", {"samples_count": 8}),
            ],
            "position or length, got \\[4.0\\]",
        ),
        (
            [("block_start", {"samples_count": True}), ("block_stop", {})],
            "line 5 of .*samples_count True",
        ),
        (
            [("block_start", {"samples_count": 0}), ("block_stop", {"step": np.nan})],
            "line 6 of .*step nan",
        ),
        (
            [("block_start", {"first_epoch_num": 1, "epoch_count": 1}), ("block_stop", {})],
            "got 0.125 steps of 8",
        ),
        ([("block_start", {}), ("block_stop", {})], "counts agree, got none"),
    ],
)
def test_counts_that_tell_nothing_are_refused(tmp_path, events, said):
    log = Log(batch=8)
    for key, where in events:
        log.add(key, **where)
        log.now += 10.0
    with pytest.raises(ValueError, match=said):
        log.read(tmp_path)


def test_blocks_that_end_before_they_start_and_seconds_for_milliseconds_are_refused(tmp_path):
    log = Log(batch=8)
    log.add("block_start", samples_count=0)
    log.now -= 5.0
    log.add("block_stop", samples_count=80)
    with pytest.raises(ValueError, match="blocks that end after they start, got line 6 of"):
        log.read(tmp_path)
    log.lines[-1] = log.lines[-1].replace(str(round(1e3 * log.now)), str(round(log.now)))
    with pytest.raises(ValueError, match=r"line 6 of .* counts seconds since 1970"):
        log.read(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"time_ms": True, "key": "a", "value": 1, "metadata": {}}, "MLLOG events, got line 5"),
        ({"time_ms": np.nan, "key": "a", "value": 1, "metadata": {}}, "MLLOG events, got line 5"),
        (
            {"time_ms": 1, "key": "global_batch_size", "value": 16, "metadata": {}},
            "got 16 after 64 in line 5",
        ),
        (
            {"time_ms": 1, "key": "max_sequence_length", "value": 0.5, "metadata": {}},
            "got 0.5 .* in line 5",
        ),
    ],
)
def test_values_that_cannot_be_are_refused_with_their_line(tmp_path, line, said):
    log = Log()
    log.lines.append(":::MLLOG " + json.dumps(line))
    with pytest.raises(ValueError, match=said):
        log.read(tmp_path)
