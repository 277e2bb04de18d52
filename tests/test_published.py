"""Published rows are read completely, and tolerances mean what their text says."""

import csv
import io
import json
import re
from decimal import Decimal

import pytest
from tolerance_text import tolerance_columns

from evidence.computed import agrees
from relparallel import published, units
from relparallel.published import PUBLISHED, Fact, data_folder, facts, read_inputs, topics


def row(value="1.0", tolerance="exact", inputs="") -> Fact:
    return Fact(
        id="X-1",
        topic="t",
        system="s",
        quantity="q",
        inputs_text=inputs,
        value_text=value,
        unit="u",
        tolerance=tolerance,
        source="a paper",
        confidence="confirmed",
        role="check",
        origin="printed",
        **tolerance_columns(tolerance, read_inputs(inputs)),
    )


@pytest.fixture(autouse=True)
def _only_what_the_project_ships(monkeypatch):
    """A folder of more rows, where the machine has one, is not what is tested here."""
    monkeypatch.delenv("RELPARALLEL_DATA", raising=False)
    forget()
    yield
    monkeypatch.undo()
    forget()


def forget() -> None:
    """Have the tables looked for again."""
    published._tables.cache_clear()
    published._all_facts.cache_clear()


def test_every_row_has_an_id_a_value_a_unit_a_source_and_a_role():
    assert len(facts()) > 1600
    for fact in facts().values():
        assert fact.id, fact
        assert fact.system, fact
        assert fact.quantity, fact
        assert fact.value_text, fact
        assert fact.unit, fact
        assert fact.tolerance, fact
        assert fact.source, fact
        assert fact.confidence in ("confirmed", "memory-high"), fact
        assert fact.role in ("check", "input", "quoted"), fact
        assert fact.origin in ("printed", "artefact", "formula", "second route", "unverified"), fact


@pytest.mark.parametrize(
    ("origin", "confidence", "read"),
    [
        ("printed", "confirmed", "printed"),
        ("printed", "memory-high", "unverified"),
        ("artefact", "memory-high", "unverified"),
        ("second route", "memory-high", "second route"),
        ("", "confirmed", "unstated"),
    ],
)
def test_only_what_was_read_in_its_source_is_published(origin, confidence, read):
    text = dict.fromkeys(
        ("id", "system", "quantity", "inputs", "value", "unit", "tolerance", "source"), "1"
    )
    fact = published._fact("t", text | {"origin": origin, "confidence": confidence})
    assert fact.origin == read
    assert (read in PUBLISHED) == (origin in PUBLISHED and confidence == "confirmed")


def test_no_recomputation_is_called_published():
    ours = (
        "recomputed independently",
        "closed form",
        "simulation",
        "brute force",
        "frontier DP",
        "scipy fit",
    )
    own = [
        fact for fact in facts().values() if fact.source.startswith(ours) and fact.role == "check"
    ]
    assert len(own) > 150
    assert not [fact.id for fact in own if fact.origin in PUBLISHED]


def test_ids_are_unique_over_all_tables():
    tables = [path.read_text("utf-8") for path in (data_folder() / "published").glob("*.csv")]
    ids = [row["id"] for table in tables for row in csv.DictReader(io.StringIO(table, newline=""))]
    assert len(ids) == len(set(ids))


def test_a_topic_is_a_table():
    assert set(topics()) == {p.stem for p in (data_folder() / "published").glob("*.csv")}
    with pytest.raises(ValueError, match="topic must be one of"):
        facts("no-such-topic")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16", (16,)),
        ("4.8695;1.2695", (4.8695, 1.2695)),
        ("4 / 17 / 67", (4, 17, 67)),
        ("0.12886 vs 0.98412", (0.12886, 0.98412)),
        ("0 0 7 12", (0, 0, 7, 12)),
        ("2:10;4:20", (2, 10, 4, 20)),
        ("64;512;;9", (64, 512, None, 9)),
        ("1.6e-23", (1.6e-23,)),
        ("18 / 6+12/d", (18, "6+12/d")),
    ],
)
def test_values_are_cut_into_their_numbers(text, values):
    assert row(text).values == values


def test_inputs_with_units_come_in_si():
    read = read_inputs(
        "C=60 s; MTBF=3 h; rate=3.79e-3/d; size=7 GB; p=9/10; on=True; gpu=A100-80GB; k=4"
    )
    assert read["MTBF"] == 3 * units.HOUR
    assert read["rate"] == pytest.approx(3.79e-3 / units.DAY)
    assert (read["C"], read["size"], read["p"], read["on"], read["gpu"], read["k"]) == (
        60.0,
        7e9,
        0.9,
        True,
        "A100-80GB",
        4,
    )
    assert read_inputs("n=4,k=2; t_k=t_(k-1)(t_(k-1)+1)")["n"] == 4


