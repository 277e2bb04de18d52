"""The stored form of a notebook, and what its digests see."""

import copy
import json
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from reproduce.notebook import (
    NotebookError,
    code_digest,
    normal_form,
    outputs_digest,
    read,
)


def notebook(**changes):
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# 标题\ntext"},
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "b",
            "metadata": {"tags": []},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": "1\n2\n"}],
            "source": "print(1)\nprint(2)",
        },
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | changes


def as_run(content, start, cell_id):
    """The same notebook as papermill leaves it after a run at some time."""
    run = copy.deepcopy(content)
    run["metadata"] |= {
        "papermill": {"start_time": start},
        "language_info": {"name": "python", "version": "3.11.7"},
    }
    run["metadata"]["kernelspec"] = {
        "display_name": "my environment",
        "name": "mine",
        "language": "python",
    }
    for cell in run["cells"]:
        cell["metadata"] |= {
            "papermill": {"duration": start},
            "execution": {"iopub.execute_input": start},
        }
    injected = {
        "execution_count": 2,
        "id": cell_id,
        "metadata": {"tags": ["injected-parameters"]},
        "outputs": [],
    }
    run["cells"].append({"cell_type": "code", "source": "x = 1", **injected})
    return run


def test_two_runs_have_one_normal_form():
    first, second = as_run(notebook(), "10:00", "abc"), as_run(notebook(), "11:30", "xyz")
    assert normal_form(first) == normal_form(second)


def test_normal_form_is_stable_and_readable():
    text = normal_form(notebook())
    assert normal_form(json.loads(text)) == text
    assert "标题" in text.decode()
    assert text.endswith(b"}\n")
    assert json.loads(text)["cells"][1]["metadata"] == {}
    assert json.loads(text)["cells"][1]["source"] == ["print(1)\n", "print(2)"]


@given(cuts=st.sets(st.integers(0, 20)))
def test_where_the_kernel_cut_a_stream_does_not_matter(cuts):
    text, bounds = "alpha\nbeta\ngamma\ndelta", sorted({0, *cuts, 22})
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    content = notebook()
    content["cells"][1]["outputs"] = [
        {"name": "stdout", "output_type": "stream", "text": p} for p in pieces
    ]
    whole = notebook()
    whole["cells"][1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}]
    assert normal_form(content) == normal_form(whole)
    assert outputs_digest(content) == outputs_digest(whole)


def test_streams_are_not_joined_across_another_output():
    content, shown = (
        notebook(),
        {"data": {"text/plain": "x"}, "metadata": {}, "output_type": "display_data"},
    )
    stream = {"name": "stdout", "output_type": "stream", "text": ["1"]}
    content["cells"][1]["outputs"] = [stream, shown, stream]
    assert json.loads(normal_form(content))["cells"][1]["outputs"] == [stream, shown, stream]


def test_digests_see_code_and_outputs_and_not_prose():
    before = notebook()
    prose, code, output, tagged = (copy.deepcopy(before) for _ in range(4))
    prose["cells"][0]["source"] = "# other"
    code["cells"][1]["source"] = "print(1)"
    output["cells"][1]["outputs"] = []
    tagged["cells"][1]["metadata"] = {"tags": ["parameters"]}
    assert code_digest(prose) == code_digest(output) == code_digest(before)
    assert outputs_digest(prose) == outputs_digest(before)
    assert len({code_digest(c) for c in (before, code, tagged)}) == 3
    assert outputs_digest(output) != outputs_digest(before)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps(notebook(nbformat_minor=4)),
        json.dumps(notebook(cells=[{"source": ""}])),
    ],
)
def test_a_file_that_is_no_such_notebook_is_refused_by_name(tmp_path, text):
    path = tmp_path / "01_bad.ipynb"
    path.write_text(text)
    with pytest.raises(NotebookError, match=r"01_bad\.ipynb"):
        read(path)
