"""Each claim is one test: the number computed here against the number published there."""

from fnmatch import fnmatchcase
from inspect import signature

import pandas as pd
import pytest

from evidence import computed as ledger_module
from evidence.claims import registry
from evidence.claims.registry import Claim, claims, find_claim
from evidence.claims.theorems import theorems
from evidence.computed import COLUMNS, check, in_words, ledger, summary
from relparallel.__main__ import main
from relparallel.published import PUBLISHED, Fact, facts

SLOW = ("TOPO-096", "TOPO-173", "TOPO-174", "TOPO-175")  # up to millions of servers
CLAIMED = [
    pytest.param(fact, marks=[pytest.mark.slow] if fact.id in SLOW else [], id=fact.id)
    for fact in facts().values()
    if find_claim(fact)
]


@pytest.mark.parametrize("fact", CLAIMED)
def test_published_number(fact):
    row = check(fact)
    assert row["status"] in ("reproduced", "discrepancy"), row
    assert row["status"] == "reproduced" or len(str(row["reason"])) > 30, row


@pytest.mark.slow
def test_at_least_250_check_rows_from_at_least_four_tables_are_reproduced():
    frame = ledger()
    done = frame[(frame["role"] == "check") & (frame["status"] == "reproduced")]
    assert len(done) >= 250
    assert done["topic"].nunique() >= 4


@pytest.mark.slow
def test_published_numbers_are_counted_apart_from_our_own_computations():
    frame = ledger()
    done = frame[(frame["role"] == "check") & (frame["status"] == "reproduced")]
    count = done["origin"].value_counts()
    assert count[list(PUBLISHED)].sum() >= 170
    text = in_words(frame)
    assert f"{count['printed'] + count['artefact']} published numbers" in text
    assert f"{count['formula']} values of published formulas" in text
    assert f"{count['second route']} second computations of ours" in text


def test_a_printed_number_that_does_not_agree_says_what_kind_of_difference_it_is():
    """The models' rows: every size that the digits do not allow."""
    frame = ledger("models")
    off = frame[frame["status"] == "discrepancy"]
    assert len(off) < len(frame) / 2
    assert off["reason"].str.match("a (naming|rounding|part left out): ").all()


@pytest.mark.slow
def test_the_ledger_loses_no_row():
    frame = ledger()
    assert tuple(frame.columns) == COLUMNS
    assert set(facts()) <= set(frame["id"])
    assert not frame["id"].duplicated().any()
    assert summary(frame)["total"].sum() == len(frame)
    assert (frame.loc[frame["status"] == "open", "reason"] != "").all()


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: f"{claim.ids[0]} {claim.quantity}")
def test_every_claim_has_a_published_row(claim):
    """Each id of its entry, alone or as a pattern, is in ``data/published/*.csv``."""
    where = f"{claim.function.__module__}, entry {' '.join(claim.ids)}"
    for pattern in claim.ids:
        found = [fact for fact in facts().values() if fnmatchcase(fact.id, pattern)]
        assert found, (
            f"{where}: no id in data/published is {pattern}; add its row there, or correct the id"
        )
    own = [fact for fact in facts().values() if claim.covers(fact)]
    assert own, (
        f"{where}: rows {claim.ids} exist, but none has this system and quantity; correct one of "
        "them"
    )
    for fact in own:
        module = claim.function.__module__.rpartition(".")[2]
        assert module in registry._MODULES[fact.topic].split(), (
            f"{where}: enter {module} under {fact.topic}"
        )
        missing = [
            n
            for n, p in signature(claim.function).parameters.items()
            if p.default is p.empty and n not in {*fact.inputs, "fact"}
        ]
        assert not missing, (
            f"{where}: name parameters as the inputs of {fact.id}, {fact.inputs_text!r}"
        )
    assert set(claim.discrepancies) <= {fact.id for fact in own}, (
        f"{where}: a discrepancy names no row"
    )


def test_ids_of_theorems_are_unique():
    ids = [theorem.id for theorem in theorems()]
    assert len(ids) == len(set(ids))


def fact(**changes) -> Fact:
    return Fact(
        **{
            "id": "X-1",
            "topic": "t",
            "system": "s",
            "quantity": "q",
            "inputs_text": "k=4",
            "value_text": "64",
            "unit": "u",
            "tolerance": "exact",
            "source": "a paper",
            "confidence": "confirmed",
            "role": "check",
            "origin": "printed",
            "digits": 0,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("function", "discrepancies", "status"),
    [
        (lambda k: k**3, {}, "reproduced"),
        (lambda k: k**3 + 1, {}, "failed"),
        (lambda k: k**3 + 1, {"X-1": "the source counts one more"}, "discrepancy"),
        (lambda k: k**3, {"X-1": "an outdated declaration"}, "failed"),
        (lambda hosts: hosts, {}, "failed"),
        (lambda k: (k, k), {}, "failed"),
        (lambda k: 1 / 0, {}, "failed"),
    ],
)
def test_status_follows_from_the_comparison(monkeypatch, function, discrepancies, status):
    claim = Claim(function=function, ids=("X-*",), discrepancies=discrepancies)
    monkeypatch.setattr(ledger_module, "find_claim", lambda fact: claim)
    assert check(fact())["status"] == status


def test_a_row_without_a_model_is_open_and_says_why(monkeypatch):
    monkeypatch.setattr(ledger_module, "find_claim", lambda fact: None)
    row = check(fact(role="quoted"))
    assert (row["status"], row["computed"]) == ("open", "")
    assert "not public" in str(row["reason"])


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_all_rows(tmp_path, capsys):
    target = tmp_path / "ledger.csv"
    assert main(["ledger", "--csv", str(target)]) == 0
    assert "reproduced" in capsys.readouterr().out
    frame = pd.read_csv(target, dtype=str)
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == len(ledger())
    assert list(tmp_path.iterdir()) == [target]


def test_a_printed_ledger_fits_in_80_columns_begins_with_counts_and_says_the_reasons(
    monkeypatch, capsys
):
    frame = ledger("models")
    frame.loc[frame.index[frame["status"] == "reproduced"][0], ["status", "reason"]] = "failed", "x"
    monkeypatch.setattr(ledger_module, "ledger", lambda: frame)
    monkeypatch.setenv("COLUMNS", "200")
    assert ledger_module.print_ledger() == 1
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith("Reproduced: ")
    count = frame["status"].value_counts()
    counts = f"models {count['reproduced']} {count['discrepancy']} 1 0 {len(frame)}"
    assert counts in " ".join(shown.split())
    assert shown.index("failed: ") < shown.index("discrepancy: ")
    reasons = frame.loc[frame["status"] == "discrepancy", "reason"]
    assert len(reasons) > 1
    assert all(reason in " ".join(shown.split()) for reason in reasons)


def test_counts_of_subsets_are_whole_numbers_beyond_what_floats_hold():
    """The sum over sizes; hosts' links are no part of the switches' count."""
    from evidence.claims.network_reliability import (
        connecting_subsets,
        connecting_subsets_by_size,
    )

    ways = connecting_subsets_by_size("grid(8, 8)", "all vertices")
    assert len(ways) - 1 == 112
    count = connecting_subsets("grid(8, 8)", 112, "all vertices")
    assert count == sum(ways) > 2**53
    assert count % 2**40  # a float of this size ends in many zeros
    switches = connecting_subsets_by_size("fat_tree(4)", "switches")
    assert sum(switches) == connecting_subsets("fat_tree(4)", 32, "switches") == 92356125
