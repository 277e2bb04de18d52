"""One file for a cluster: the plan of its options, which wins, what is written, what has changed."""

import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st

import relparallel as rp
from relparallel.__main__ import main
from relparallel.planning.cluster_fields import FIELDS
from relparallel.planning.cluster_files import ClusterFile, arguments_of, cluster_files, read_fields
from relparallel.planning.last_run import since_last
from relparallel.training import read_failure_log
from tiny_model import MODEL

HALL = """# everything about our cluster
name: hall
accelerator: h100-80gb
nodes: 4
network_gbit: 3200
price: 2.5
storage: 20
software: megatron-2025
spares: 1
failures: logs/log.csv
watched: 4
clock: h
repair: 3600
levels: {fabric: rack, disk: node}
ignore: who
measured: runs.csv
"""
SAME = (
    "plan tiny.json own --name hall --accelerator h100-80gb --nodes 4 --network-gbit 3200 "
    "--price 2.5 --storage 20 --software megatron-2025 --spares 1 --failures dc/logs/log.csv "
    "--watched 4 --clock h --repair 3600 --levels fabric=rack disk=node --ignore who "
    "--measured dc/runs.csv"
)
LOG = "node,start,end,cause,who\nn1,0,2,fabric,x\nn2,100,101,gpu,y\nn3,960,,disk,x\n"
RUNS = "strategy,batch,tokens/s\nTP1 DP32,256,600000\nTP2 DP16,256,500000\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    Path("dc/logs").mkdir(parents=True)
    Path("tiny.json").write_text(json.dumps(MODEL))
    Path("dc/hall.yaml").write_text(HALL)
    Path("dc/logs/log.csv").write_text(LOG)
    Path("dc/runs.csv").write_text(RUNS)
    return tmp_path


@pytest.fixture(scope="module")
def found():
    return rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=256, strategies=1)


def asked(line: str, capsys) -> tuple[str, list[dict]]:
    """What a command prints, and the rows that it saves."""
    said = shown(f"{line} --save rows.json", capsys)
    return said, json.loads(Path("rows.json").read_text())["rows"]


def refused(line: str, capsys) -> str:
    assert main(line.split()) == 2
    return capsys.readouterr().err


def shown(line: str, capsys) -> str:
    assert main(line.split()) == 0
    return capsys.readouterr().out


def test_one_file_is_the_plan_of_as_many_options_wherever_it_lies(files, capsys):
    said, rows = asked("plan tiny.json dc/hall.yaml --batch 256", capsys)
    assert rows == asked(f"{SAME} --batch 256", capsys)[1]
    assert "fabric is a failure of the rack" in said
    assert "own runs with megatron-2025 (2)" in said
    found = rp.plan("tiny.json", "dc/hall.yaml", global_batch=256)
    assert found.to_frame()["strategy"].tolist() == [row["strategy"] for row in rows]
    assert found.to_frame()["step [s]"].tolist() == [row["step [s]"] for row in rows]
    assert found.price == (2.5,)
    Path("dc/hall.json").write_text(json.dumps(yaml.safe_load(HALL)))
    texts = (cluster_files(f"dc/hall.{ending}", {})[0].fields for ending in ("json", "yaml"))
    assert len({json.dumps(fields, default=str) for fields in texts}) == 1
    (machine,) = rp.planning.read_cluster("dc/hall.yaml")  # the nodes alone
    assert machine == found.best.cluster


def test_an_option_wins_over_the_file_and_the_plan_says_so(files, capsys):
    (one,) = cluster_files("dc/hall.yaml", {"price": [4.0], "repair": 7200.0, "nodes": 8})
    assert [one.fields[name] for name in ("price", "repair", "nodes")] == [4.0, 7200.0, 8]
    line = "plan tiny.json dc/hall.yaml --batch 256 --gpus 64 --price 4 --watched 8 --repair 7200"
    said = shown(line, capsys)
    assert (
        "options win over dc/hall.yaml: watched 8 for 4, repair 7200 for 3600, gpus 64 for "
        "nodes 4, price 4 for 2.5"
    ) in said
    found = rp.plan("tiny.json", "dc/hall.yaml", global_batch=256, gpus=64, price=4, rates="llama3")
    assert found.best.cluster.gpus == 64
    assert found.price == (4.0,)
    assert found.log is None
    assert found.notes[0] == (
        "options win over dc/hall.yaml: gpus 64 for nodes 4, price as given for 2.5, "
        "failures as given for dc/logs/log.csv"
    )
    kept = rp.plan("tiny.json", "dc/hall.yaml", global_batch=256)
    assert not any("options win" in note for note in kept.notes)
    assert kept.log.log.population == 4


