"""The command end to end on small files: what it prints and saves has the files' numbers."""

import json
from pathlib import Path

import pytest

from relparallel.__main__ import main
from relparallel.parallel import read_strategy, step_time
from relparallel.planning import plan, read_cluster
from relparallel.planning.networks import network_of_gpus
from relparallel.topology import read
from relparallel.training import ComponentClass
from relparallel.units import DAY, HOUR
from relparallel.workload import read_config
from tiny_model import MODEL

MACHINE = "name,accelerator,gpus,network_gbit\nmine,h100-80gb,32,3200\n"
WATCHED = 4 * 40 * DAY  # node-seconds of four nodes in forty days


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    Path("tiny.json").write_text(json.dumps(MODEL))
    Path("mine.csv").write_text(MACHINE)
    Path("topology.conf").write_text(
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b \\\n Nodes=n[3-4]\nSwitchName=top Switches=a,b\n"
    )
    return tmp_path


def asked(line: str, capsys) -> tuple[str, list[dict]]:
    """What a command prints, and the rows that it saves."""
    assert main([*line.split(), "--save", "rows.json"]) == 0
    saved = json.loads(Path("rows.json").read_text(), parse_constant=pytest.fail)  # NaN is no JSON
    return capsys.readouterr().out, saved["rows"]


def refused(line: str, capsys) -> str:
    assert main(line.split()) == 2
    return capsys.readouterr().err


def with_rates(*classes: ComponentClass) -> list[dict]:
    return (
        plan("tiny.json", "mine.csv", global_batch=256, rates=classes).to_frame().to_dict("records")
    )


def same(rows: list[dict], other: list[dict]) -> None:
    """The same strategies, goodput and checkpoints."""
    assert [row["strategy"] for row in rows] == [row["strategy"] for row in other]
    for name in ("relative goodput", "checkpoint every [min]", "1e9 tokens a day"):
        # JSON has no infinity
        never = [float("inf") if row[name] is None else row[name] for row in rows]
        assert never == pytest.approx([row[name] or float("inf") for row in other], rel=1e-9)


LOG = "node,start,end,cause,who\nn1,0,2,fabric,x\nn2,100,101,gpu,y\nn1,100.5,104.5,gpu,x\nn3,960,,disk,x\n"


def test_levels_clock_and_ignored_columns_of_a_log_reach_the_numbers(files, capsys):
    Path("log.csv").write_text(LOG)
    line = (
        "plan tiny.json mine.csv --batch 256 --failures log.csv --watched 4 --clock h --ignore who"
    )
    said, rows = asked(f"{line} --levels fabric=rack disk=node gpu=node", capsys)
    assert "fabric is a failure of the rack" in said
    assert "disk is a failure of the node" in said
    assert "1 failures have no end" in said
    rates = {
        "fabric": ("rack", 1, 2 * HOUR),
        "gpu": ("node", 2, 2.5 * HOUR),
        "disk": ("node", 1, 7 / 3 * HOUR),  # as the others, since it did not end
    }
    up = WATCHED - 7 * HOUR
    same(
        rows,
        with_rates(
            *(
                ComponentClass(name=name, level=level, rate=many / up, repair=repair)
                for name, (level, many, repair) in rates.items()
            )
        ),
    )
    usual, other = asked(line, capsys)  # by the words in the names: fabric stops the whole job
    assert "fabric is a failure of the job" in usual
    assert "gpu is a failure of the gpu" in usual
    assert other[0]["relative goodput"] != pytest.approx(rows[0]["relative goodput"], rel=1e-6)


def test_rows_are_ranked_by_the_replay_of_a_log(files, capsys):
    Path("log.csv").write_text(LOG)
    line = (
        "plan tiny.json mine.csv --batch 256 --failures log.csv --watched 4 --clock h "
        "--ignore who --repair 3600 --rank replay"
    )
    said, rows = asked(line, capsys)
    assert "the log is replayed 20 times, 40 days each" in said
    worth = [row["replayed goodput"] / row["step [s]"] for row in rows]
    assert worth == sorted(worth, reverse=True)
    assert all(row["replay from"] <= row["replayed goodput"] <= row["replay to"] for row in rows)
    assert f"({rows[0]['replay from']:.4g} to {rows[0]['replay to']:.4g})" in said


