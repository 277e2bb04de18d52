"""Published recipes: what they are, and that a plan thinks of them as those who ran them did."""

import pytest

from evidence.recipes import recipe_runs, recipes
from relparallel.published import shipped_rows


def test_every_recipe_is_a_run_and_says_what_its_source_leaves_out():
    runs, rows = recipe_runs(), shipped_rows("recipes.csv")
    assert len(runs) == len(rows) == 13
    for row in rows:
        changed = any(row[name] for name in ("virtual_stages", "options", "software", "recompute"))
        assert changed == bool(row["source"])
        assert runs[row["recipe"]].id == row["run"]
    assert len({run.id for run in runs.values()}) == len(runs)


def test_times_are_those_of_the_sources():
    """Meta prints 400 TFLOP/s; DeepSeek 180,000 GPU-hours for a trillion tokens."""
    runs = recipe_runs()
    meta, deepseek = runs["Llama 3 405B, Meta, 16,384 H100"], runs["DeepSeek-V3 fp8, 2,048 H800"]
    rate = meta.model.flops_per_iteration(2048) / (meta.time * 16384)
    assert rate == pytest.approx(400e12)
    assert 1e12 / deepseek.throughput * 2048 / 3600 == pytest.approx(180e3, rel=1e-3)


@pytest.mark.slow
def test_recipes_fit_lie_in_their_intervals_and_lose_little():
    table = recipes()
    assert table["fits"].all()
    assert table["inside"].sum() >= len(table) - 1
    assert (table["loses [%]"] <= 5).sum() >= 8
    assert (table["loses [%]"] < 26).all()
