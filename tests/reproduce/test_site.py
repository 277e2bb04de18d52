"""Pages of the collection: whole, the same on every build, and readable without a network."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from relparallel.reproduce import site
from relparallel.reproduce.site import (
    Page,
    build_site,
    claims_page,
    names_page,
    notebook_page,
    scoreboard_page,
)

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "claims_page", lambda: Page(name="claims", title="Claims", body=""))
        patch.setattr(site, "GRID", (("gpt3-6.7b", "a100-80gb-selene", (64,)),))
        yield build_site(tmp_path_factory.mktemp("site"), ROOT)


def bytes_of(paths: list[Path]) -> list[bytes]:
    folder = paths[0].parent
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


def test_two_builds_are_the_same_bytes_and_every_link_leads_somewhere(built, tmp_path):
    first = bytes_of(built)
    again = build_site(tmp_path / "site", ROOT)
    assert bytes_of(again) == first
    for path in again:
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="(?!https?:|data:|#)([^"#]+)', text):
            folder = path.parent
            assert (folder / target).exists() or (ROOT / target).exists(), f"{path.name}: {target}"


def test_no_page_asks_a_network_for_anything(built):
    """Links may lead out; what a page loads by itself may not."""
    for path in built:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r'(?:src|<link[^>]*href)="https?:[^"]*"', text) == []
        assert "url(http" not in text


def test_the_what_if_page_needs_no_other_file(built):
    """It can be sent by mail: style, script and data are inside."""
    page = next(path for path in built if path.stem == "whatif").read_text(encoding="utf-8")
    assert (
        re.findall(r"<link\b|\bsrc=|@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\(", page) == []
    )
    assert "--ink: #1f2328" in page
    assert "const GRID = [{" in page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_picture_of_a_notebook_is_described_and_every_formula_converted(path):
    page = notebook_page(path, set())
    pictures = re.findall(r"<img [^>]*>", page.body)
    assert pictures
    for picture in pictures:
        words = re.search(r'alt="([^"]*)"', picture)[1]
        assert len(words) > 20, picture[-200:]
    bare = re.sub(r"<(pre|code|details|math)\b.*?</\1>", "", page.body, flags=re.S)
    assert re.findall(r"\\(?:frac|lambda|sum|text|dfrac|mathrm)\b", bare) == []


def test_figures_are_numbered_in_their_order():
    page = notebook_page(ROOT / "notebooks/42_reliability_of_strategies.ipynb", set())
    numbers = re.findall(r'<figure id="figure-42\.(\d+)"', page.body)
    assert numbers == [str(k + 1) for k in range(len(numbers))]
    assert len(numbers) > 5


def test_rows_in_the_text_lead_to_their_claims():
    page = notebook_page(
        ROOT / "notebooks/41_failures_and_checkpoints.ipynb", {"DALY-001", "DALY-002"}
    )
    assert '<a href="claims.html#DALY-001">DALY-*</a>' in page.body


def test_the_page_of_claims_shows_value_computed_and_source(monkeypatch):
    row = {
        "id": "DALY-001",
        "system": "Daly 2006",
        "topic": "training-reliability",
        "role": "check",
        "origin": "printed",
        "value": "1",
        "computed": "1.01",
        "error": 0.01,
        "tolerance": "2 %",
        "status": "reproduced",
        "reason": "",
    }
    monkeypatch.setattr("relparallel.ledger.ledger", lambda: pd.DataFrame([row]))
    page = claims_page()
    assert '<tr id="DALY-001" class="reproduced">' in page.body
    assert "1.01" in page.body
    assert page.entries[0][1] == "DALY-001"


def test_the_scoreboard_shows_every_source_and_every_other_model():
    page = scoreboard_page()
    assert [anchor for _, anchor in page.entries][1:] == ["by-source", "other-models"]
    for cell in ("blind", "left out", "torchtitan", "Calculon", "SimAI", "PRISM"):
        assert f">{cell}</t" in page.body
    assert "NaN" not in page.body
    assert 'href="39_predicting_a_step.html"' in page.body


def test_every_public_name_has_its_entry():
    page = names_page()
    anchors = {anchor for _, anchor in page.entries}
    assert {"optimize.joint", "planning.plan", "reliability.evaluate"} <= anchors
    offered = {f"training.{n}" for n in rp.training.__all__ if callable(getattr(rp.training, n))}
    assert offered <= anchors


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "own.txt").write_text("mine")
    with pytest.raises(ValueError, match="folder must be empty or hold an earlier site"):
        build_site(tmp_path, ROOT)
    assert (tmp_path / "own.txt").read_text() == "mine"


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_script_of_the_page_computes_what_the_package_computes():
    """Relative goodput under three policies, from small to large failure rates."""
    script = ROOT / "relparallel/reproduce/pages/whatif.js"
    rng, jobs = np.random.default_rng(0), []
    for _ in range(40):
        replica = int(rng.choice([1, 4, 16]))
        jobs.append(
            {
                "nodes": replica * int(rng.integers(2, 60)),
                "replica": replica,
                "nodeRate": 10 ** rng.uniform(-9, -5),
                "jobRate": 10 ** rng.uniform(-7, -4),
                "checkpoint": 10 ** rng.uniform(-1, 2.5),
                "restart": 10 ** rng.uniform(1, 3),
                "pause": 10 ** rng.uniform(0, 2.5),
                "repair": 10 ** rng.uniform(3, 5.5),
            }
        )
    code = (
        "const f = require(process.argv[1]);"
        "console.log(JSON.stringify(JSON.parse(process.argv[2]).map("
        "(job) => [f.restartOrSpares(job, 0), f.bestSpares(job).share, f.elastic(job)])));"
    )
    said = subprocess.run(
        ["node", "-e", code, str(script), json.dumps(jobs)],
        capture_output=True,
        text=True,
        check=True,
    )
    for job, found in zip(jobs, json.loads(said.stdout), strict=True):
        own = rp.training.Job(
            nodes=job["nodes"],
            nodes_per_replica=job["replica"],
            node_rate=job["nodeRate"],
            job_rate=job["jobRate"],
            checkpoint=job["checkpoint"],
            restart=job["restart"],
            pause=job["pause"],
        )
        policies = ("restart", "spares", "elastic")
        want = [rp.training.relative_goodput(own, p, job["repair"]).share for p in policies]
        assert found == pytest.approx(want, rel=1e-9)


def test_the_grid_of_the_page_holds_the_speeds_of_the_plan():
    page = site.whatif_page((("gpt3-6.7b", "a100-80gb-selene", (64,)),))
    entries = json.loads(re.search(r"const GRID = (\[.*?\]);", page.body)[1])
    table = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, strategies=4)
    first = table.to_frame().iloc[0]
    tokens = table.global_batch * table.model.sequence * 86400 / 1e9
    assert entries[0]["speed"][0] == pytest.approx(tokens / first["step [s]"], rel=1e-4)
    assert all(entry["speed"][1] < entry["speed"][0] < entry["speed"][2] for entry in entries)
