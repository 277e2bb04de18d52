"""What functions return says in a line what it is, shows a table that is short, and exports it."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import relparallel as rp
from chapters.s23 import resilience_curve
from relparallel._checks import Result, record, whole
from valid_calls import CALLS, returned
from valid_workload import model

# runs every estimator, each of which has an entry of its own
RANDOM = {"reliability.estimator_table"}
NAMES = [name for name in CALLS if name not in RANDOM]


def of_this_package(value: Any) -> list[Any]:
    """The objects of this package that a call has returned."""
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return [inner for entry in value[:5] for inner in of_this_package(entry)]
    own = type(value).__module__.startswith("relparallel") and not isinstance(value, type)
    return [value] if own and dataclasses.is_dataclass(value) else []


@pytest.mark.parametrize("name", NAMES)
def test_a_line_is_short_and_shows_no_array(name):
    for found in of_this_package(returned(name)):
        line = repr(found)
        assert len(line) <= 320, line
        assert "array(" not in line
        assert "\n" not in line
        assert " object at 0x" not in line


@pytest.mark.parametrize("name", NAMES)
def test_a_result_shows_a_short_table_and_exports_it(name):
    for found in of_this_package(returned(name)):
        if isinstance(found, Result):
            table, shown = found.to_frame(), found._repr_html_()
            assert isinstance(table, pd.DataFrame)
            assert len(shown) < 30_000
            assert "<table" in shown
            assert found.to_latex().count(r" \\") >= min(len(table), 1)


def test_what_functions_build_are_results():
    """A frozen dataclass without checked fields is built only by functions; users build records."""
    plain = set()
    for name in NAMES:
        for found in of_this_package(returned(name)):
            built = name.split(".")[1].split()[0] == type(found).__name__  # by its own constructor
            checked = "record" in getattr(type(found), "__post_init__", record).__qualname__
            if not built and not isinstance(found, Result) and not checked:
                plain.add(type(found).__name__)
    assert plain == {"Topology"}  # which has a line of its own


def test_the_line_of_a_record_names_what_differs_from_the_defaults():
    @record
    class Own:
        copies: int = whole(at_least=1)
        more: int = whole(default=3)

    assert repr(Own(copies=2)) == "Own(copies=2)"
    assert repr(Own(copies=2, more=4)) == "Own(copies=2, more=4)"


def test_long_values_become_words():
    @dataclasses.dataclass(frozen=True)
    class Found(Result):
        values: Any
        share: float = 1 / 3

    assert repr(Found(np.arange(1000.0))) == "Found(values=<1000 numbers from 0 to 999>)"
    assert repr(Found([1, 2], share=2 / 3)) == "Found(values=[1, 2], share=0.666667)"
    assert "values=<100 tuple>" in repr(Found(tuple(range(100))))
    assert len(repr(Found("a" * 1000))) < 100
    assert Found([1, 2]).to_frame()["value"].to_list() == ["[1, 2]", 1 / 3]


def test_the_main_answers_say_value_unit_interval_and_method():
    strategy, cluster = rp.Strategy(tensor=8, data=2), rp.cluster("a100-80gb-selene", gpus=16)
    step = rp.step_time(rp.transformer("gpt3-6.7b"), strategy, cluster, global_batch=64)
    assert "s per step, 90 % interval" in repr(step)
    assert step.software in repr(step)
    job = rp.training.Job(
        nodes=64, nodes_per_replica=16, node_rate=4e-8, checkpoint=60, restart=900, pause=30
    )
    goodput = rp.training.relative_goodput(job, "elastic", 3600.0)
    assert f"relative goodput {goodput.share:.2%} with elastic" in repr(goodput)
    assert "GB on the largest of 1 stages" in repr(rp.memory(model(), strategy, 64))


def test_pictures_are_drawn():
    import networkx as nx

    strategy, cluster = rp.Strategy(tensor=8, data=2), rp.cluster("a100-80gb-selene", gpus=16)
    job = rp.training.Job(
        nodes=64, nodes_per_replica=16, node_rate=4e-8, checkpoint=60, restart=900, pause=30
    )
    results = [
        rp.step_time(rp.transformer("gpt3-6.7b"), strategy, cluster, global_batch=64),
        rp.training.relative_goodput(job, "elastic", 3600.0),
        rp.evaluate(nx.cycle_graph(5), terminals=(0, 2), link_up=0.9).importance(),
        resilience_curve(
            rp.topology.fat_tree(4), "switches", [0.1], samples=2, rng=np.random.default_rng(1)
        ),
        returned("training.simulate"),
    ]
    for result in results:
        ax = result.plot()
        assert ax.has_data()
        assert ax.get_xlabel()
        plt.close(ax.figure)
