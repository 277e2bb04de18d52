import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relparallel.hardware import Cluster, cluster
from relparallel.training import FailureLog, read_failure_log
from relparallel.training.failure_readers import read_lanl

HEAD = "node,start,end,cause\n"


def log(start, end, node=None, **given):
    node = ["n"] * len(start) if node is None else node
    return FailureLog(
        node=node, start=start, end=end, cause=["c"] * len(start), population=9, **given
    )


def read(tmp_path, text, **given):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return read_failure_log(path, **{"population": 9, **given})


def test_rows_come_in_order_of_time_whatever_their_order_in_the_file(tmp_path):
    found = read(tmp_path, HEAD + "b,50,60,nic\na,0,10,gpu\nb,20,21,gpu\n", clock="h")
    assert found.start.tolist() == [0.0, 72e3, 180e3]
    assert found.node.tolist() == ["a", "b", "b"]
    assert found.cause.tolist() == ["gpu", "gpu", "nic"]
    assert found.repairs.tolist() == [36e3, 3600.0, 36e3]
    assert found.records().to_numpy().tolist() == [
        [0, 0, 36e3],
        [1, 72e3, 75.6e3],
        [1, 180e3, 216e3],
    ]
    assert found.select("gpu").gaps().tolist() == [72e3]
    assert found.to_frame()["failures"].tolist() == [2, 1]


def test_dates_of_several_zones_are_moments_and_dates_without_a_zone_are_not_mixed_in(tmp_path):
    text = (
        HEAD
        + "a,2022-05-07T20:14:00+08:00,2022-05-07T13:44:59Z,x\nb,2022-05-08T00:00Z,2022-05-08T00-01,x\n"
    )
    found = read(tmp_path, text, clock="iso")
    assert found.start.tolist() == [0.0, 42360.0]
    assert found.repairs.tolist() == [5459.0, 3600.0]
    for bare in ("2022-05-09", "2022-05-09T01:00:00", "2022-05-09 01:00"):
        with pytest.raises(
            ValueError, match=f"end must give a time zone as other rows do, got '{bare}' in row 2"
        ):
            read(tmp_path, text.replace("2022-05-08T00-01", bare), clock="iso")
    local = HEAD + "a,2022-05-07,2022-05-08,x\nb,2022-05-08 01:00,2022-05-08T02:00,x\n"
    assert read(tmp_path, local, clock="iso").repairs.tolist() == [86400.0, 3600.0]
    with pytest.raises(
        ValueError, match=r"start must be a time \(%d.%m.%Y\), got '2022-05-07T.* in row 1"
    ):
        read(tmp_path, text, clock="%d.%m.%Y")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a,5,4,x\n",
            r"end must not lie before start, got start 5 s and end 4 s in row 1 \(node a\)",
        ),
        (
            "a,1,2,x\nb,3,4,x\na,1.5,5,x\nb,3.5,9,x\n",
            r"got 1.5 s in row 3 \(node a\), and 1 more such rows",
        ),
        ("a,1,2,x\nb,-3,4,x\n", "start must hold times >= 0, got -3 s in row 2"),
        ("a,1,2,x\nb,soon,4,x\n", r"start must be a time \(s\), got 'soon' in row 2"),
        ("a,,1,x\n", r"start must be a time \(s\), got '' in row 1 \(line 2 of .*log.csv\)"),
        ("a,1,nan,x\n", r"end must be a time \(s\), got 'nan' in row 1 .*; an empty field says"),
        ("a,3/2/2026 10:15,,x\n", r"got '3/2/2026 10:15' in row 1 .*'%d.%m.%Y %H:%M' others"),
        ("a,2026-03-02,,x\nb,1772446502,,x\n", "got '1772446502' in row 2 .* reads dates such as"),
        ("a,1,true,x\n", r"end must be a time \(s\), got 'true' in row 1 \(line 2 of"),
        ("", "path must hold a failure or two moments, got 0 failures"),
        ("a,1,2,x,7\nb,3,4,x,7\n", "path must have 4 fields in every row, got 5 in row 1"),
        ("a,1,2,x\nb,3,4\n", "path must have 4 fields in every row, got 3 in row 2"),
        ('a,1,2,x\nb,"3,5","4,5",x\n', r"start must be a time \(s\), got '3,5' in row 2"),
        ("a,1,2,x\nb,3,inf,x\n", r"end must be a time \(s\), got 'inf' in row 2"),
        ("a,1,2,x\n ,3,4,x\n", "node must have a name in every row, got '' in row 2"),
        ("a,1,4,x\na ,3,5,x\n", r"got 3 s in row 2 \(node a\)"),
        ("a,1,1,x\na,1,1,x\n", r"got 1 s in row 2 \(node a\)"),
        ('a,1,2,"x\n', "path must name a CSV file in UTF-8"),
    ],
)
def test_impossible_records_are_refused_with_their_row(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path, HEAD + text)


