"""The benchmark itself: every way gives the same answer, and what has no answer says why."""

import importlib.util
import runpy
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = runpy.run_path(str(ROOT / "tests" / "benchmarks" / "reliability.py"))


def test_our_row_of_a_tiny_graph_and_a_reason_for_a_missing_peer(monkeypatch):
    monkeypatch.setitem(BENCH["measure"].__globals__, "ROUNDS", 1)
    rows = {row["method"]: row for row in BENCH["measure"]("dcell(4,1)", "two")}
    assert list(rows) == list(BENCH["METHODS"])
    assert rows["relparallel"]["ratio_to_ours"] == 1
    assert rows["relparallel"]["rounds"] == 1
    assert rows["relparallel"]["peak_mb"] >= rows["relparallel"]["base_mb"] > 10
    for row in rows.values():
        assert (row["median_cpu_s"] is None) == bool(row["skipped"])
        missing = importlib.util.find_spec("graphillion") is None and row["method"] != "relparallel"
        assert ("graphillion" in row["skipped"]) == missing


def test_graphs_and_terminals_are_those_of_the_tables():
    sizes = {name: (len(graph()), graph().size()) for name, graph in BENCH["GRAPHS"].items()}
    assert sizes["fat-tree 6"] == (45, 108)
    assert sizes["bcube(4,1)"] == (24, 32)
    graph, pair = BENCH["case"]("torus 6x6", "two")
    assert nx.shortest_path_length(graph, *pair) == 6
    assert {frozenset(edge) for edge in BENCH["our_order"](graph, pair)} == set(
        map(frozenset, graph.edges)
    )


def test_an_unknown_graph_is_refused(capsys):
    with pytest.raises(SystemExit):
        BENCH["main"](["clique"])
    assert "graphs must be some of grid 8x8" in capsys.readouterr().err
