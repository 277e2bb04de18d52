"""The benchmark itself: every library gives our answer, and what is skipped says why."""

import runpy
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from relparallel.metrics import hop_statistics
from relparallel.published import data_folder
from relparallel.topology import Topology, bcube, fat_tree, torus

ROOT = Path(__file__).resolve().parents[2]
RUN = runpy.run_path(str(ROOT / "tests" / "benchmarks" / "run.py"))
GRAPHS = [fat_tree(4), bcube(3, 1), torus((3, 4)), Topology.from_networkx(nx.path_graph(9))]
STORED = pd.read_csv(data_folder() / "benchmarks" / "hops.csv", keep_default_na=False)


@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize("peer", RUN["PEERS"], ids=lambda peer: peer.name)
@pytest.mark.parametrize("t", GRAPHS, ids=repr)
def test_every_library_gives_the_same_histogram(peer, t):
    plain = RUN["forwarding"](t)
    assert peer.run(peer.build(plain)) == hop_statistics(plain).histogram


def test_a_library_is_skipped_for_its_matrix_or_its_time(monkeypatch):
    peers = {peer.name: peer for peer in RUN["PEERS"]}
    reason, settings = RUN["reason_to_skip"], RUN["reason_to_skip"].__globals__
    t = RUN["forwarding"](fat_tree(4))
    graph = peers["networkx"].build(t)
    assert [reason(peer, t, graph) for peer in peers.values()] == [""] * len(peers)
    monkeypatch.setitem(settings, "MEMORY", 10_000)
    monkeypatch.setitem(settings, "LIMIT", 0.0)
    assert reason(peers["scipy"], t, graph) == "needs a matrix of 0.0 GB"
    assert reason(peers["networkx"], t, graph).startswith("would take about")
    assert reason(peers["igraph"], t, graph) == ""


def test_the_table_is_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "made" / "hops.csv"
    rows = RUN["measure"]("torus", torus((3, 4)))
    RUN["write"](rows, path)
    frame = pd.read_csv(path)
    assert frame["library"].tolist() == [peer.name for peer in RUN["PEERS"]]
    assert frame["ratio_to_ours"].iloc[0] == 1
    assert (frame["rounds"] == RUN["ROUNDS"]).all()
    before = path.read_bytes()
    monkeypatch.setattr(
        RUN["os"], "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        RUN["write"](rows[:1], path)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_the_stored_table_has_every_graph_and_library_and_says_where_it_was_made():
    assert set(STORED["graph"]) == set(RUN["GRAPHS"])
    for _, part in STORED.groupby("graph"):
        assert part["library"].tolist() == [peer.name for peer in RUN["PEERS"]]
    measured = STORED["median_cpu_s"] != ""
    assert (measured == (STORED["skipped"] == "")).all()
    assert np.all(STORED["rounds"][measured] >= 1)
    for column in ("version", "date", "python", "machine"):
        assert (STORED[column] != "").all()


def test_an_unknown_graph_is_refused(capsys):
    with pytest.raises(SystemExit):
        RUN["main"](["clique"])
    assert "graphs must be some of bcube(8,2)" in capsys.readouterr().err
