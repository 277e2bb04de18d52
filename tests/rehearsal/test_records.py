"""What is counted in a log, and the recorded tables; none of it needs PyTorch."""

import numpy as np
import pandas as pd
import pytest

from relparallel.parallel import simulate_schedule
from relparallel.published import data_folder
from relparallel.rehearsal.job import Chaos, Log
from relparallel.rehearsal.node import Run
from relparallel.rehearsal.pipelines import PASS, SCHEDULES, SIZES, STAGES, compared
from relparallel.rehearsal.predictions import inputs, measured, predicted, replayed, spread
from relparallel.rehearsal.recording import CELL, beside, runs_of

GIVEN = {"nodes_per_replica": 4, "repair": 3.0, "seed": 1, "seconds": 12.0, "step": 0.9}
RESTART, ELASTIC = Run(policy="restart", **GIVEN), Run(policy="elastic", **GIVEN)
COSTS = {"step": 0.3, "checkpoint": 0.1, "restart": 1.5, "pause": 0.0, "lag": 0.0}


def steps(*done: tuple[float, int, int]) -> list[tuple[float, int, int, float]]:
    return [(*step, 0.0) for step in done]


def restarted() -> Log:
    """Six steps of a second, checkpoint after the fourth; killed at 6.8 s, back at 8, goes on at 9.5 s."""
    log = Log(began=[(0.0, 1, 0), (9.5, 2, 4)], saves=[(4.2, 0.2)], waits=[(6.8, 8.0)])
    log.steps = steps(
        *((n + (0.2 if n > 4 else 0), n, 3) for n in range(1, 7)), (10.5, 5, 3), (11.5, 6, 3)
    )
    log.kills = [(2, 6.8, 8.0, True)]
    return log


def test_steps_that_are_done_again_count_once():
    found = measured(RESTART, restarted())
    assert found["step"] == pytest.approx(1.0)
    assert found["measured"] == pytest.approx(6 / 12)
    blocks = [found[f"block_{place}"] for place in range(6)]
    # of 2 s each: step 2 ends where the second begins, steps 5 and 6 count where they are done again
    assert np.multiply(blocks, 2 / 48) == pytest.approx([1, 2, 1, 0, 0, 2])
    assert found["rate"] == pytest.approx(6 * 48 / 12)


def test_a_restart_is_counted_from_the_moment_when_enough_nodes_are_there():
    expected = {"step": 1.0, "checkpoint": 0.2, "restart": 1.5, "pause": 0.0, "lag": 0.0}
    assert inputs([RESTART], [restarted()]) == pytest.approx(expected)


def test_a_pause_holds_what_a_failure_costs_at_the_loss_and_at_the_return():
    log = Log(began=[(0.0, 1, 0), (2.6, 2, 2), (5.9, 3, 5)], joins=[1.4], saves=[(9.0, 0.1)])
    log.steps = steps(
        *((n, n, 3) for n in (1, 2)),
        *((n + 0.6, n, 2) for n in (3, 4, 5)),
        (6.9, 6, 3),
        (7.9, 7, 3),
    )
    log.kills = [(2, 2.1, 4.5, True), (1, 2.5, 9.0, False)]
    found = inputs([ELASTIC], [log])
    assert found["pause"] == pytest.approx(0.6 + 0.3)
    assert found["lag"] == 1.4
    assert measured(ELASTIC, log)["measured"] == pytest.approx((2 + 3 * 2 / 3 + 2) / 12)


def test_every_policy_meets_the_same_lives_and_repairs():
    one, other = Chaos.of(RESTART), Chaos.of(ELASTIC)
    assert one.left == other.left
    one.age(3, 10.0)
    assert one.due[3] == 10.0 + other.left[3]
    one.rest(3, 12.0)  # it waits: what is left of its life is kept
    assert one.left[3] == pytest.approx(other.left[3] - 2)
    one.age(3, 50.0)
    other.age(3, 0.0)
    assert one.strike(3) == other.strike(3)


def test_predictions_lie_in_their_range_and_failures_that_were_replayed_cost_what_they_must():
    run = Run(policy="restart", **GIVEN | {"seconds": 240.0})
    found = predicted(run, COSTS) | spread(run, [COSTS])
    assert found["low"] < found["predicted"] < found["high"]
    assert found["expected"] == pytest.approx(found["predicted"], abs=0.02)
    unsure = spread(run, [COSTS | {"restart": 0.1}, COSTS | {"restart": 4.0}])
    assert unsure["high"] - unsure["low"] > found["high"] - found["low"], "repeats differ"
    assert found["predicted_rate"] == pytest.approx(found["predicted"] * 48 / 0.3)
    kept = (0.3 * 4) / (0.3 * 4 + 0.1)  # beside checkpoints
    calm = pd.DataFrame({"node": [0], "start": [239.99], "end": [240.5]})
    assert replayed(run, COSTS, calm) == pytest.approx(kept, abs=0.005)
    once = pd.DataFrame({"node": [0], "start": [100.0], "end": [120.0]})
    assert replayed(run, COSTS, once) == pytest.approx(
        kept * (1 - (20 + 1.5 + 0.6) / 240), abs=0.004
    )


