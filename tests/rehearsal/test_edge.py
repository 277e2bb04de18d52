"""Pairs near the break-even and failures that come together: what is drawn, filed and scored."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from relparallel.published import data_folder
from relparallel.rehearsal.bursts import NODES, beside_bursts, of_racks, of_trace
from relparallel.rehearsal.edge import LOADS, RIVALS, break_even, drawn, rivals, scored
from relparallel.rehearsal.node import Run
from relparallel.rehearsal.predictions import predicted, replayed

FREE = {"step": 0.4, "checkpoint": 0.0, "restart": 0.0, "pause": 0.0, "lag": 0.0}
GIVEN = {
    "policy": "elastic",
    "repair": 1.0,
    "seed": 0,
    "seconds": 480.0,
    "nodes": 64,
    "mtbf": 480.0,
}
FAST = Run(**GIVEN, nodes_per_replica=8, step=0.4)
SLOW = Run(**GIVEN, nodes_per_replica=2, step=0.4 * 1.06)


def test_the_break_even_is_the_speed_ratio_over_the_difference_of_replicas():
    """Load ln q / (g - g'), for nodes that are up 1 / (1 + load) of the time; a lag counts as repair."""
    even = break_even(FAST, SLOW, FREE, FREE | {"step": 0.424})
    assert even == pytest.approx(480 * (1.06 ** (1 / 6) - 1), rel=1e-3)
    late = [FREE | {"lag": 2.0}, FREE | {"lag": 2.0, "step": 0.424}]
    assert break_even(FAST, SLOW, *late) == pytest.approx(even - 2, rel=1e-3)
    assert np.isnan(break_even(SLOW, FAST, FREE, FREE))
    assert np.isnan(break_even(FAST, SLOW, FREE | {"checkpoint": np.nan}, FREE))


def test_rivals_know_one_thing_each():
    run, known = replace(FAST, repair=20.0), FREE | {"pause": 0.5, "checkpoint": 0.1}
    found = rivals(run, known)
    assert found["speed"] == pytest.approx(4 * 64 / 0.4)
    assert found["availability"] == pytest.approx(predicted(run, FREE)["predicted_rate"], rel=0.03)
    lost = 64 / 480 * 0.5
    assert found["young_daly"] == pytest.approx(found["speed"] * (1 - lost) / (1 + 0.1 / 3.2))
    waits = rivals(replace(run, policy="spares", spares=4, nodes_per_replica=2), known)
    assert 0 < waits["availability"] < waits["speed"] == pytest.approx(4 * 60 / 0.4)


def test_pairs_are_drawn_by_seed_and_change_places_once():
    pairs = list(islice(drawn(np.random.default_rng(5), 400.0), 4))
    assert pairs == list(islice(drawn(np.random.default_rng(5), 400.0), 4))
    assert [pair.load for pair in pairs] == list(LOADS)
    for pair in pairs:
        assert 1.03 <= pair.slow.step / pair.fast.step <= 1.10
        assert 64 <= pair.fast.nodes == pair.slow.nodes <= 128


def test_racks_fail_and_come_back_together():
    scenes = [of_racks(np.random.default_rng(seed)) for seed in range(20)]
    for scene in scenes:
        assert scene.records.groupby("node")["start"].is_monotonic_increasing.all()
        assert (scene.records["start"] < scene.records["end"]).all()
    table = scenes[0].records
    racks = table.assign(rack=table["node"] // 8).groupby(["rack", "end"]).size()
    assert set(racks) <= set(range(1, 9))
    assert racks.max() == 8
    seconds = [(np.minimum(one.records["end"], 480) - one.records["start"]).sum() for one in scenes]
    down = np.array(seconds) / 480
    error = down.std(ddof=1) / len(scenes) ** 0.5
    assert down.mean() == pytest.approx(scenes[0].rate * NODES * scenes[0].repair, abs=3 * error)


def test_a_piece_of_the_trace_is_told_from_the_rest():
    scene = of_trace(np.random.default_rng(5))
    assert scene.records["node"].between(0, NODES - 1).all()
    assert scene.records["start"].between(0, 480).all()
    assert scene.law.mean_size > 1
    assert scene.rate * NODES * scene.repair == pytest.approx(9.4 * NODES / 400, rel=0.5)
    run = Run(**GIVEN | {"nodes": NODES}, nodes_per_replica=4, step=0.4)
    assert 0.7 < replayed(run, FREE, scene.records) < 1


def test_recorded_pairs_were_filed_before_they_ran():
    folder = data_folder() / "rehearsals" / "edge"
    filed, runs = (pd.read_csv(folder / f"{name}.csv") for name in ("pairs", "runs"))
    assert len(filed) == len(runs) == 48
    both = filed.merge(runs, on=["pair", "role"], suffixes=("", "_ran"))
    assert len(both) == 48
    assert (both["date"] <= both["date_ran"]).all()
    assert set(filed["load"]) == set(LOADS)
    for row in filed.to_dict("records"):
        names = ("policy", "nodes_per_replica", "repair", "spares", "copies", "nodes", "mtbf")
        given = {name: row[name] for name in (*names, "seed", "seconds")}
        run, known = Run(**given, step=row["step"]), {name: row[name] for name in FREE}
        assert predicted(run, known)["predicted"] == pytest.approx(row["predicted"], abs=1e-4)
        assert rivals(run, known) == pytest.approx({name: row[name] for name in RIVALS}, rel=1e-3)
    fast, slow = (filed[filed["role"] == role].reset_index() for role in ("fast", "slow"))
    ahead = fast["predicted_rate"] > slow["predicted_rate"]
    assert (ahead == (fast["load"] < 1)).all()


def test_sizes_of_differences_are_predicted_better_than_by_any_rival():
    found = scored(data_folder() / "rehearsals" / "edge")
    error = {name: (found[name] - found["measured"]).abs().mean() for name in ("model", *RIVALS)}
    right = {name: (found[name] * found["measured"] > 0).sum() for name in ("model", *RIVALS)}
    assert right["model"] > max(right[name] for name in RIVALS)
    assert error["model"] < 0.65 * min(error[name] for name in RIVALS)


def test_recorded_bursts_were_filed_before_they_ran():
    folder = data_folder() / "rehearsals" / "bursts"
    found = beside_bursts(folder)
    dates = [pd.read_csv(folder / f"{name}.csv")["date"] for name in ("predictions", "runs")]
    assert dates[0].max() <= dates[1].min()
    assert set(found["kind"]) == {"trace", "racks"}
    racks = found[found["kind"] == "racks"]
    gaps = {
        name: (racks[f"expected_{name}"] - racks["measured"]).abs().mean()
        for name in ("law", "independent")
    }
    assert gaps["law"] < 0.7 * gaps["independent"]
