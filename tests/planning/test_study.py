"""A table of plans for a purchase: rows as of `plan`, whoever computes them, and why some lack."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import relparallel as rp

CLUSTERS = ["a100-80gb-selene", "gb200-186gb-nvl72"]
LIMITS = {"schedule": "1f1b", "tensor": (1, 8), "context": 1}
ASKED = {"gpus": [16, 64], "limits": LIMITS, "global_batch": 256}


def asked(executor=None):
    models = ["gpt3-6.7b", "gpt3-175b"]
    return rp.study(models, CLUSTERS, price=[2.0, 5.0], executor=executor, **ASKED)


@pytest.fixture(scope="module")
def table():
    return asked()


def test_rows_are_those_of_plans_and_say_why_one_lacks(table):
    assert len(table) == 2 * 2 * 2
    fits = table["why not"] == ""
    assert table.loc[~fits, ["model", "cluster", "gpus"]].to_numpy().tolist() == [
        ["gpt3-175b", CLUSTERS[0], 16]
    ]
    assert "must hold the training state of gpt3-175b" in table.loc[~fits, "why not"].item()
    together = rp.plan("gpt3-6.7b", CLUSTERS, price=[2.0, 5.0], **ASKED | {"gpus": [64, 64]})
    plans, rows = together.clusters(), table.query("model == 'gpt3-6.7b' and gpus == 64")
    rows = rows.set_index("cluster").loc[plans.index]
    for name in ("strategy", "1e9 tokens a day", "tokens from", "relative goodput", "cost to"):
        assert rows[name].tolist() == plans[name].tolist()
    best = "best cluster with probability"
    assert rows[best].tolist() == plans[best].tolist()
    assert table[fits].groupby(["model", "gpus"])[best].sum().tolist() == pytest.approx([1] * 4)


def test_the_table_does_not_depend_on_who_computes_it(table):
    with ThreadPoolExecutor(3) as executor:
        assert asked(executor).equals(table)


class Mortal:
    """Takes work as dask does; whoever has the second question dies."""

    count = 0

    def submit(self, function, question):
        self.count += 1
        future = Future()
        if self.count == 2:
            future.set_exception(type("KilledWorker", (Exception,), {})("…"))
        else:
            future.set_result(function(question))
        return future


def test_a_plan_that_is_lost_with_its_workers_says_so_and_stops_no_other(table):
    found = asked(Mortal())
    assert found["why not"][1].startswith("every worker that took it died (out of memory, or ")
    assert found["strategy"].drop(1).equals(table["strategy"].drop(1))


def test_what_has_no_name_is_named_and_clusters_may_have_sizes_of_their_own():
    model = rp.transformer("gpt3-6.7b")
    machines = [rp.cluster(name, gpus=64) for name in CLUSTERS]
    given = {"limits": LIMITS, "rates": {"mine": rp.hardware.llama3_interruptions()}}
    found = rp.study({"own": model}, machines, **given)
    assert found[["model", "cluster", "gpus", "rates"]].to_numpy().tolist() == [
        ["own", name, 64, "mine"] for name in CLUSTERS
    ]
    assert found["best cluster with probability"].sum() == 1
    for wrong in ({"models": model}, {"models": [model, model]}, {"gpus": 8}):
        argument = next(iter(wrong))
        with pytest.raises(ValueError, match=rf"{argument}\b"):
            rp.study(**{"models": {"own": model}, "clusters": machines} | given | wrong)


def test_a_size_that_one_cluster_cannot_have_stops_no_other():
    found = rp.study("gpt3-6.7b", CLUSTERS, 80, limits=LIMITS)
    assert found["why not"][0] == ""
    assert "gpus" in found["why not"][1]
