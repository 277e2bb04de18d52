"""Models from Hugging Face: sizes, what is assumed, and what is refused by name."""

import csv
import json
import os
from pathlib import Path

import pytest

from relparallel.workload import read_config, transformer

DATA = os.environ.get("RELPARALLEL_DATA")
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": False,
}  # fmt: skip


def written(folder: Path, config: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def published() -> list[tuple[str, float]]:
    if not DATA:
        return []
    rows = csv.DictReader((Path(DATA) / "facts/hf-configs.csv").read_text().splitlines())
    whole = [r for r in rows if "ACTIVE" not in r["id"] and r["quantity"] != "support"]
    return [(r["inputs"].removeprefix("config="), float(r["value"])) for r in whole]


@pytest.mark.skipif(not DATA, reason="RELPARALLEL_DATA names no folder")
@pytest.mark.parametrize(("file", "parameters"), published())
def test_parameters_are_those_of_the_checkpoint(file, parameters):
    assert read_config(Path(DATA) / "data" / file).model.parameters == pytest.approx(parameters, rel=5e-3)


@pytest.mark.skipif(not DATA, reason="RELPARALLEL_DATA names no folder")
@pytest.mark.parametrize("name", ["llama-4-scout", "nemotron-h-56b"])
def test_other_kinds_of_layers_are_refused_by_name(name):
    kind = {"llama-4-scout": "llama4", "nemotron-h-56b": "nemotron_h"}[name]
    with pytest.raises(ValueError, match=rf"path must hold a model of .*, got {kind} in"):
        read_config(Path(DATA) / f"data/hf-configs/{name}.json")


def test_a_file_and_the_preset_of_the_same_model_are_equal(tmp_path):
    assert read_config(written(tmp_path, LLAMA)).model == transformer("llama3-8b")


def test_the_length_of_a_sequence_is_said_or_given(tmp_path):
    stretched = LLAMA | {"rope_scaling": {"original_max_position_embeddings": 4096}}
    read = read_config(written(tmp_path, stretched))
    assert read.model.sequence == 4096
    assert read.notes == ("sequences of 4096 tokens, original_max_position_embeddings in the file",)
    assert read_config(written(tmp_path, stretched), sequence=2048).model.sequence == 2048


def test_the_mean_layer_of_t5_has_the_weights_of_both_stacks(tmp_path):
    sizes = {"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
             "num_heads": 8, "vocab_size": 32128}  # fmt: skip
    model = read_config(written(tmp_path, sizes)).model
    attention, block = 4 * 512 * 512, 2 * 512 * 2048
    assert model.layer_weights == 6 * (attention + block) + 6 * (2 * attention + block)


@pytest.mark.parametrize(("change", "said"), [
    ({"mamba_state": 16}, "got mamba_state in"),
    ({"moe_layer_freq": 2}, "moe_layer_freq is modelled as 1 only, got 2"),
    ({"hidden_size": "many"}, "hidden must be an integer"),
    ({"hidden_size": None}, "hidden_size or n_embd or d_model is missing"),
    ({"num_attention_heads": 7}, "heads must divide hidden"),
    ({"hidden_size": [1]}, "hidden must be an integer"),
    ({"max_position_embeddings": None}, "none of .* is there: give sequence"),
    ({"n_layer": 3}, r"path must state layers once, got \[32, 3\]"),
    ({"model_type": ["llama"]}, "path must hold a model of"),
])  # fmt: skip
def test_what_would_change_the_model_is_refused_by_name(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        read_config(written(tmp_path, LLAMA | change))


def test_a_field_may_be_ignored_by_name(tmp_path):
    path = written(tmp_path, LLAMA | {"my_remark": "x"})
    assert read_config(path, ignore=["my_remark"]).model.layers == 32


@pytest.mark.parametrize("text", ["", "[1]", "{", "\x00", '{"a": ' * 100000])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="path must"):
        read_config(path)
