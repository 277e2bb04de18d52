"""The reading list is complete, and what a row says of its model is true."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from evidence.claims.registry import find_claim
from evidence.claims.theorems import theorems
from evidence.computed import ORIGINS, belongs, systems
from relparallel.published import data_folder, facts

ROOT = Path(__file__).resolve().parents[2]
ROWS = pd.read_csv(data_folder() / "systems.csv", dtype=str, keep_default_na=False).to_dict(
    "records"
)


def test_no_system_is_lost():
    assert len(ROWS) >= 122
    assert len({row["system"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["system"])
def test_a_system_with_a_model_shows_it_and_an_open_one_claims_nothing(row):
    if row["status"] == "open":
        assert (row["module"], row["notebook"], row["names"]) == ("", "", "")
        return
    assert row["status"] in ("working", "partial")
    assert find_spec(row["module"])
    assert (ROOT / "notebooks" / f"{row['notebook']}.ipynb").is_file() or row["status"] == "partial"


@cache
def claimed() -> set[str]:
    """Systems of all rows that a claim computes, and of all theorems."""
    return {fact.system for fact in facts().values() if find_claim(fact)} | {
        t.system for t in theorems()
    }


def test_every_claimed_row_belongs_to_a_system_that_has_a_model():
    owners = {
        name: [r for r in ROWS if belongs(name, r["system"], r["names"])] for name in claimed()
    }
    assert not [name for name, rows in owners.items() if not rows]
    assert not [
        name for name, rows in owners.items() if any(row["status"] == "open" for row in rows)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["system"])
def test_every_name_of_a_system_is_one_of_a_claimed_row(row):
    for name in filter(None, row["names"].split(";")):
        assert any(belongs(system, name.strip(), "") for system in claimed()), name


@pytest.mark.slow  # computes the whole ledger
def test_every_model_reproduces_something_of_its_own():
    table = systems().set_index("system")
    assert list(table.index) == [row["system"] for row in ROWS]
    # BERT prints two sizes only, and both are discrepancies that give their reason.
    without = table.index[(table["reproduced"] == 0) & (table["status"] != "open")]
    assert set(without) <= {"BERT"}
    assert (table[list(ORIGINS)].sum(axis=1) == table["reproduced"]).all()
    # Rows of other schedules share their ids with those of 1F1B, and count only for their own.
    assert (
        table.loc["1F1B / PipeDream-Flush", "reproduced"]
        < table.loc["Pipeline parallelism", "reproduced"]
    )