def test_numbers_without_a_unit_are_told_to_be_seconds(tmp_path):
    text, said = HEAD + "a,10.5,14.5,x\nb,600,602,x\n", "times are taken as seconds"
    assert any(note.startswith(said) for note in read(tmp_path, text).notes)
    for options in ({"clock": "h"}, {"clock": "s"}):
        assert not any(said in note for note in read(tmp_path, text, **options).notes)


def test_columns_are_named_or_refused(tmp_path):
    with pytest.raises(ValueError, match="csv, but it lacks the columns node, start in its head"):
        read(tmp_path, "hostname,failure_time\na,1\n")
    with pytest.raises(
        ValueError, match="lacks the columns node in its head 'host,start,end,cause': node= and"
    ):
        read(tmp_path, HEAD.replace("node", "host") + "a,1,2,x\n")
    text = "node,start,end,cause,rack\na,1,2,x,r1\n"
    with pytest.raises(
        ValueError, match="ignore must name every column that is not used, got 'rack'"
    ):
        read(tmp_path, text)
    assert read(tmp_path, text, ignore=["rack"]).node.tolist() == ["a"]
    with pytest.raises(ValueError, match="path must name every column once, got 'rack' twice"):
        read(tmp_path, "node,start,end,cause,rack,rack\na,1,2,x,r1,r2\n", ignore=["rack"])
    with pytest.raises(ValueError, match="end must be a column of its own, got 'start' again"):
        read(tmp_path, text, end="start", ignore=["rack", "end"])
    with pytest.raises(ValueError, match="path must hold at least one row"):
        read(tmp_path, "\n", dialect="csv")
    with pytest.raises(ValueError, match="node must be one of host, start, end, cause, got 'node'"):
        read(tmp_path, HEAD.replace("node", "host") + "a,1,2,x\n", dialect="csv")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.bz2", "csv.xz"])
def test_compressed_files_and_numbers_with_separators_are_read_as_they_are(tmp_path, suffix):
    table = pd.DataFrame(
        {"node": ["a", "b"], "start": ["1,234.5", "1.5e4"], "end": ["2,000", "2e4"]}
    )
    table.assign(cause=["gpu", ""]).to_csv(
        tmp_path / f"log.{suffix}", index=False, encoding="utf-8-sig"
    )
    found = read_failure_log(tmp_path / f"log.{suffix}", population=9)
    assert found.start.tolist() == [1234.5, 15000.0]
    assert found.repairs.tolist() == [765.5, 5000.0]
    assert found.cause.tolist() == ["gpu", "not given"]
    assert "1 rows give no cause" in found.notes


def test_more_failed_nodes_than_nodes_are_refused():
    with pytest.raises(
        ValueError, match=r"population must be an integer in \[2, 1000000000\], got 1"
    ):
        FailureLog(
            node=["a", "b"], start=[0.0, 1.0], end=[1.0, 2.0], cause=["c", "c"], population=1
        )
    with pytest.raises(ValueError, match="finish"):
        log([0.0, 5.0], [1.0, 6.0], finish=4.0)


def test_overlapping_repairs_are_merged_or_kept_and_counted():
    times = ([0.0, 1.0, 2.5, 9.0], [3.0, 2.0, 4.0, 10.0])
    kept, merged = (log(*times, overlaps=choice) for choice in ("keep", "merge"))
    assert kept.repairs.tolist() == [3.0, 1.0, 1.5, 1.0]
    assert merged.start.tolist() == [0.0, 9.0]
    assert merged.end.tolist() == [4.0, 10.0]
    assert kept.notes[0] == "2 repairs overlap an earlier one of the same node and are kept"
    assert merged.notes[0] == "2 rows are merged into an earlier repair"
    apart = log(*times, node=["a", "b", "c", "d"], begin=0.0, finish=9.0)
    assert apart.notes == ()


def test_merged_repairs_are_the_union_of_the_intervals():
    rng = np.random.default_rng(3)
    start = rng.integers(0, 60, 40).astype(float)
    end = start + rng.integers(1, 6, 40)
    node = rng.choice(["a", "b", "c"], 40).tolist()
    merged = log(start, end, node=node, overlaps="merge")
    for name in "abc":
        own = [(s, e) for s, e, n in zip(start, end, node, strict=True) if n == name]
        down = {t for s, e in own for t in range(int(s), int(e))}
        assert merged.repairs[merged.node == name].sum() == len(down)