def test_a_published_cluster_may_be_the_base(files):
    Path("a.yaml").write_text("cluster: h100-80gb-dgx\ngpus: 64\n")
    (plain,) = rp.planning.read_cluster("a.yaml")
    assert plain == rp.cluster("h100-80gb-dgx", gpus=64)
    Path("a.yaml").write_text(
        "cluster: h100-80gb-dgx\nnodes: 8\nname: ours\nnetwork_gbit: 1600\nnodes_per_rack: 4\n"
    )
    (other,) = rp.planning.read_cluster("a.yaml")
    assert (other.name, other.gpus, other.nodes_per_rack) == ("ours", 64, 4)
    assert other.network_bandwidth == plain.network_bandwidth / 2
    assert other.accelerator == plain.accelerator
    Path("a.yaml").write_text("cluster: h100-80gb-dgx\nnodes: 8\ngpus_per_node: 4\n")
    (half,) = rp.planning.read_cluster("a.yaml")  # each GPU has its own network card
    assert (half.gpus, half.network_bandwidth) == (32, plain.network_bandwidth / 2)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("watched: 4", "watchd: 4", "got 'watchd'; did you mean 'watched'?"),
        ("price: 2.5", "prices: 2.5", "did you mean 'price'?"),
        ("price: 2.5", "price: 2.5\nprice: 3", "'price' stands twice"),
        ("price: 2.5", "price: cheap", "price: expected a number without a unit"),
        ("price: 2.5", "price: -1", "price must be a number > 0"),
        ("price: 2.5", "price: [2, 3]", r"price: expected a number, got \[2, 3\]"),
        ("nodes: 4", "nodes: 4\ngpus: 64", "nodes must be 8 of 8 GPUs for 64, got 4"),
        ("nodes: 4", "nodes: 0", "nodes must be an integer"),
        ("nodes: 4\n", "", "'gpus' is missing"),
        ("nodes: 4", "cluster: h100", "did you mean 'h100-80gb-dgx'?"),
        (
            "nodes: 4\nnetwork_gbit: 3200",
            "cluster: h100-80gb-dgx\nnodes: 4\ngpus_per_node: 16",
            "network_gbit must say what a node of 16 GPUs has",
        ),
        ("watched: 4\n", "", "watched must say how many nodes"),
        ("failures: logs/log.csv", "", "watched, .* tell of a log: name it with failures"),
        ("logs/log.csv", "logs/none.csv", r"dc/logs/none.csv"),
        ("repair: 3600", "repair: [1, 2]", r"repair: expected a number"),
        ("levels: {fabric: rack, disk: node}", "levels: [fabric]", "levels: must be NAME=VALUE"),
        ("levels: {fabric: rack, disk: node}", "levels: {fabric: hall}", "levels must be one of"),
        ("measured: runs.csv", "only_measured: perhaps", "only_measured: expected true or false"),
        ("measured: runs.csv", "measured: ''\nonly_measured: true", "measured must hold the runs"),
        ("measured: runs.csv", "rank: best", "rank must be one of"),
        ("ignore: who", "ignore: who\nstates: 79", "states must be left out for the dialect 'csv'"),
        ("ignore: who", "ignore: {who: x}", "ignore: expected a text"),
        ("ignore: who", "ignore: who\nsince: yesterday", "since must be"),
    ],
)
def test_a_bad_field_is_refused_by_name_and_value(files, old, new, said):
    path = Path("dc/hall.yaml")
    assert old in HALL
    path.write_text(HALL.replace(old, new))
    with pytest.raises((ValueError, TypeError), match=said):
        rp.plan("tiny.json", path, global_batch=256)