@pytest.mark.parametrize(
    ("value", "tolerance", "inside", "outside"),
    [
        ("16", "0", 16, 17),
        ("16", "exact", 16, 16.0000001),
        ("0.054688", "exact", 0.0546875, 0.0546886),
        ("117e6", "printed", 117.49e6, 117.51e6),
        ("130.", "printed", 129.6, 129.4),
        ("15.4e9", "printed", 15.45e9, 15.46e9),
        ("100", "ours: 7 % (model against measurement)", 106.9, 107.1),
        ("5.466667", "1e-5", 5.466676, 5.466680),
        ("2.0e-12", "rel 1e-12", 2.0e-12 * (1 + 9e-13), 2.0e-12 * (1 + 3e-12)),
        ("10.0", "1e-4 rel", 10.0009, 10.002),
        ("100", "5 %", 104.9, 105.1),
        ("100", "0.5% (paper 101)", 100.49, 100.6),
        ("100", "abs 2", 101.9, 102.1),
        ("31.4062", "3 significant digits in the table", 31.44, 31.46),
        ("62.0", "0.15 percentage point", 62.14, 62.16),
        ("0.01", "5% abs", 0.0599, 0.0601),
    ],
)
def test_a_tolerance_admits_what_it_says_and_no_more(value, tolerance, inside, outside):
    fact = row(value, tolerance)
    assert agrees(fact, [inside]).within is True
    assert agrees(fact, [outside]).within is False


def test_columns_of_a_tolerance_are_what_its_words_say():
    for fact in facts().values():
        columns = dict.fromkeys(("rtol", "atol", "digits")) | tolerance_columns(
            fact.tolerance, fact.inputs
        )
        assert {name: getattr(fact, name) for name in columns} == columns, fact.id


def somebody_elses():
    """Rows that a model computes and that hold a number of somebody else."""
    return [
        fact
        for fact in facts().values()
        if fact.role == "check" and fact.origin in (*PUBLISHED, "unverified")
    ]


def test_a_tolerance_is_printed_or_ours_and_says_why():
    """What a paper prints is met to its digits unless a model predicts it or chance decides it."""
    for fact in somebody_elses():
        if fact.tolerance == "printed":
            continue
        assert re.fullmatch(r"ours: .*\d.* \(.+\)", fact.tolerance), fact
        chance = ("(model against measurement)", "(random search)")
        assert fact.origin == "artefact" or fact.tolerance.endswith(chance), fact


def test_a_printed_tolerance_is_half_a_unit_of_the_last_digit():
    """And nothing at all for a whole number: it is a count."""
    printed = [fact for fact in somebody_elses() if fact.tolerance == "printed"]
    assert len(printed) > 150
    for fact in printed:
        numbers = list(fact.values)
        for place, text in enumerate(fact.tokens):
            if not text:
                continue
            number = Decimal(text)
            half = Decimal((0, (5,), number.as_tuple().exponent - 1))
            if isinstance(fact.values[place], int):
                half = Decimal(0)
            for share, within in (("0.999", True), ("1.001", False)):
                off = float(number + half * Decimal(share)) if half else int(number) + 1 - within
                moved = [*numbers[:place], off, *numbers[place + 1 :]]
                assert agrees(fact, moved).within is within, (fact.id, text, off)


def test_a_tolerance_may_divide_by_an_input():
    fact = row("100", "0.5/tflops rounding", "tflops=50")
    assert agrees(fact, [100.99]).within is True
    assert agrees(fact, [101.01]).within is False


@pytest.mark.parametrize(
    "text", ["-", "n/a", "as stated", "machine dependent", "lower bound", "2x", "factor 10"]
)
def test_what_is_no_number_is_no_tolerance(text):
    assert agrees(row("1.0", text), [1.0]).within is None


def test_every_number_of_a_row_has_to_agree():
    fact = row("4.87;1.27", "0.01")
    assert agrees(fact, [4.87, 1.27]).within is True
    assert agrees(fact, [4.87, 1.29]).within is False
    with pytest.raises(ValueError, match="computed must hold 2 values for X-1, got 1"):
        agrees(fact, [4.87])


def test_more_rows_come_from_the_data_folder_when_it_is_given(tmp_path, monkeypatch):
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "extra.csv").write_text(
        "id,system,quantity,inputs,value,unit,tolerance,source,confidence\n"
        "EXTRA-1,s,q,k=4,1,u,exact,a paper,confirmed\nTOPO-001,s,q,k=4,999,u,exact,a "
        "paper,confirmed\n"
    )
    monkeypatch.setenv("RELPARALLEL_DATA", str(tmp_path))
    forget()
    assert (facts()["EXTRA-1"].role, facts()["EXTRA-1"].origin) == ("input", "unstated")
    assert facts()["TOPO-001"].value == 16  # what the project ships comes first


def test_an_id_that_stands_twice_in_a_table_is_refused_whoever_reads_it(tmp_path, monkeypatch):
    (tmp_path / "facts").mkdir()
    head = "id,system,quantity,inputs,value,unit,tolerance,source,confidence\n"
    (tmp_path / "facts" / "extra.csv").write_text(
        head + 2 * "EXTRA-1,s,q,k=4,1,u,exact,a paper,confirmed\n"
    )
    monkeypatch.setenv("RELPARALLEL_DATA", str(tmp_path))
    forget()
    for read in (facts, lambda: facts("extra")):
        with pytest.raises(ValueError, match="id 'EXTRA-1' stands twice in"):
            read()


@pytest.mark.parametrize(
    "topic", sorted(p.stem for p in (data_folder() / "published").glob("*.csv"))
)
def test_inputs_as_json_say_what_the_text_says(topic):
    """``inputs_si`` of a new row is what the message of this test shows."""
    for fact in facts(topic).values():
        said = read_inputs(fact.inputs_text)
        assert fact.inputs_si == (json.dumps(said, ensure_ascii=False) if said else ""), fact.id