def test_failures_of_one_moment_leave_no_gap():
    found = log([0.0, 4.0, 4.0, 6.0], [1.0, 5.0, 5.0, 7.0], node=["a", "b", "c", "d"], finish=9.0)
    assert (found.gaps().tolist(), found.censored) == ([4.0, 2.0], 3.0)
    assert found.rate == pytest.approx(4 / (9 * 9.0 - 4))
    with pytest.raises(ValueError, match="start must hold failures at two moments"):
        _ = log([1.0], [2.0]).rate


@pytest.mark.skipif(
    "RELPARALLEL_DATA" not in os.environ, reason="RELPARALLEL_DATA names no folder with data/lanl"
)
def test_the_record_of_los_alamos_keeps_every_row():
    path = (
        Path(os.environ["RELPARALLEL_DATA"])
        / "data/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz"
    )
    whole = read_lanl(path)
    assert len(whole.start) == 23739
    assert whole.notes[1] == "453 rows give no cause"
    parts = [read_lanl(path, system) for system in (2, 18, 20)]
    assert [len(part.start) for part in parts] == [7104, 3997, 2478]
    with pytest.raises(ValueError, match="system must be one of"):
        read_lanl(path, 99)


def test_an_open_outage_counts_for_the_rate_and_as_long_as_it_lasted(tmp_path):
    text = HEAD + "a,0,4,gpu\nb,10,12,gpu\na,20,,gpu\nc,30,,nic\nc,40,43,nic\n"
    found = read(tmp_path, text, clock="h", until=50 * 3600.0)
    down = 4 + 2 + 30 + 3  # c was down for a time that is not known
    assert found.rate == pytest.approx(5 / ((9 * 50 - down) * 3600.0))
    assert np.isnan(found.repairs).tolist() == [False, False, True, True, False]
    # Two repairs of 4 h and 2 h, and 30 h of one that goes on; c failed again, so that it had been
    # repaired.
    assert found.repair_of("gpu") == pytest.approx((4 + 2 + 30) * 3600 / 2)
    assert found.repair_of("nic") == pytest.approx(3 * 3600)
    assert found.to_frame()["mean_repair"].tolist() == [
        found.repair_of("gpu"),
        found.repair_of("nic"),
    ]
    assert found.notes[0].startswith("2 failures have no end")
    with pytest.raises(
        ValueError, match="end must be known for records, got 2 failures without one"
    ):
        found.records()
    with pytest.raises(
        ValueError, match=r"start must not lie inside an earlier repair .* in row 2 "
    ):
        read(tmp_path, HEAD + "a,0,30,gpu\na,20,,gpu\n")


def test_a_log_with_starts_only_gives_rates_and_takes_a_repair_time(tmp_path):
    text = "node,start,cause\na,0,gpu\nb,10,gpu\na,20,gpu\n"
    found = read(tmp_path, text, clock="h")
    assert found.rate == pytest.approx(3 / (9 * 20 * 3600.0))
    assert np.isnan(found.repairs).all()
    assert found.classes()[0].repair is None
    assert found.notes[0] == "there is no column of ends"
    known = read(tmp_path, text, clock="h", repair=1800.0)
    assert known.repairs.tolist() == [1800.0] * 3
    assert known.classes()[0].repair == 1800.0
    with pytest.raises(ValueError, match="end must be one of node, start, cause, got 'until'"):
        read(tmp_path, text, end="until")
    with pytest.raises(ValueError, match="overlaps='merge'"):
        read(tmp_path, text, clock="h", repair=1e6)


def test_lines_are_those_of_the_file(tmp_path):
    text = HEAD + '\n"a","5","6","x\ny"\n\na,1,2,x\nb,soon,4,x\n'
    with pytest.raises(ValueError, match=r"got 'soon' in row 3 \(line 7 of .*log.csv\)"):
        read(tmp_path, text)
    late = HEAD + "b,50,60,x\n\na,7,9,x\na,1,8,x\n"  # out of order, with a blank line
    with pytest.raises(
        ValueError, match=r"got 7 s in row 2 .*overlaps='merge'.* \(line 4 of .*log.csv\)"
    ):
        read(tmp_path, late)
    with pytest.raises(
        ValueError, match=r"end must not lie before start.* in row 1 .* \(line 2 of"
    ):
        read(tmp_path, HEAD + "a,2026-01-02,2026-01-01,x\nb,2026-01-03,2026-01-04,x\n", clock="iso")


