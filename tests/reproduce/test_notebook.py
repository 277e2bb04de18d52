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
    results,
    set_back,
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


def test_results_are_the_lines_of_cells_with_the_tag():
    def cell(tags, text):
        return {
            "cell_type": "code",
            "metadata": {"tags": tags},
            "outputs": [{"output_type": "stream", "text": text}],
        }

    cells = [
        cell(["result"], ["kept = 95.7\n", "no value\n", "best = TP8 PP8\n"]),
        cell([], ["lost = 1\n"]),
    ]
    assert results(cells) == {"kept": "95.7", "best": "TP8 PP8"}


TEXT = (
    "# A title\n\n**Answer.** 96 %.\n\n![A](../figures/43-a.svg)\n\n**Figure.** A day.\n\n## Next"
)


def run_with(**values):
    """A notebook after a run: injected values below the parameters, text above and below."""
    told = {"cell_type": "markdown", "id": "told", "metadata": {}, "source": TEXT}
    injected = {
        "cell_type": "code",
        "id": "injected",
        "metadata": {"tags": ["injected-parameters"]},
        "outputs": [],
        "source": "",
    }
    defaults = {"mttr_hours": 24.0, "nodes": 2048, "quick": False}
    return set_back({"cells": [told, injected, told | {"id": "below"}]}, values, defaults)["cells"]


def test_text_written_for_other_values_is_set_back_and_a_banner_says_so():
    above, _, banner, below = run_with(mttr_hours=6.0, nodes=2048, quick=True)
    said = banner["source"]
    assert "Run with mttr_hours = 6.0 (default 24.0), quick = True (default False)." in said
    assert "本次运行取 mttr_hours = 6.0（默认 24.0）" in said
    assert "nodes" not in said
    quoted = (
        "\n> **Answer.** 96 %.\n>\n![A](../figures/43-a.svg)\n>\n> **Figure.** A day.\n>\n## Next"
    )
    assert above["source"].startswith("# A title\n> *What is set back like this")
    assert above["source"].endswith(quoted)
    assert below["source"] == f"# A title\n>{quoted}"


def test_text_stays_as_it_is_where_the_values_are_the_defaults():
    assert [cell["source"] for cell in run_with(mttr_hours=24.0)] == [TEXT, "", TEXT]
