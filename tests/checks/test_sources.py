"""Headlines that rest on a source say what the source says: spares, storage, shares, repeats."""

import html
import re
from math import exp, log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student

from relparallel import training
from relparallel.published import data_folder, facts
from reproduce.notebook import read

ROOT = Path(__file__).resolve().parents[2]
DAY, GB = 86400.0, 1e9
TUNING = pd.read_csv(data_folder() / "bloom_tuning.csv")
SETTING = ["hidden", "layers", "heads", "batch", "period", "tensor", "pipeline", "data"]


def cells(number: str) -> dict[str, dict]:
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return {cell["id"]: cell for cell in read(path).content["cells"]}


def source(number: str, cell: str) -> str:
    return "".join(cells(number)[cell]["source"])


def parameters(number: str) -> dict:
    found: dict = {}
    exec(source(number, "cell-01"), found)
    return found


def stored(number: str, cell: str) -> list[list[str]]:
    """Rows of the table that a cell shows, without its index."""
    (shown,) = (o["data"]["text/html"] for o in cells(number)[cell]["outputs"] if "data" in o)
    rows = re.findall(r"<tr.*?>(.*?)</tr>", "".join(shown), re.S)
    return [
        [html.unescape(one) for one in re.findall(r"<td>(.*?)</td>", row)]
        for row in rows
        if "<td>" in row
    ]


def printed(number: str, cell: str) -> str:
    return "".join("".join(o.get("text", "")) for o in cells(number)[cell]["outputs"])


def answer(number: str) -> str:
    return re.search(r"^\*\*Answer\.\*\* (.+)$", source(number, "cell-00"), re.M)[1]


def waiting(hours: float, spares: int) -> float:
    """What a job on 48 nodes keeps that restarts on spares: Erlang 1917 and Daly 2006, by hand."""
    given = parameters("46")
    node, job = (given[name] / 1000 / DAY for name in ("node_failures", "job_failures"))
    rate, load, blocked = 48 * (node + job), 48 * node * 3600 * hours, 1.0
    for servers in range(1, spares + 2):
        blocked = load * blocked / (servers + load * blocked)
    written = 14 * 181_209_477_120 / (given["write_bandwidth"] * GB)
    lost = brentq(lambda y: -log(1 - y) - y - written * rate, 1e-9, 0.9)
    return (1 - blocked) * (1 - lost) * exp(-(given["restart_s"] + written) * rate)


def test_bloom_is_run_with_the_four_nodes_that_it_kept_in_reserve():
    table = stored("46", "cell-19")
    as_run, without = table[:5], table[5:10]
    for row, hours in zip(as_run, (1, 6, 24, 72, 168), strict=True):
        assert float(row[1]) == pytest.approx(waiting(hours, spares=4), abs=6e-5)
        assert (row[0], row[2]) == ("TP4 PP12 CP1 DP8", "0.0 %"), "as run the fastest leads"
    for row, hours in zip(without, (1, 6, 24, 72, 168), strict=True):
        assert float(row[1]) == pytest.approx(waiting(hours, spares=0), abs=6e-5)
    assert float(as_run[2][1]) > 0.985 > 0.86 > float(without[2][1]), "the rival: no spares"


def test_every_time_of_bloom_that_is_published_here_is_among_its_tuning_runs():
    names = {"h": "hidden", "layers": "layers", "heads": "heads", "gbs": "batch"}
    names |= {"tp": "tensor", "pp": "pipeline", "dp": "data", "mbs": "micro_batch"}
    there = set(TUNING[[*names.values(), "seconds"]].itertuples(index=False, name=None))
    timed = [
        fact
        for fact in facts("parallelism-cost").values()
        if fact.id.startswith("BLOOM-") and fact.unit == "s"
    ]
    assert len(timed) > 60
    for fact in timed:
        assert (*(fact.inputs[name] for name in names), fact.value) in there, fact.id


def test_no_group_of_strategies_spans_the_days_on_which_the_cluster_changed():
    before, bf16 = TUNING["date"] < "2022-02-25", TUNING["date"] >= "2022-02-28"
    assert (before == (TUNING["period"] == "before 25 February")).all()
    assert (bf16 == (TUNING["period"] == "bf16")).all()