def test_units_and_separators_that_cannot_be_meant_are_refused(tmp_path):
    epoch = HEAD + "a,1770000000,1770003600,x\nb,1770050000,1770053600,x\n"
    assert read(tmp_path, epoch).gaps().tolist() == [50000.0]
    for clock in ("min", "h", "d"):
        with pytest.raises(
            ValueError, match=f"less than a century in the unit of clock='{clock}', got 17700"
        ):
            read(tmp_path, epoch, clock=clock)
    dates = HEAD + "a,2026-01-01,2026-01-02,x\n"
    with pytest.raises(ValueError, match=r"got '2026-01-01' in row 1 .*clock='iso' reads dates"):
        read(tmp_path, dates, clock="s")
    assert read(tmp_path, dates).repairs.tolist() == [86400.0]  # by what the starts are
    other = HEAD.replace(",", ";") + "a;1;2;x\n"
    with pytest.raises(ValueError, match="delimiter=';' would split it"):
        read(tmp_path, other)
    assert read(tmp_path, other, delimiter=";").repairs.tolist() == [1.0]
    with pytest.raises(
        ValueError, match="numbers without commas between semicolons, got start '1,234'"
    ):
        read(tmp_path, HEAD.replace(",", ";") + "a;1,234;2,345;x\n", delimiter=";")


MIXED = {
    "software crash": "job",
    "Network": "job",
    "power outage": "rack",
    "power supply": "node",
    "GPU memory": "gpu",
    "gpus": "gpu",
    "leaf switch": "switch",
    "xid 79": "gpu",
    "NODE_FAIL": "node",
    "unheard of": "node",
}


def test_causes_are_read_by_usual_words_and_it_is_said():
    causes = [*MIXED]
    start = np.arange(len(causes), dtype=float)
    found = FailureLog(
        node=[f"n{k}" for k in range(len(causes))],
        start=start,
        end=start + 0.5,
        cause=causes,
        population=99,
        finish=100.0,
    )
    assert found.level_of() == MIXED
    assert found.notes[-1] == found.reading
    assert "Network is a failure of the job" in found.reading
    assert "4 more" in found.reading
    chosen = FailureLog(
        node=["a", "b"],
        start=[0.0, 5.0],
        end=[1.0, 6.0],
        cause=["software", "odd"],
        population=4,
        levels={"software": "node", "odd": "rack", "power": "rack"},
    )
    assert chosen.level_of() == {"odd": "rack", "software": "node"}
    assert "levels names 'power', which never failed" in chosen.notes[-1]
    assert chosen.select("odd").level_of() == {"odd": "rack"}
    with pytest.raises(
        ValueError,
        match="levels must be one of 'gpu', 'tray', 'node', 'nvlink', 'switch', 'rack', 'job'",
    ):
        log([0.0, 5.0], [1.0, 6.0], levels={"c": "house"})


@pytest.mark.parametrize("nodes", [8, 512])
def test_failures_of_every_level_are_as_many_per_node_as_in_the_log(nodes):
    """Another cluster size sees the log's failures per node and second, whatever fails at once."""
    found = log(
        [0.0, 10.0, 20.0, 30.0],
        [1.0, 11.0, 21.0, 31.0],
        node=["a", "b", "c", "d"],
        finish=1000.0,
        levels={"c": "job"},
    )
    for level in ("gpu", "node", "switch", "rack", "job"):
        same = FailureLog(
            node=found.node,
            start=found.start,
            end=found.end,
            cause=found.cause,
            population=9,
            finish=1000.0,
            levels={"c": level},
        )
        place = Cluster(nodes=nodes, nodes_per_switch=4, nodes_per_rack=8)
        (entry,) = same.classes(place)
        assert entry.rate * place.parts(level) == pytest.approx(nodes * 4 / (9 * 1000.0 - 4))


def test_nodes_of_a_log_are_the_trays_of_a_rack():
    """Slurm counts hosts: a rack of 16 trays sees 16 times the failures of one."""
    found = log([0.0, 10.0], [1.0, 11.0], node=["a", "b"], finish=1000.0)
    job = replace(found, levels={"c": "job"})
    switches = replace(found, levels={"c": "nvlink"})
    racks = cluster("gb200-186gb-nvl72", gpus=512)
    (host,), (whole,), (tray,) = (one.classes(racks) for one in (found, job, switches))
    assert (host.level, tray.level) == ("tray", "nvlink")
    total = 128 * 2 / (found.population * 1000.0 - 2)
    assert host.rate * 128 == pytest.approx(total)
    assert whole.rate == pytest.approx(total)
    assert tray.rate * 72 == pytest.approx(total)
    assert found.classes(Cluster(nodes=8))[0].level == "node"


def test_the_line_of_a_log_says_rate_causes_and_span():
    found = FailureLog(
        node=["a", "b"],
        start=[0.0, 86400.0],
        end=[3600.0, 90000.0],
        cause=["gpu", "software"],
        population=10,
        finish=2 * 86400.0,
    )
    assert "2 failures of 10 nodes in 2 days, 100 per 1000 node-days" in repr(found)
    assert "gpu 1 (gpu), software 1 (job)" in repr(found)
    assert "2 failures of 10 nodes" in found._repr_html_()
    assert "at one moment" in repr(log([1.0], [2.0]))