def test_dates_may_stand_bare_in_the_file(files):
    rows = ["n1,2026-01-05T00:00,2026-01-05T02:00,gpu", "n1,2026-01-06T00:00,,gpu"]
    Path("dc/logs/log.csv").write_text("\n".join(["node,start,end,cause", *rows]))
    text = HALL.replace("clock: h\n", "since: 2026-01-01\nuntil: 2026-04-01 00:00:00\n")
    Path("dc/hall.yaml").write_text(text.replace("ignore: who\n", ""))
    log = rp.plan("tiny.json", "dc/hall.yaml", global_batch=256).log.log
    assert log.span == 90 * 86400
    assert log.rate == pytest.approx(2 / 4 / 90 / 86400, rel=1e-3)  # of nodes that are up


def test_several_files_are_compared_where_they_ask_the_same(files):
    Path("a.yaml").write_text("cluster: h100-80gb-dgx\ngpus: 64\nprice: 2\n")
    Path("b.yaml").write_text("cluster: a100-80gb-selene\ngpus: 64\nprice: 1\n")
    found = rp.plan("tiny.json", ["a.yaml", "b.yaml"], global_batch=256)
    assert found.price == (2.0, 1.0)
    assert [one.cluster.gpus for one in found.found] == [64, 64]
    with pytest.raises(ValueError, match=r"price must be the same .* study"):
        rp.plan("tiny.json", ["a.yaml", rp.cluster("a100-80gb-selene", gpus=8)], global_batch=256)
    Path("b.yaml").write_text("cluster: a100-80gb-selene\ngpus: 64\nprice: 1\nprecision: bf16\n")
    with pytest.raises(ValueError, match=r"precision must be the same .* got None and bf16"):
        rp.plan("tiny.json", ["a.yaml", "b.yaml"], global_batch=256)
    with pytest.raises(ValueError, match="gpus must be left out unless a cluster has a name"):
        rp.plan("tiny.json", rp.cluster("a100-80gb-selene", gpus=8), gpus=64, global_batch=256)


def test_a_study_takes_each_file_as_it_is(files, capsys):
    Path("b.yaml").write_text("cluster: a100-80gb-selene\nnodes: 4\nprice: 1\nprecision: bf16\n")
    line = "study tiny.json --on dc/hall.yaml b.yaml --batch 256 --save rows.csv"
    shown(line, capsys)
    table = rp.study("tiny.json", ["dc/hall.yaml", "b.yaml"], global_batch=256)
    assert table["rates"].tolist() == ["own log", "llama3"]
    for place, (name, path) in enumerate({"hall": "dc/hall.yaml", "b": "b.yaml"}.items()):
        best = rp.plan("tiny.json", path, global_batch=256).to_frame().iloc[0]
        row = table.iloc[place]
        assert row["cluster"].endswith(path)
        for name in ("strategy", "step [s]", "relative goodput", "cost of 1e9 tokens"):
            assert row[name] == best[name]
    assert table["best cluster with probability"].sum() == pytest.approx(1)
    same = rp.study("tiny.json", ["dc/hall.yaml", "b.yaml"], rates="llama3", global_batch=256)
    assert same["rates"].tolist() == ["llama3"] * 2
    assert same["relative goodput"][0] != table["relative goodput"][0]
    Path("b.yaml").write_text("cluster: a100-80gb-selene\nnodes: 4\n")
    with pytest.raises(ValueError, match="price must be said of every cluster or of none"):
        rp.study("tiny.json", ["dc/hall.yaml", "b.yaml"], global_batch=256)


# --init: words that YAML would read as something else, paths, and numbers of any size
WORDS = st.one_of(
    st.sampled_from(["yes", "null", "1e5", "2026-01-01", "a: b", "#x", "- y", "*z", "é", " pad "]),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
)
POSITIVE = st.floats(1e-3, 1e9)
VALUES = {
    "whole": st.integers(1, 10**6),
    "number": POSITIVE,
    "word": WORDS,
    "file": st.sampled_from(["runs.csv", "dc/logs/log.csv", "../x.csv", "/data/log.csv", "a b#c"]),
    "flag": st.just(True),
    "moment": st.one_of(POSITIVE, st.sampled_from(["2026-01-01", "2026-01-01T00:00:00Z"])),
    "words": st.lists(WORDS, min_size=1, max_size=3),
    "pairs": st.dictionaries(WORDS, st.sampled_from(["node", "rack"]), min_size=1, max_size=3),
    "limits": st.fixed_dictionaries(
        {}, optional={"context": st.just([1]), "tensor": st.lists(st.integers(1, 64), min_size=1)}
    ).filter(bool),
    "device": st.sampled_from(["h100-80gb", {"name": "x", "peak": {"bf16": 989e12}}]),
}
SETS = st.fixed_dictionaries(
    {}, optional={name: VALUES[field.read.__name__] for name, field in FIELDS.items()}
)