def test_a_log_of_slurm_never_tells_the_repair_of_a_node(files, capsys):
    Path("sacct.txt").write_text(
        "JobID|JobName|State|Start|End|NodeList\n"
        "1|train|NODE_FAIL|2026-01-01T00:00:00|2026-01-11T00:00:00|n[1-4]\n"
        "1|train|NODE_FAIL|2026-01-11T02:00:00|2026-01-21T00:00:00|n[1-3,5]\n"
        "1|train|COMPLETED|2026-01-21T04:00:00|2026-02-10T00:00:00|n[2-3,5-6]\n"
        "9|eval|FAILED|2026-01-02T00:00:00|2026-01-02T01:00:00|n9\n"
    )
    line = "plan tiny.json mine.csv --batch 256 --failures sacct.txt --watched 4"
    said, rows = asked(line, capsys)
    assert "counted: 2 NODE_FAIL (level node)" in said
    assert "left out: 1 FAILED of jobs with less than 10% of the node-hours (eval)" in said
    # the job was back after 2 and 4 h: the repair is that of the recovery, until somebody says it
    same(rows, with_rates(ComponentClass(name="NODE_FAIL", level="node", rate=2 / WATCHED)))
    up = WATCHED - 2 * 168 * HOUR  # both come back inside the window
    week = ComponentClass(name="NODE_FAIL", level="node", rate=2 / up, repair=168 * HOUR)
    _, rows = asked(f"{line} --repair {168 * 3600}", capsys)
    same(rows, with_rates(week))
    _, rows = asked(f"{line} --jobs eval --repair 3600", capsys)
    failed = ComponentClass(name="FAILED", level="job", rate=4 / WATCHED, repair=0.0)
    same(rows, with_rates(failed))
    assert "clock must be left out for the dialect 'slurm'" in refused(f"{line} --clock h", capsys)
    assert "did you mean 'slurm'" in refused(f"{line} --dialect slurmm", capsys)


def test_failures_of_one_node_that_overlap_are_refused_or_merged(files, capsys):
    Path("log.csv").write_text("node,start,end,cause\nn1,0,2,disk\nn1,1,5,disk\nn2,960,961,disk\n")
    line = "plan tiny.json mine.csv --batch 256 --failures log.csv --watched 4 --clock h"
    assert "lie inside an earlier repair of the same node, got 3600 s in row 2" in refused(
        line, capsys
    )
    said, rows = asked(f"{line} --overlaps merge", capsys)
    assert "1 rows are merged into an earlier repair" in said
    same(
        rows,
        with_rates(
            ComponentClass(
                name="disk", level="node", rate=2 / (4 * 960 * HOUR - 5 * HOUR), repair=3 * HOUR
            )
        ),
    )


def test_the_watch_of_a_log_is_said_on_the_command_line(files, capsys):
    Path("log.csv").write_text(
        "node,start,end,cause\nn1,2026-03-02T10:00,2026-03-02T14:00,disk\n"
        "n2,2026-03-03T10:00,2026-03-03T18:00,disk\n"
    )
    Path("kernel.log").write_text(
        "".join(
            f"2026-03-02T10:0{k}:00+0000 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 95, pid=1\n"
            for k in (0, 1, 5)
        )
    )
    line = "plan tiny.json mine.csv --batch 256 --watched 4 --since 2026-01-01 --until 2026-04-01"
    _, rows = asked(f"{line} --failures log.csv", capsys)
    up = 4 * 90 * 24 * HOUR - 12 * HOUR
    twice = ComponentClass(name="disk", level="node", rate=2 / up, repair=6 * HOUR)
    same(rows[:3], with_rates(twice)[:3])  # where nothing goes back a log has checkpoints, too
    said, _ = asked(f"{line} --failures kernel.log --repair 21600 --silence 60", capsys)
    assert "3 lines of what failed tell of 2 incidents" in said
    said, _ = asked("plan tiny.json mine.csv --batch 256 --watched 4 --failures log.csv", capsys)
    assert "the observation window is a guess" in said
    assert "until must be an ISO 8601 date" in refused(f"{line[:-10]}7 --failures log.csv", capsys)


