"""The reading list is complete, and what a row says of its model is true."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from relparallel.ledger import systems
from relparallel.published import data_folder

ROOT = Path(__file__).parent.parent
ROWS = pd.read_csv(data_folder() / "systems.csv", dtype=str, keep_default_na=False).to_dict("records")
PARTS = ["11", "12", "21", "22", "23", "31", "32", "33", "34", "35", "36", "37", "38", "41", "42", "43"]


def test_no_system_is_lost():
    assert len(ROWS) >= 122
    assert len({row["system"] for row in ROWS}) == len(ROWS)
    assert {row["part"] for row in ROWS} == set(PARTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["system"])
def test_a_system_with_a_model_shows_it_and_an_open_one_claims_nothing(row):
    named = (row["module"], row["notebook"], row["claims"])
    if row["status"] == "open":
        assert named == ("", "", "")
        return
    assert row["status"] in ("working", "partial")
    assert find_spec(row["module"])
    assert (ROOT / "notebooks" / f"{row['notebook']}.ipynb").is_file()


@pytest.mark.slow  # computes the whole ledger
def test_every_model_reproduces_something():
    table = systems().set_index("system")
    assert list(table.index) == [row["system"] for row in ROWS]
    assert (table["reproduced"][table["status"] != "open"] > 0).all()