@settings(max_examples=200, deadline=None)
@given(fields=SETS)
def test_what_init_writes_is_read_back_as_it_was(fields):
    fields = {"cluster": "h100-80gb-dgx"} | fields
    with tempfile.TemporaryDirectory() as folder:
        before = read_fields(fields)
        path = Path(folder) / "hall.yaml"
        ClusterFile(before).save(path)
        (after,) = cluster_files(path, {})

        def resolved(values):
            return {k: v.resolve() if isinstance(v, Path) else v for k, v in values.items()}

        assert resolved(after.fields) == resolved(before)


MANY = [
    "--price 2.5",
    "--storage 20",
    "--software nemo-2024",
    "--precision fp8",
    "--sequence 1024",
    "--batch 256",
    "--strategies 3",
    "--spares 1",
    "--network two-level",
    "--nodes-per-rack 2",
    "--limits tensor=1,2 pipeline<=4 recompute=none",
    "--like measured --memory-margin 0.2",
    "--failures dc/logs/log.csv --watched 8 --clock h --ignore who --repair 3600",
    "--measured dc/runs.csv",
]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(chosen=st.sets(st.sampled_from(MANY), min_size=1, max_size=4))
def test_the_plan_of_the_written_file_is_the_same(chosen, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("hall")
        patch.chdir(folder)
        Path("dc/logs").mkdir(parents=True)
        Path("tiny.json").write_text(json.dumps(MODEL))
        Path("dc/logs/log.csv").write_text(LOG)
        Path("dc/runs.csv").write_text(RUNS)
        line = ["plan", "tiny.json", "h100-80gb-dgx", "--gpus", "32", *" ".join(chosen).split()]
        assert main([*line, "--save", "a.json", "--init", "dc/hall.yaml"]) == 0
        assert main(["plan", "tiny.json", "dc/hall.yaml", "--save", "b.json"]) == 0
        assert Path("a.json").read_text() == Path("b.json").read_text()


def test_init_says_units_and_writes_over_nothing(files, capsys):
    line = "plan tiny.json h100-80gb-dgx --gpus 32 --batch 256 --storage 20 --init new.yaml"
    assert "written: new.yaml" in shown(line, capsys)
    assert "storage: 20.0  # that checkpoints are written and read with [GB/s]" in (
        Path("new.yaml").read_text()
    )
    assert "is there already" in refused(line, capsys)
    assert "must end in .yaml" in refused(line.replace("new.yaml", "new.txt"), capsys)
    assert "of one cluster, got 2" in refused(
        "plan tiny.json h100-80gb-dgx a100-80gb-selene --gpus 32 --init two.yaml", capsys
    )
    bad = "plan tiny.json h100-80gb-dgx --gpus 32 --precision fp7 --init bad.yaml"
    assert "fp7" in refused(bad, capsys)
    assert not Path("bad.yaml").exists()  # what gives no plan is not written


# what has changed since the last plan
WEEK = "plan tiny.json dc/hall.yaml --batch 256"
LAST = Path("dc/hall.last.json")


def changes(said: str) -> list[str]:
    return said.split("\n\n")[-1].splitlines()


def test_the_second_plan_says_what_has_changed_since_the_last(files, capsys, monkeypatch):
    first = changes(shown(WEEK, capsys))
    assert first == [
        "first plan of tiny.json batch=256 from dc/hall.yaml",
        "kept for the next in dc/hall.last.json",
    ]
    (kept,) = json.loads(LAST.read_text()).values()
    assert (
        abs(
            datetime.strptime(kept["date"], "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
            - (datetime.now(UTC))
        ).total_seconds()
        < 120
    )
    LAST.write_text(LAST.read_text().replace(kept["date"], "2026-01-02 03:04 UTC"))
    same = changes(shown(WEEK, capsys))
    assert same[0] == "since the last plan from dc/hall.yaml, 2026-01-02 03:04 UTC:"
    assert all(line.endswith(", as then") for line in same[1:-1])
    assert len(same) == 2 + len(kept) - 1
    form = {"population": 4, "clock": "h", "ignore": ["who"], "repair": 3600.0}
    before = read_failure_log("dc/logs/log.csv", **form)
    Path("dc/logs/log.csv").write_text(LOG + "n4,961,962,disk,x\nn2,990,991,disk,x\n")
    Path("dc/runs.csv").write_text(RUNS + "TP4 DP8,256,300000\n")
    after = read_failure_log("dc/logs/log.csv", **form)
    size, rate, drift, best, _ = changes(shown(WEEK, capsys))[1:-1]
    assert size == "  GPUs and batch: 32 and 256, as then"
    per_day = [log.rate_interval() for log in (after, before)]
    now, then = (
        f"{one.value * 8.64e7:.4g} ({one.lower * 8.64e7:.2g} to {one.upper * 8.64e7:.2g}), "
        for one in per_day
    )
    assert rate == (
        f"  failures per 1000 node-days: {now}5 failures in 41.25 days; then {then}3 failures in "
        "40 days"
    )
    Path("old.csv").write_text(RUNS)
    common = {"model": "tiny.json", "cluster": "dc/hall.yaml", "software": "megatron-2025"}
    learned = [
        rp.planning.learn(table, **common).factors()["factor"].item()
        for table in ("dc/runs.csv", "old.csv")
    ]
    assert drift.startswith(
        f"  measured over predicted time, megatron-2025 on h100: {learned[0]:.3f} ("
    )
    assert f"3 runs; then {learned[1]:.3f} (" in drift
    assert best.startswith("  best: ")


def test_another_question_has_a_last_plan_of_its_own(files, capsys):
    shown(WEEK, capsys)
    what_if = changes(shown(f"{WEEK} --gpus 64", capsys))
    assert what_if[0] == "first plan of tiny.json batch=256 gpus=[64] from dc/hall.yaml"
    assert changes(shown(WEEK, capsys))[0].startswith("since the last plan")
    assert len(json.loads(LAST.read_text())) == 2


@pytest.mark.parametrize(
    "text", ["{", "[]", "3", '{"a": 1}', '{"a": {"date": 3}}', "\ufffe", '{"a": {}, "a": {}}', ""]
)
def test_a_damaged_record_is_told_and_replaced(found, tmp_path, text):
    path = tmp_path / "hall.yaml"
    (tmp_path / "hall.last.json").write_text(text)
    said = since_last(found, path, "tiny.json", {})
    assert said.startswith(f"{tmp_path}/hall.last.json cannot be read and is written anew (")
    assert since_last(found, path, "tiny.json", {}).startswith("since the last plan")


def test_a_record_that_cannot_be_kept_stops_no_plan(found, tmp_path):
    (tmp_path / "hall.last.json").mkdir()
    for path in (tmp_path / "gone" / "hall.yaml", tmp_path / "hall.yaml"):
        said = since_last(found, path, "tiny.json", {}).splitlines()
        assert said[-1].startswith("not kept for the next: ")


def test_a_plan_in_python_keeps_nothing(files):
    before = sorted(Path("dc").rglob("*"))
    rp.plan("tiny.json", "dc/hall.yaml", global_batch=256)
    assert sorted(Path("dc").rglob("*")) == before


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_file_that_the_front_page_shows_is_one(name):
    page = (Path(__file__).parents[2] / name).read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    shown = ClusterFile(read_fields(yaml.safe_load(text)))
    assert shown.cluster == rp.cluster("h100-80gb-dgx", gpus=512)
    assert {"price", "failures", "watched", "measured", "network"} < {*shown.fields}


def test_every_field_is_an_option_with_the_words_of_the_file(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for name, field in FIELDS.items():
        if name != "cluster":  # which stands without a dash
            assert f" --{name.replace('_', '-')} " in said
        assert name == "cluster" or field.about.split(";")[0][:30].strip() in said
    with pytest.raises(ValueError, match="fields must be among") as refused:
        read_fields({"colour": "red"})
    assert all(name in str(refused.value) for name in FIELDS)
    assert arguments_of([ClusterFile({"storage": 20.0})], False, {}) == {"storage_bandwidth": 20e9}