@pytest.mark.parametrize("option", ["software nemo-2024", "precision fp8", "sequence 1024"])
def test_software_precision_and_sequence_are_those_of_the_step(files, capsys, option):
    name, value = option.split()
    model = read_config("tiny.json", sequence=1024 if name == "sequence" else None).model
    given = {} if name == "sequence" else {name: value}
    said, rows = asked(f"plan tiny.json mine.csv --batch 256 --{name} {value}", capsys)
    (machine,) = read_cluster("mine.csv")
    for row in rows:
        step = step_time(model, read_strategy(row["strategy"]), machine, 256, **given)
        assert row["step [s]"] == pytest.approx(step.total, rel=1e-9)
    assert ("was assumed" in said) == (name != "software")
    assert ("as asked" in said) == (name == "sequence")


def test_leaves_of_a_topology_file_stop_their_nodes(files, capsys):
    said, rows = asked("plan tiny.json mine.csv --batch 256 --network topology.conf", capsys)
    assert "of the switches that nodes hang at, 2 stop 2 nodes" in said
    (machine,) = read_cluster("mine.csv")
    wired = network_of_gpus(read("topology.conf"), machine)
    for row in rows:
        step = step_time(
            read_config("tiny.json").model,
            read_strategy(row["strategy"]),
            machine,
            256,
            network=wired,
        )
        assert row["step [s]"] == pytest.approx(step.total, rel=1e-9)
    Path("topology.conf").write_text("SwitchName=a Nodes=n[1-3]\n")
    assert "network must have a host for each of 32 GPUs, or for each of 4 nodes" in (
        refused("plan tiny.json mine.csv --network topology.conf", capsys)
    )


def test_fields_of_a_config_that_change_nothing_are_named_or_refused(files, capsys):
    Path("tiny.json").write_text(json.dumps(MODEL | {"my_field": 3}))
    assert "got my_field in tiny.json" in refused("plan tiny.json mine.csv", capsys)
    rows = asked("plan tiny.json mine.csv --batch 256 --ignore my_field", capsys)[1]
    Path("tiny.json").write_text(json.dumps(MODEL))
    same(rows, asked("plan tiny.json mine.csv --batch 256", capsys)[1])


def test_measured_speeds_are_the_only_rows(files, capsys):
    Path("speeds.csv").write_text('strategy,tokens/s\n"TP1, DP32",800000\nTP2 DP16 ZeRO-1,700000\n')
    line = "plan tiny.json mine.csv --batch 256 --measured speeds.csv --only-measured"
    rows = asked(line, capsys)[1]
    names = ["TP1 PP1 DP32", "TP2 PP1 DP16 ZeRO-1", "TP1 PP1 DP24"]  # the last with a spare node
    assert [row["strategy"] for row in rows[:3]] == names
    times = [256 * 2048 / speed for speed in (8e5, 7e5, 8e5 * 24 / 32)]
    assert [row["step [s]"] for row in rows[:3]] == pytest.approx(times, rel=1e-12)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--dialect slurm", "dialect tell of a log: name it with failures"),
        ("--watched 4 --clock h", "watched, clock tell of a log"),
        ("--ignore who", "ignore must be left out unless model is a config.json, got ['who']"),
        ("--failures log.csv", "watched must say how many nodes"),
        ("--rank replay", "rank must be 'independent' unless rates is a FailureLog, got 'replay'"),
    ],
)
def test_options_without_their_file_are_refused(files, capsys, more, told):
    assert told in refused(f"plan gpt3-6.7b mine.csv {more}", capsys)


def test_a_strategy_asked_about_may_leave_the_replicas_to_the_cluster(files, capsys):
    line = ["plan", "tiny.json", "mine.csv", "--batch", "256", "--strategies", "1", "--why-not"]
    for text in ("zero1/8", "tp2_pp1", "tensor 2 (pipeline 1)"):
        assert main([*line, text]) == 0
    assert "TP2 PP1 DP16: " in capsys.readouterr().out.splitlines()[-1]
    assert main([*line, ""]) == 2


def test_experts_of_a_strategy_asked_about_are_dealt_over_the_replicas_of_the_cluster(capsys):
    line = [
        "plan",
        "mixtral-8x7b",
        "h100-80gb-dgx",
        "--gpus",
        "64",
        "--strategies",
        "1",
        "--why-not",
    ]
    assert main([*line, "TP2 EP8"]) == 0
    assert "TP2 PP1 DP32 EP8: " in capsys.readouterr().out