def test_the_order_of_speeds_is_certain_where_repeats_say_so():
    """Student's distribution in place of the resamples; the rival trusts every single time."""
    times = np.log(TUNING["seconds"]).groupby([TUNING[c] for c in [*SETTING, "micro_batch"]])
    free = len(TUNING) - times.ngroups
    spread = np.sqrt(((np.log(TUNING["seconds"]) - times.transform("mean")) ** 2).sum() / free)
    rows = [row for row in stored("46", "cell-24") if row[7] != "never"]
    for row in rows:
        lead, holds = float(row[8]), float(row[9])
        ratio = np.log1p(lead / 100) / (spread * np.sqrt(2))
        assert holds == pytest.approx(student.cdf(ratio, free), abs=0.008)
        sooner = row[10] != "NaN" and float(row[10]) == float(row[6])
        assert sooner == (holds >= 0.9)
    assert len(rows) == 7, "the rival"
    assert sum(row[10] != "NaN" for row in rows) == 6
    assert "seven of twelve" in answer("46")
    assert "in six by one that repeats confirm to be slower" in answer("46")


def test_what_was_derived_or_closes_its_own_account_is_not_counted_as_published():
    """The rival is the count of all shares, seven of eight."""
    share, rows = {}, stored("42", "cell-14")
    for run, kind, value, bound, _, lowest, highest, *_ in rows:
        if kind != "-" and bound == "False":
            held = float(lowest) <= float(value) <= float(highest)
            share.setdefault(kind, {})[run] = held, float(highest) - float(lowest)
    assert share["published"].keys().isdisjoint({"GLM-130B", "BLOOM-176B", "OPT-175B"})
    assert set(share["account"]) == {"GLM-130B"}
    assert [held for held, _ in share["published"].values()] == [True] * 5
    assert "five published shares" in answer("42")
    assert f"ranges of {100 * min(w for _, w in share['published'].values()):.0f} points" in answer(
        "42"
    )
    assert sum(held for part in share.values() for held, _ in part.values()) == 7


def test_the_start_up_law_is_not_asked_beyond_what_it_was_fitted_to():
    largest = training.start_ups().query("software == 'nemo-2023'")["nodes"].max()
    sizes = re.search(r"points that the growth costs: \{(.*)\}", printed("42", "cell-20"))[1]
    assert max(int(size) for size in re.findall(r"(\d+):", sizes)) == largest


@pytest.mark.parametrize("storage", [2.5, 20.0, 250.0, 20000.0])
def test_the_flip_of_storage_is_where_both_models_lose_the_same(storage, capsys):
    """Any storage, also that at which the mixture loses less already."""
    space: dict = {}
    for cell in ("cell-01", "cell-02", "sizes", "hours", "flip"):
        exec(source("31", cell), space)
        space["storage"] = storage
    capsys.readouterr()

    def lost(name, speed):
        seconds = 14 * space["sizes"].loc[name, "parameters"] / (speed * GB)
        kept = space["optimal_training_time_ratio"](seconds, space["mtbf"], space["restart_s"])
        return space["hours"][name] * (1 / kept - 1)

    flip = space["flip"]
    assert lost("deepseek-v3", flip) == pytest.approx(lost("llama3-70b", flip), rel=1e-4)
    more = lost("deepseek-v3", storage) > lost("llama3-70b", storage)
    assert (flip > storage) == more


def test_answers_name_the_storage_of_the_run_that_they_speak_of():
    meta = facts("training-reliability")["L3-041"].value * 1e3  # GB/s for 16,384 GPUs
    given = parameters("31")
    assert given["storage"] == meta * given["gpus"] / 16384
    assert f"({given['storage']:.0f} GB/s)" in answer("31")
    assert f"({meta / 1e3:g} TB/s)" in answer("41")
    seconds, size = re.findall(r"[\d.]+", facts("training-reliability")["BLM-002"].value_text)
    rate = 1e3 * float(size) / float(seconds)
    assert parameters("46")["write_bandwidth"] == rate
    assert f"({rate:.1f} GB/s)" in answer("46")
