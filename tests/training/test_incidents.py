"""Observation windows, incidents of several rows, and ends that are not known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Strategy
from relparallel.training import FailureLog, failure_model, read_failure_log
from relparallel.training.observation_window import cost

HEAD = "node,start,end,cause\n"


def read(tmp_path, text, **given):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return read_failure_log(path, **{"population": 9, **given})


def test_the_watch_of_a_table_is_told_or_is_a_guess(tmp_path):
    text = HEAD + "a,2026-03-02T10:00,2026-03-02T14:00,gpu\nb,2026-03-03T10:00,,gpu\n"
    guess = read(tmp_path, text, population=64)
    assert guess.guessed
    assert (guess.begin, guess.finish, guess.span) == (None, None, 86400.0)
    assert "39.5 times or more in one of twenty" in guess.notes[-1]
    told = read(tmp_path, text, population=64, since="2026-01-01", until="2026-04-01")
    assert (told.guessed, told.span) == (False, 90 * 86400.0)
    assert told.rate == pytest.approx(2 / (64 * 90 * 86400.0 - 690 * 3600))  # that nodes are up
    # b is down until the window ends: its repair is censored
    assert told.still.tolist() == [False, True]
    assert told.down_distribution()[1] == pytest.approx((4 + 686) / 24 / 90)
    part = read(tmp_path, text, population=64, since="2026-03-03", until="2026-04-01")
    assert part.node.tolist() == ["b"]
    assert "left out: 1 failures before since= or after until=" in part.notes
    half = read(tmp_path, text, population=64, until="2026-04-01")
    assert (half.begin, half.guessed) == (None, True)
    none = read(tmp_path, HEAD, since=0, until=86400.0)
    assert (none.rate, none.incidents, none.span) == (0.0, 0, 86400.0)
    with pytest.raises(ValueError, match="since= and until= say from when to when"):
        read(tmp_path, HEAD, until=86400.0)
    numbers = HEAD + "a,5,6,x\nb,7,8,x\n"
    assert read(tmp_path, numbers, clock="h", since="3600", until=36000).span == 9 * 3600.0
    with pytest.raises(ValueError, match=r"until must be a number of seconds >= 0 .*, got '2026"):
        read(tmp_path, numbers, until="2026-01-01")


@pytest.mark.parametrize(("failures", "ends"), [(2, 2), (3, 2), (8, 2), (1, 1), (5, 1)])
def test_what_a_guessed_watch_costs_is_what_it_costs_in_simulated_logs(failures, ends):
    rng = np.random.default_rng(failures)
    moments = np.sort(rng.random((20000, failures)), axis=1)
    factor = 1 / (moments[:, -1] - (moments[:, 0] if ends == 2 else 0.0))
    half, rare = (float(x) for x in re.findall(r"([\d.]+) times", cost(failures, ends)))
    assert np.mean(factor > half) == pytest.approx(0.5, abs=0.015)
    assert np.mean(factor > rare) == pytest.approx(0.05, abs=0.006)
    assert cost(1000, ends) == ""


def test_rows_of_an_incident_are_one_failure_and_several_outages(tmp_path):
    rows = {"start": [0.0, 0.0, 5.0, 9.0], "end": [4.0, 3.0, 7.0, np.nan]}
    rows |= {"node": ["a", "b", "a", "c"], "cause": ["rack", "rack", "gpu", "gpu"]}
    events = {"incident": [7, 7, 8, 9], "resumed": [1.0, 1.0, np.nan, 9.5]}
    found = FailureLog(**rows, **events, population=8, begin=0.0, finish=10.0)
    alone = FailureLog(**rows, population=8, begin=0.0, finish=10.0)
    assert (found.incidents, alone.incidents) == (3, 4)
    assert found.rate == pytest.approx(3 / 70)  # of 80, nodes are down for 10
    assert found.outage_rate == alone.rate == pytest.approx(4 / 70)
    assert sorted(found.repairs.tolist()[:3]) == [2.0, 3.0, 4.0]  # of nodes: no time of the job
    assert "3 failures of 8 nodes in 0.0001157 days" in repr(found)
    assert "they took 4 nodes" in repr(found)
    table = found.to_frame().set_index("cause")
    assert table["failures"].to_dict() == {"gpu": 2, "rack": 1}
    racks = {one.name: one for one in found.classes(Cluster(nodes=8, nodes_per_rack=2))}
    assert racks["rack"].rate * 4 == pytest.approx(8 / 70)
    assert found.select("gpu").incident.tolist() == [8, 9]
    assert found.select("gpu").resumed[1] == 9.5
    assert found.shared_events(window=1.0).sizes == pytest.approx((2 / 3, 1 / 3))
    # one event, however far its nodes are apart
    apart = replace(found, start=np.array([0.0, 3.0, 5.0, 9.0]), resumed=None)
    assert apart.shared_events(window=1.0).sizes == pytest.approx((2 / 3, 1 / 3))
    assert found.down_distribution().tolist() == alone.down_distribution().tolist()
    merged = replace(found, node=np.array(["a", "b", "b", "c"]), start=found.start - 0,
                     end=np.array([4.0, 6.0, 7.0, np.nan]), overlaps="merge")  # fmt: skip
    assert merged.incident.tolist() == [7, 7, 9]
    text = "node,start,end,cause,resumed,incident\na,0,4,rack,1,r1\nb,0,3,rack,,r1\nc,5,7,gpu,,\nd,6,7,x,,\n"
    read_ = read(tmp_path, text)
    assert (read_.incidents, np.nanmax(read_.resumed)) == (3, 1.0)


def test_an_end_that_is_not_known_is_censored_only_where_the_node_is_still_down():
    rows = {"node": ["a", "b", "a"], "start": [0.0, 2.0, 6.0], "cause": ["x"] * 3}
    window = {"population": 4, "begin": 0.0, "finish": 10.0}
    ends = [3.0, np.nan, np.nan]
    usual = FailureLog(**rows, end=ends, **window)
    assert usual.still.tolist() == [False, True, True]
    known = FailureLog(**rows, end=ends, still=[False, False, True], **window)
    # of Kaplan and Meier, beyond the last one as much again as 15 s for one that ended
    assert usual.repair_of("x") == pytest.approx(3 + 2 / 3 * (8 - 3) + 2 / 3 * 15)
    assert known.repair_of("x") == pytest.approx(3 + 1 / 2 * (4 - 3) + 1 / 2 * 7)
    assert FailureLog(**rows, end=[np.nan] * 3, **window).still.tolist() == [False] * 3
    for wrong, said in (
        (
            {"still": [True, False, False]},
            "still must be of a row whose end is not known, got end 3",
        ),
        ({"still": [1, 0, 0]}, "still must be a column of True and False"),
        ({"incident": [0.5, 1, 2]}, "incident must be a list of integers"),
        ({"incident": [1, 2]}, "incident must have as many rows as node, 3, got 2"),
        ({"resumed": [-1.0, 3.0, 7.0]}, "resumed must not lie before start, got start 0 s and"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            FailureLog(**rows, end=ends, **window, **wrong)
    nothing = {name: [] for name in ("node", "start", "end", "cause")} | {"population": 9}
    with pytest.raises(ValueError, match="node must have a row, got none: begin= and finish= say"):
        FailureLog(**nothing)
    none = FailureLog(**nothing, begin=0.0, finish=5.0)
    assert (none.rate, none.gaps().tolist(), none.censored) == (0.0, [], 5.0)
    (unseen,) = none.classes()
    assert (unseen.level, unseen.rate) == ("node", pytest.approx(0.5 / 45))  # of those that may be


def test_rows_of_one_cause_and_moment_that_takes_several_nodes_are_one_failure(tmp_path):
    rack = [f"n{k},2026-03-02T10:15:00,2026-03-02T14:15:00,power" for k in range(16)]
    text = HEAD + "\n".join([*rack, "n3,2026-03-05T08:00:00,2026-03-05T09:00:00,gpu"]) + "\n"
    window = {"since": "2026-03-01", "until": "2026-03-31", "population": 64}
    found = read(tmp_path, text, **window)
    assert (found.incidents, len(found.node)) == (2, 17)
    assert "15 rows are of an event of another row: one cause" in " ".join(found.notes)
    assert found.shared_events().sizes[15] == 0.5
    # of a part of a node, or dated to the hour alone, they are as many failures
    assert read(tmp_path, text, levels={"power": "node"}, **window).incidents == 17
    hours = read(tmp_path, text.replace("10:15", "10:00"), **window)
    assert hours.incidents == 17
    assert "15 rows have the cause of another row and its time in whole hours" in str(hours.notes)


def test_beside_shared_events_every_outage_of_an_incident_counts(tmp_path):
    """As many nodes fail as in the log, whatever fails at once; the job as a whole fails once."""
    rows = {"start": [5.0] * 8 + [50.0, 60.0, 60.0], "cause": ["power"] * 8 + ["gpu", "job", "job"]}
    rows |= {"end": [9.0] * 8 + [55.0, 60.0, 60.0], "node": [*"abcdefgh", "a", "a", "b"]}
    events = {"incident": [0] * 8 + [1, 2, 2]}
    found = FailureLog(**rows, **events, population=32, begin=0.0, finish=1e6)
    place, split = Cluster(nodes=32, nodes_per_rack=4), Strategy(data=256)
    alone = failure_model(place, split, rates=found)
    assert {one.name: one.level for one in alone.classes} == {
        "power": "rack",
        "gpu": "gpu",
        "job": "job",
    }
    assert alone.mtbf == pytest.approx(1e6 / 3, rel=1e-3)
    shared = failure_model(place, split, rates=found, source=found.shared_events(window=1.0))
    assert shared.node_rate == pytest.approx(9 / (32 * 1e6), rel=1e-3)
    assert shared.job_rate == pytest.approx(1e-6, rel=1e-3)


def test_starts_that_a_node_repeats_are_one_failure_where_no_end_is_told(tmp_path):
    repeated = [
        f"n1,2026-03-02T{10 + k // 40}:{k * 90 // 60 % 60:02}:{k * 90 % 60:02},xid 95"
        for k in range(200)
    ]
    rack = [f"t{k},2026-03-20T00:00:07,xid 149" for k in range(16)]
    text = "node,start,cause\n" + "\n".join([*repeated, *rack]) + "\n"
    window = {"since": "2026-03-01", "until": "2026-03-31", "population": 64}
    found = read(tmp_path, text, **window)
    assert (found.incidents, len(found.node)) == (2, 17)
    assert found.level_of() == {"xid 95": "gpu", "xid 149 on several nodes": "nvlink"}
    assert read(tmp_path, text, silence=60, **window).incidents == 201
    with pytest.raises(ValueError, match="silence must be left out where a table tells ends"):
        read(tmp_path, HEAD + "a,1,2,x\n", silence=60)
