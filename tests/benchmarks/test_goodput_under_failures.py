"""Benchmark of goodput under failures: cells come out again, and a column is scored as it deserves."""

import runpy
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from evidence.derive.plans import digest

RUN = runpy.run_path(str(Path(__file__).with_name("goodput_under_failures.py")))
STORED = pd.read_csv(RUN["OUTPUT"]).set_index("cell", drop=False)
RECORDS = RUN["RECORDS"]


@pytest.mark.parametrize("trace", list(RECORDS["SOURCES"]))
def test_records_and_what_is_said_of_them_come_from_their_sources(trace):
    source, told = RECORDS["SOURCES"][trace][1], RUN["TRACES"].loc[trace]
    if not source.is_file():
        pytest.skip("RELPARALLEL_DATA names no folder with data")
    found = RECORDS["converted"](trace).reset_index(drop=True)
    assert digest(source) == told["input_sha256"]
    assert found.query("domain != 'job'")["node"].nunique() <= told["nodes"]
    assert_frame_equal(found, RECORDS["outages"](trace).reset_index(drop=True), check_dtype=False)


@pytest.mark.parametrize("place", [3, 17, 26])
@pytest.mark.parametrize("trace", ["glm-130b", "rehearsal-slow"])
def test_a_cell_comes_out_again(trace, place):
    made = RUN["row"]([*RUN["cells"](trace)][place])
    stored = STORED.loc[made["cell"]]
    for name, value in made.items():
        margin = 2 * made.get(f"{name}_half", 1e-5)
        same = (
            value == stored[name] if isinstance(value, str) else abs(value - stored[name]) <= margin
        )
        assert same, name


def test_columns_are_scored():
    replay = STORED["replay"]
    assert RUN["score"](STORED, replay)["error"] == RUN["score"](STORED, replay)["regret"] == 0
    perfect = RUN["score"](STORED, replay - 0.02)
    assert (perfect["pairs %"], perfect["jobs in order %"], perfect["error"]) == (100, 100, 2)
    reversed_ = RUN["score"](STORED, 1 - replay)
    assert (reversed_["pairs %"], reversed_["jobs in order %"]) == (0, 0)
    assert reversed_["regret"] > 10 < reversed_["spares regret"]
    held = RUN["score"](STORED, STORED["held"])  # who forgets failures holds no spares
    assert held["spares off %"] > perfect["spares off %"] == 0


def test_another_tool_enters_by_a_file(tmp_path, capsys):
    column = STORED[["cell"]].assign(goodput=STORED["replay"] + 0.01)[:12]
    column.to_csv(tmp_path / "tool.csv", index=False)
    RUN["main"](["--score", str(tmp_path / "tool.csv")])
    said = capsys.readouterr().out.split()
    assert float(said[said.index("cells") + 1]) == 12
    assert float(said[said.index("error") + 1]) == 1
    column.assign(cell="no/such/cell").to_csv(tmp_path / "tool.csv", index=False)
    with pytest.raises(SystemExit):
        RUN["main"](["--score", str(tmp_path / "tool.csv")])


def test_stored_scores_are_those_of_the_stored_table():
    stored = pd.read_csv(RUN["OUTPUT"].with_name("goodput_scores.csv"), index_col="column")
    assert_frame_equal(RUN["scores"](STORED.reset_index(drop=True)), stored, check_dtype=False)
    assert {*STORED["trace"]} == {*RUN["TRACES"].index}
    assert stored.loc["shared", "error"] < stored.loc["independent", "error"]
