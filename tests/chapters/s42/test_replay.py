import numpy as np
import pytest

from chapters.s42.replay import (
    SpotTrace,
    best_replay,
    read_spot_trace,
    replay_gaps,
    replay_sizes,
)
from pace import pace
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureLog,
    FailureModel,
    JobShape,
    Recovery,
    effective_training_time_ratio,
    simulate,
)
from relparallel.training.failure_sources import Replay
from relparallel.units import YEAR


def walked(gap, interval, checkpoint, restart):
    """Saved work of one gap, segment by segment."""
    now, saved = min(restart, gap), 0.0
    while now + interval + checkpoint <= gap + 1e-9:
        now, saved = now + interval + checkpoint, saved + interval
    return saved


def test_shares_equal_a_walk_through_the_trace():
    rng = np.random.default_rng(0)
    for _ in range(100):
        gaps, (w, c, r) = (
            rng.integers(1, 4000, 30).astype(float),
            rng.integers(1, 700, 3).astype(float),
        )
        found = replay_gaps(gaps, w, c, r)
        assert found.productive == pytest.approx(
            sum(walked(g, w, c, r) for g in gaps) / gaps.sum(), abs=1e-12
        )
        assert found.restart == pytest.approx(np.minimum(gaps, r).sum() / gaps.sum())
        whole = found.productive + found.checkpoint + found.lost + found.restart
        assert whole == pytest.approx(1, abs=1e-12)


def test_exponential_gaps_give_the_exact_formula():
    gaps = 1e4 * np.random.default_rng(1).standard_exponential(400_000)
    found = replay_gaps(gaps, 1500.0, 60.0, 600.0).productive
    exact = effective_training_time_ratio(1e4, 1500.0, 60.0, 600.0)
    assert found == pytest.approx(exact.mean, abs=3 * exact.std(gaps.sum()))


def test_shares_equal_the_simulation_of_the_same_record():
    """Up to the ends: its first gap has no restart, and its last work is not undone."""
    gaps = 1e4 * np.random.default_rng(0).weibull(0.7, 600) + 1
    start = np.cumsum(gaps)
    node = [f"n{number % 64:02d}" for number in range(600)]
    log = FailureLog(node=node, start=start, end=start + 1e-3, cause=["x"] * 600, population=64)
    rare = ComponentClass(name="node", level="node", rate=1e-20)
    placement = Placement(strategy=Strategy(tensor=8, pipeline=4, data=16))
    replay = Replay(records=log.records(), nodes=64, span=2 * start[-1], shuffled=False)
    cluster = Cluster(nodes=64)
    model = FailureModel(classes=(rare,), cluster=cluster, placement=placement, source=replay)
    storage = Checkpointing(
        levels=(CheckpointLevel(name="s", cost=60.0, restart=600.0),), interval=1500.0
    )
    report = simulate(
        model,
        1.0,
        storage,
        Recovery("spares", 1.0),
        years=2.000001 * start[-1] / YEAR,
        rng=np.random.default_rng(0),
        horizon=start[-1],
        replications=2,
    )
    found = replay_gaps(gaps, 1500.0, 60.0, 600.0)
    for name in ("productive", "checkpoint", "lost", "restart"):
        assert report.buckets[name] == pytest.approx(getattr(found, name), abs=1500.0 / start[-1])


def test_hindsight_is_the_best_of_all_intervals():
    """An interval counts just below the moments when a gap loses a segment: all are tried."""
    rng = np.random.default_rng(2)
    for _ in range(pace(12, 40)):
        gaps, (c, r) = 3000 * rng.standard_exponential(6) + 500, rng.uniform(20, 200, 2)
        tried = [(g - r) / k - c for g in gaps for k in range(1, 1 + int((g - r) / c))]
        every = [replay_gaps(gaps, w * (1 - 1e-12), c, r).productive for w in tried if w > 1e-6]
        grid = [replay_gaps(gaps, w, c, r).productive for w in np.linspace(1, gaps.max(), 300)]
        best = best_replay(gaps, c, r)
        assert best.productive == pytest.approx(max(every), abs=1e-12)
        assert best.productive >= max(grid) - 1e-12
        assert replay_gaps(gaps, best.interval, c, r) == best


def test_what_cannot_be_replayed_is_refused():
    with pytest.raises(ValueError, match="gaps must be a number >= 1e-09"):
        replay_gaps([10.0, 0.0], 5.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="gaps must hold one longer than restart"):
        best_replay([10.0], 6.0, 5.0)


def test_sizes_are_counted_as_steps():
    trace = SpotTrace(time=np.array([0.0, 0, 10, 10, 30, 40]), size=np.array([0, 8, 7, 5, 6, 6]))
    assert (trace.preemptions, trace.nodes_lost, trace.mean_size) == (2, 3, (80 + 100 + 60) / 40)


@pytest.mark.parametrize("text", ["0,1\n5,1\n4,1\n", "0,1\n5,1.5\n", "0,1\n5,-1\n"])
def test_times_that_fall_and_nodes_in_parts_are_refused(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(
        ValueError, match="must hold times that never fall and whole numbers of nodes"
    ):
        read_spot_trace(path)


def second_by_second(trace, nodes, speed, pause):
    """Throughput of whole seconds, one after the other."""
    done, left, before = 0.0, 0.0, None
    for now in range(int(trace.time[0]), int(trace.time[-1])):
        size = min(int(trace.size[np.searchsorted(trace.time, now, side="right") - 1]), nodes)
        left = pause if before not in (None, size) else max(0.0, left - 1)
        before = size
        done += 0.0 if left > 0 else speed[nodes - size] if nodes - size < len(speed) else 0.0
    return done / (trace.time[-1] - trace.time[0])


def test_policies_on_a_trace_equal_a_walk_by_the_second():
    rng = np.random.default_rng(6)
    time = np.concatenate([[0], np.cumsum(rng.integers(0, 60, 50))]).astype(float)
    trace = SpotTrace(time=time, size=rng.integers(0, 15, 51))
    shape = JobShape(nodes=12, gpus_per_node=1, replicas=3, stages=4, tensor=1, nodes_per_replica=4)
    speeds = {
        p: Recovery(p, repair=1.0).speed(shape, 12) for p in ("restart", "elastic", "regroup")
    }
    pause = {"restart": 20.0, "elastic": 3.0, "regroup": 3.0}
    table = replay_sizes(trace, 12, speeds, pause).set_index("policy")
    for name, speed in speeds.items():
        assert table.loc[name, "throughput"] == pytest.approx(
            second_by_second(trace, 12, speed, pause[name]), abs=1e-12
        )
    assert table["throughput"].is_monotonic_increasing
    with pytest.raises(ValueError, match="pause must name policies of speeds, got 'other'"):
        replay_sizes(trace, 12, speeds, {"other": 1.0})
