"""A new notebook obeys the rules of the collection, and refuses a name that does not."""

import re

import pytest

from notebook_cells import Cells
from relparallel.__main__ import main
from reproduce import NotebookError
from reproduce.notebook import normal_form, read
from reproduce.parameters import declared
from reproduce.template import new_notebook


def test_a_new_notebook_runs_and_shows_what_the_collection_asks_for(
    toy, tmp_path_factory, monkeypatch
):
    toy.write("44_first")
    notebook, figures = (
        read(new_notebook("45_my_question", toy.root)),
        tmp_path_factory.mktemp("figures"),
    )
    Cells(notebook).run(figures, monkeypatch)
    first, parameters, *_ = notebook.content["cells"]
    assert "?" in first["source"][0]
    assert "中文摘要" in "".join(first["source"])
    assert declared(notebook)["quick"] is False
    assert parameters["metadata"]["tags"] == ["parameters"]
    assert notebook.raw == normal_form(notebook.content)
    (figure,) = re.findall(r"\.\./figures/([^)]+)\)", "".join(first["source"]))
    assert (figures / figure).exists()


@pytest.mark.parametrize("name", ["my_question", "4_x", "45", "45_", "45-x", "45_X", "../45_x", ""])
def test_a_name_is_a_number_and_words(toy, name):
    with pytest.raises(
        NotebookError, match="NAME must be two digits and words, such as 49_my_question"
    ):
        new_notebook(name, toy.root)


def test_a_number_is_given_once(toy, capsys):
    toy.write("44_first")
    assert main(["notebook", "44_second", "--root", str(toy.root)]) == 2
    assert (
        "NAME must begin with a free number, got '44_second' beside 44_first"
        in capsys.readouterr().err
    )
    assert main(["notebook", "45_second", "--root", str(toy.root)]) == 0
    assert "relparallel figures 45" in capsys.readouterr().out
