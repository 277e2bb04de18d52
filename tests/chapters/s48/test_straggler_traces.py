"""Replayed traces: published slowdowns come out; a synthetic run is taken apart as it was made."""

from pathlib import Path

import numpy as np
import pytest

from chapters.s48.straggler_traces import read_straggler_trace
from public_data import DATA, needs_data

HEAD = "dp_rank,stage,step,optype,start_ts,duration,seq_id"


def published(name: str):
    return read_straggler_trace(DATA / f"straggler-analysis/trace-{name}.csv.xz")


@needs_data
def test_the_published_slowdowns_of_the_long_last_stage_come_out():
    """Rows STRAG-ST-01 to -04 and -08 of the authors' analysis; launch delays count 0.1 % apart."""
    trace = published("ST")
    assert trace.step_time == pytest.approx(2.21445, rel=1e-5)
    assert trace.without_delays == pytest.approx(2.1727, rel=2e-3)
    assert trace.slowdown == pytest.approx(1.1787, rel=1e-3)
    assert trace.what_if("stage").to_numpy() == pytest.approx(
        [0.99805, 0.98306, 0.98249, 1.23226], abs=0.01
    )


@needs_data
@pytest.mark.slow
def test_the_published_slowdown_of_the_slow_worker_comes_out():
    """Rows STRAG-AR-01, -03 and -04."""
    trace = published("AR")
    assert trace.step_time == pytest.approx(46.6492, rel=1e-5)
    assert trace.slowdown == pytest.approx(1.97305, rel=2e-3)


def made(folder: Path, slow: float, steps: int = 3) -> Path:
    """Two replicas of one stage that compute and sum gradients; the second computes slower."""
    rows = []
    for step in range(steps):
        begin = 100.0 * step
        for rank, time in ((0, 1.0), (1, slow)):
            rows.append(f"{rank},0,{step},forward-compute,{begin},{time},0")
            rows.append(
                f"{rank},0,{step},grads-reduce-scatter,{begin + time},{slow + 0.5 - time},0"
            )
    path = folder / "trace.csv"
    path.write_text("\n".join([HEAD, *rows]))
    return path


@pytest.mark.parametrize("slow", [1.0, 1.5, 3.0])
def test_a_slow_replica_costs_what_it_is_slower_than_the_mean(tmp_path, slow):
    trace = read_straggler_trace(made(tmp_path, slow))
    assert trace.step_time == pytest.approx(slow + 0.5)
    assert trace.without_delays == pytest.approx(slow + 0.5)
    assert trace.ideal == pytest.approx((1 + slow) / 2 + 0.5)
    only = trace.what_if("dp_rank")
    assert only[1] == pytest.approx(trace.slowdown)
    assert only[0] == pytest.approx(1.0)
    assert np.isclose(trace.what_if("kind")["forward-compute"], trace.slowdown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0,0,0,foo,0,1,0\n", "must hold operations of"),
        ("0,0,0,gc,0,1,0\n0,0,0,gc,2,1,0\n", "must hold every operation once"),
    ],
)
def test_operations_that_nobody_knows_or_twice_are_refused(tmp_path, text, said):
    path = tmp_path / "trace.csv"
    path.write_text(f"{HEAD}\n{text}")
    with pytest.raises(ValueError, match=said):
        read_straggler_trace(path)
