from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureLog,
    FailureModel,
    Recovery,
    simulate,
)
from relparallel.training.log_columns import check_records
from relparallel.units import DAY


def table(**columns) -> pd.DataFrame:
    good = {"node": [0, 0, 1], "start": [1.0, 5.0, 2.0], "end": [2.0, 6.0, 3.0]}
    return pd.DataFrame(good | columns)


def test_good_records_come_back_whatever_their_index():
    records = table()
    records.index = pd.Index([7, 7, 7])
    assert check_records(records, nodes=2) is records
    assert len(check_records(table().iloc[:0], nodes=2)) == 0
    # one repair ends, the next begins
    assert len(check_records(table(start=[1.0, 2.0, 2.0]), nodes=2)) == 3


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"start": [1.0, 5.0, "2"]}, "numbers, got row 2"),
        ({"start": pd.to_datetime(["2026-01-01"] * 3)}, "numbers, got row 0"),
        ({"end": pd.to_timedelta([2, 6, 3], unit="s")}, "numbers, got row 0"),
        ({"node": [True, False, True]}, "numbers, got row 0"),
        ({"end": [2.0, np.inf, 3.0]}, "numbers, got row 1"),
        ({"end": [2.0, 6.0, None]}, "numbers, got row 2"),
        ({"start": np.array([1.0, 5.0 + 1j, 2.0])}, "numbers, got row 0"),
        ({"node": pd.array([0, None, 1], dtype="Int64")}, "numbers, got row 1"),
        ({"node": [0, 0, 2]}, "nodes in 0 … 1, got row 2"),
        ({"node": [0, 0.5, 1]}, "nodes in 0 … 1, got row 1"),
        ({"start": [-1.0, 5.0, 2.0]}, "starts >= 0, got row 0"),
        ({"end": [2.0, 4.0, 3.0]}, "an end not before the start, got row 1"),
        ({"end": [5.5, 6.0, 3.0]}, "repairs of a node that do not overlap, got row 1"),
    ],
)
def test_impossible_records_are_refused_with_their_row(columns, said):
    with pytest.raises(ValueError, match=f"records must have {said}"):
        check_records(table(**columns), nodes=2)
    records = table(**columns)
    records.index = pd.Index(["a"] * 3)
    with pytest.raises(
        ValueError, match=f"records must have {said.split(', got')[0]}, got row 'a'"
    ):
        check_records(records, nodes=2)


def test_columns_are_there_once():
    with pytest.raises(ValueError, match="got none called 'end'"):
        check_records(table().drop(columns="end"), nodes=2)
    twice = table().rename(columns={"end": "start"}).assign(end=9.0)
    with pytest.raises(ValueError, match="every column once, got 'start' twice"):
        check_records(twice, nodes=2)


def test_outages_that_overlap_or_take_no_time_are_replayed():
    """Four stops of 30 days: an outage of three days told as two, and three without length."""
    start, end = (
        np.array([[1.0, 3.0], [2.0, 4.0], [10.0, 10.0], [12.0, 12.0], [14.0, 14.0]]).T * DAY
    )
    node = ["a", "a", "b", "b", "c"]
    log = FailureLog(
        node=node, start=start, end=end, cause=["x"] * 5, population=4, overlaps="keep"
    )
    assert "3 outages take no time: they stop a job, and no node is down" in log.notes
    placement = Placement(strategy=Strategy(tensor=8, data=4))
    found = simulate(
        FailureModel(
            classes=(ComponentClass(name="node", level="node", rate=1e-20),),
            cluster=Cluster(nodes=4),
            placement=placement,
            source=replace(log, begin=0.0, finish=30 * DAY).replay(shuffled=False),
        ),
        1.0,
        Checkpointing(
            levels=(CheckpointLevel(name="s", cost=60.0, restart=600.0),), interval=3600.0
        ),
        Recovery("restart", repair=1.0),
        years=60 / 365,
        rng=np.random.default_rng(0),
        horizon=30 * DAY,
        replications=2,
    )
    assert found.buckets["waiting"] * 30 == pytest.approx(3.0, abs=1e-6)
    assert found.buckets["restart"] * 30 * DAY == pytest.approx(4 * 600.0, abs=1e-3)