def test_two_numbers_of_1f1b_are_found_again():
    rows = []
    for name, (own, chunks) in SCHEDULES.items():
        seconds = chunks * (PASS + 5e-4)
        for size in SIZES:
            given = {"forward": seconds, "backward": 2 * seconds, "communication": 2e-3}
            makespan = simulate_schedule(own, STAGES, size, chunks, **given).makespan
            rows.append({"schedule": name, "micro_batches": size, "makespan": makespan})
    found = compared(pd.DataFrame(rows))
    assert found["error"].abs().max() < 1e-4
    assert found["per_pass"][0] == pytest.approx(5e-4, rel=0.05)
    assert found["per_message"][0] == pytest.approx(2e-3, rel=0.05)


@pytest.mark.parametrize("part", ["recoveries", "torchft"])
def test_every_recorded_run_has_a_date_a_load_and_its_failures(part):
    folder = data_folder() / "rehearsals" / part
    runs, shown = pd.read_csv(folder / "runs.csv"), beside(folder)
    assert len(shown) == len(runs)
    assert runs[["date", "load", "steady"]].notna().all(axis=None)
    assert (pd.read_csv(folder / "predictions.csv")["date"].max() <= runs["date"]).all()
    assert len(pd.read_csv(folder / "kills.csv")) == runs["kills"].sum()


@pytest.mark.parametrize("part", ["recoveries", "torchft"])
def test_recorded_predictions_are_what_the_closed_form_gave(part):
    stored = pd.read_csv(data_folder() / "rehearsals" / part / "predictions.csv")
    jobs = {tuple(getattr(run, name) for name in CELL): run for run in runs_of(1, 240.0)}
    for row in stored.to_dict("records"):
        known = {name: row[name] for name in COSTS}
        run = jobs[tuple(row[name] for name in CELL)]
        assert predicted(run, known)["predicted"] == pytest.approx(row["predicted"], abs=1e-4)


def test_the_lag_is_lost_beside_the_repair():
    """A node of twelve is away for the repair and the lag, which is all that an elastic job loses."""
    run = Run(policy="elastic", **GIVEN | {"nodes_per_replica": 1, "seconds": 240.0})
    kills = pd.DataFrame({"node": [3], "start": [60.0], "end": [84.0]})
    for lag in (0.0, 12.0):
        known = COSTS | {"checkpoint": 0.0, "lag": lag}
        lost = 1 - replayed(run, known, kills)
        assert lost == pytest.approx((24 + lag) / (12 * 240), rel=1e-3)


def test_nodes_in_a_row_are_a_replica_when_failures_are_replayed():
    """Two of a replica cost a third of the speed, two of different ones two thirds."""
    run = Run(policy="elastic", **GIVEN | {"seconds": 240.0})
    known = COSTS | {"checkpoint": 0.0}
    for nodes, replicas in (((0, 1), 1), ((3, 4), 2)):
        kills = pd.DataFrame({"node": nodes, "start": [60.0, 60.05], "end": [84.0, 84.05]})
        lost = 1 - replayed(run, known, kills)
        assert lost == pytest.approx(replicas * 24 / (3 * 240), rel=0.01)


def test_one_copy_of_the_state_goes_back_to_the_checkpoint():
    """Half an interval and a restart more than with two, in the prediction and on recorded failures."""
    given = GIVEN | {"nodes_per_replica": 2, "seconds": 240.0}
    one, two = (Run(policy="elastic", copies=copies, **given) for copies in (1, 2))
    known = COSTS | {"checkpoint": 0.0, "restart": 0.0}
    kills = pd.DataFrame({"node": [1], "start": [61.0], "end": [81.0]})
    lost = replayed(two, known, kills) - replayed(one, known, kills)
    assert 0 < lost <= one.every * known["step"] / 240
    known |= {"restart": 6.0}
    further = replayed(two, known, kills) - replayed(one, known, kills)
    assert further - lost == pytest.approx(5 / 6 * 6.0 / 240, rel=0.1)  # five replicas would train
    assert predicted(two, known)["predicted"] - predicted(one, known)["predicted"] > 0.3


def test_jobs_under_torchft_met_the_failures_that_all_backends_meet():
    """The first life and repair of each node are those drawn for the seed."""
    late = 0.5  # s that a controller can be on a busy machine; lives differ by minutes
    kills = pd.read_csv(data_folder() / "rehearsals" / "torchft" / "kills.csv")
    assert (kills["backend"] == "torchft").all()
    single = [run for run in runs_of(1, 240.0, "torchft") if run.nodes_per_replica == 1]
    assert {(run.policy, run.spares, run.repair) for run in single} == {
        ("elastic", 0, 3.0),
        ("elastic", 0, 40.0),
    }
    for run in single:
        chaos = Chaos.of(run)
        own = kills[(kills["seed"] == 1) & (kills["nodes_per_replica"] == 1)]
        for node, rows in own[own["repair"] == run.repair].groupby("node"):
            first = rows.iloc[0]
            assert first["start"] == pytest.approx(chaos.left[int(node)], abs=late)
            length = next(chaos.repairs[int(node)])
            assert first["end"] - first["start"] == pytest.approx(length, abs=0.1)
