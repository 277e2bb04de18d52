"""Parameters are read without running anything, and a wrong one is refused before anything runs."""

import pytest
from hypothesis import given, strategies as st

from reproduce import NotebookError
from reproduce.notebook import read
from reproduce.parameters import checked, declared, ranges

CELL = """\
mttr_hours = 24.0  # h; 0.01 to 1e3
nodes: int = 2048
rates = (1e-3, 2e-3)
names = ["ring", "tree"]
method = "exact"
limit = None
shift = -1
quick = False
"""


@pytest.fixture
def notebook(toy):
    return read(toy.write("42_example", parameters=CELL))


def test_the_parameters_cell_is_read_as_literals(notebook):
    assert declared(notebook) == {
        "mttr_hours": 24.0,
        "nodes": 2048,
        "rates": (1e-3, 2e-3),
        "names": ["ring", "tree"],
        "method": "exact",
        "limit": None,
        "shift": -1,
        "quick": False,
    }


def test_a_comment_ends_in_the_range_outside_which_a_value_is_refused(notebook):
    assert ranges(notebook) == {"mttr_hours": (0.01, 1000.0)}
    assert checked(notebook, {"mttr_hours": "0.01"}) == {"mttr_hours": 0.01}
    told = r"mttr_hours of 42_example must be from 0.01 to 1000 \(its default is 24.0\), got "
    for wrong in ("0", "1001", "-5"):
        with pytest.raises(NotebookError, match=told + wrong):
            checked(notebook, {"mttr_hours": wrong})


def test_a_notebook_without_the_cell_has_no_parameters(toy):
    path = toy.write("01_plain")
    path.write_text(path.read_text().replace('"parameters"', '"other"'))
    assert declared(read(path)) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mttr_hours=6", 6.0),
        ("mttr_hours=1e-2", 0.01),
        ("nodes=-4", -4),
        ("rates=1e-4,5", (1e-4, 5.0)),
        ("rates=[1]", (1.0,)),
        ("names=['a']", ["a"]),
        ("method=young", "young"),
        ("method='daly'", "daly"),
        ("method=1e3", "1e3"),
        ("method=None", "None"),
        ("limit=3", 3),
        ("quick=True", True),
        ("quick=true", True),
    ],
)
def test_a_value_takes_the_type_of_its_default(notebook, text, value):
    name, _, written = text.partition("=")
    got = checked(notebook, {name: written})[name]
    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "mttr_hours=abc",
        "mttr_hours=True",
        "mttr_hours=None",
        "mttr_hours=nan",
        "mttr_hours=1e999",
        "mttr_hours='6'",
        "mttr_hours=",
        "nodes=1.5",
        "nodes=2.0",
        "nodes=True",
        "rates=1e-3",
        "rates=('a',)",
        "names=[1]",
        "limit=abc",
        "quick=1",
        "quick=yes",
    ],
)
def test_an_ill_typed_value_is_refused_with_the_known_parameters(notebook, text):
    name, _, written = text.partition("=")
    with pytest.raises(NotebookError) as refused:
        checked(notebook, {name: written})
    for part in (
        f"parameter {name}",
        "42_example",
        repr(written),
        "nodes: int = 2048",
        "quick: bool = False",
    ):
        assert part in str(refused.value)


def test_an_unknown_name_is_refused_with_the_nearest_one(notebook):
    with pytest.raises(
        NotebookError, match=r"no parameter mttr_hour \(did you mean mttr_hours\?\).* nodes: int"
    ):
        checked(notebook, {"mttr_hour": "6"})


@pytest.mark.parametrize(
    "line", ["x = 2 * 3", "x = y = 1", "print(1)", "a.b = 1", "x: int", "for x in y: pass", "x ="]
)
def test_anything_but_literals_in_the_cell_is_refused(toy, line):
    with pytest.raises(NotebookError, match="parameters cell of 01_odd"):
        declared(read(toy.write("01_odd", parameters=line)))


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_survives_being_written(tmp_path_factory, value):
    from reproduce.parameters import _converted, _literal

    assert _converted(_literal(repr(value), 1.0), 1.0) == value
