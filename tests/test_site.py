"""Pages of the collection: whole, the same on every build, and readable without a network."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import tables

import chromium
import relparallel as rp
from chapters.s49 import burst
from evidence import ledger
from evidence.recipes import recipe_runs
from relparallel.training import shortage_probability
from relparallel.training.down_nodes import down_distribution

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIRST = ("gpt3-6.7b", "a100-80gb-selene", (64,))
FOLDERS = ("data", "docs", "figures", "notebooks")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What pages are built from, with claims of one topic and one job."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "CITATION.cff"):
        shutil.copy(path, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("reference"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ledger", partial(ledger, "training-reliability"))
        patch.setattr(tables, "JOBS", (FIRST,))
        tables.write(folder / "build" / "pages")
    return folder


def build(checkout: Path, target: Path, seed: str = "0") -> Path:
    """A first build, in which a warning is an error."""
    where = ["-c", "docs", "-d", str(target.parent / "read"), ".", str(target)]
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", *where]
    fixed = {"SOURCE_DATE_EPOCH": "0", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    done = subprocess.run(
        command, cwd=checkout, env=os.environ | fixed, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return target


@pytest.fixture(scope="module")
def built(checkout, tmp_path_factory):
    return build(checkout, tmp_path_factory.mktemp("built") / "site")


def page(built: Path, name: str) -> str:
    return (built / f"{name}.html").read_text("utf-8")


def pages(built: Path) -> list[Path]:
    return sorted({*built.rglob("*.html")} - {*(built / "_static").rglob("*.html")})


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(checkout, built, tmp_path):
    again = build(checkout, tmp_path / "site", seed="1")
    one, other = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (built, again)
    )
    assert [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)] == []


@pytest.mark.slow
def test_every_link_leads_to_a_page_and_a_place_on_it(built):
    """Rows of other topics are those of the ledger; this build shows one topic."""
    texts = {path: path.read_text("utf-8") for path in pages(built)}
    rows = {row for topic in rp.published.topics() for row in rp.published.facts(topic)}
    places = {path: set(re.findall(r'\sid="([^"]+)"', text)) for path, text in texts.items()}
    places[built / "docs" / "claims.html"] |= rows
    for path, text in texts.items():
        for target in re.findall(r'(?:href|src)="(?!https?:|data:|mailto:)([^"]+)"', text):
            name, _, place = unescape(target).partition("#")
            name = name.partition("?")[0]
            to = Path(os.path.normpath(path.parent / name)) if name else path
            assert to.exists(), f"{path.name}: {target}"
            assert not place or to not in places or place in places[to], f"{path.name}: {target}"


@pytest.mark.slow
def test_no_page_asks_a_network_for_anything(built):
    """Links may lead out; what a page loads by itself may not."""
    for path in pages(built):
        text = path.read_text("utf-8")
        assert re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//[^"]*"', text) == []
        assert re.findall(r'<link[^>]*rel="(?:stylesheet|preload)"[^>]*href="https?:', text) == []
    for path in built.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_are_numbered_vector_pictures_with_words(built, path):
    """And none of the stored pictures is left."""
    text = page(built, f"notebooks/{path.stem}")
    figures = re.findall(r'<figure[^>]* id="figure-(\d\d)-.*?</figure>', text, re.S)
    numbers = re.findall(r"<strong>Figure (\d\d)\.(\d+)\.</strong>", text)
    assert numbers == [(path.stem[:2], str(k + 1)) for k in range(len(figures))]
    pictures = re.findall(r'<img [^>]*src="[^"]*_images/[^"]*"[^>]*>', text)
    assert len(pictures) == len(figures) > 0
    for picture in pictures:
        assert ".svg" in picture
        assert len(re.search(r'alt="([^"]*)"', picture)[1]) > 20, picture


@pytest.mark.slow
def test_formulas_are_left_to_mathjax_which_lies_beside_the_pages(built):
    text = page(built, "notebooks/34_pipeline_schedules")
    assert text.count('class="math') > 50
    assert r"\begin{aligned}" in text
    script = re.search(r'<script[^>]*src="([^"]*mathjax[^"]*)"', text)[1]
    assert (built / "notebooks" / script.partition("?")[0]).exists()
    assert list((built / "_static").rglob("*.woff"))


@pytest.mark.slow
def test_rows_and_works_in_the_text_are_links(built):
    text = page(built, "notebooks/41_failures_and_checkpoints")
    assert re.search(r'<a href="\.\./docs/claims\.html#DALY-001"><code[^>]*>.*?DALY-\*', text)
    works = re.findall(r'<a href="\.\./docs/bibliography\.html#(\w+)">', text)
    assert "daly2006interval" in works
    every = "".join(page(built, f"notebooks/{path.stem}") for path in NOTEBOOKS)
    assert len(set(re.findall(r"bibliography\.html#(\w+)", every))) > 120


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_with_the_tag_are_folded_and_the_others_are_not(built, path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    tagged = ["hide-input" in cell["metadata"].get("tags", ()) for cell in cells]
    folded = page(built, f"notebooks/{path.stem}").count('class="admonition hide above-input"')
    assert folded == sum(tagged)


@pytest.mark.slow
def test_the_navigation_asks_questions_in_sections(built):
    text = page(built, "README")
    side = unescape(re.sub(r"<[^>]+>", "", text))
    for section in ("Core path", "Aside: training clusters", "中文"):
        assert section in side
    for path in NOTEBOOKS:
        first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
        question = first.partition("\n")[0].removeprefix("# ")
        assert f"{path.stem[:2]} · {question}" in side


@pytest.mark.slow
def test_the_chinese_pages_hold_every_summary(built):
    text = page(built, "docs/summaries.zh")
    assert '<html lang="zh-CN"' in text
    assert '<html lang="zh-CN"' in page(built, "README.zh")
    assert '<html lang="en"' in page(built, "README")
    for path in NOTEBOOKS:
        first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
        begin = re.search(r"\*\*中文摘要。\*\* ([^$*`]{10})", first)[1].strip()
        assert begin in text
        assert f'href="../notebooks/{path.stem}.html"' in text
    assert "证明了二端可靠度的计算是 #P 完全的。" in page(built, "docs/survey")


@pytest.mark.slow
def test_every_public_name_has_its_entry(built):
    for package in rp.__all__:
        names = getattr(getattr(rp, package), "__all__", ())
        if package != "rehearsal" and names:
            text = page(built, f"docs/reference/relparallel.{package}")
            for name in names:
                thing = getattr(getattr(rp, package), name)
                known = callable(thing) and not isinstance(thing, (float, int))
                assert not known or f'id="relparallel.{package}.{name}"' in text, name


def test_claims_stand_beside_what_is_published(monkeypatch):
    monkeypatch.setattr(tables, "ledger", partial(ledger, "training-reliability"))
    table = tables.claims().set_index("id")
    assert list(table)[:4] == ["value", "computed", "unit", "state"]
    row = table.loc["DALY-001"]
    assert row["source"] == rp.published.facts("training-reliability")["DALY-001"].source
    assert float(row["value"]) == pytest.approx(float(row["computed"]), rel=0.01)
    text = tables.filtered(table.reset_index()[["id", "state"]], "5 5", "state")
    assert '<table data-filter="state"' in text
    assert re.search(r'<tr id="DALY-001">\s*<td>DALY-001</td>', text)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_script_of_the_page_knows_nodes_that_fail_together():
    """Nodes down as in the package; more time is short than if they fail one by one."""
    script, cases = ROOT / "docs/static/whatif.js", [(2.0, 5, 2.0), (7.5, 12, 5.7), (0.3, 2, 9.0)]
    code = (
        "const f = require(process.argv[1]);"
        "console.log(JSON.stringify(JSON.parse(process.argv[2]).map((c) => f.shortage(...c))));"
    )
    said = subprocess.run(
        ["node", "-e", code, str(script), json.dumps(cases)],
        capture_output=True,
        text=True,
        check=True,
    )
    for (load, spares, ratio), found in zip(cases, json.loads(said.stdout), strict=True):
        events = burst(ratio, 1000)
        able = np.arange(spares + len(events.sizes) + 1) <= spares
        chance = down_distribution(events.loads(load), able.astype(float))
        assert found == pytest.approx(chance[spares + 1 :].sum(), rel=1e-9)
        assert found > shortage_probability(10**5, spares, load / 10**5, 1.0)


def _by_script(code: str, script: Path, jobs: list) -> list:
    """What the code prints of jobs, beside a script of the page."""
    said = subprocess.run(
        ["node", "-e", code, str(script), json.dumps(jobs)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(said.stdout)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_script_of_the_page_computes_what_the_package_computes():
    """Relative goodput under three policies, from small to large failure rates."""
    script = ROOT / "docs/static/whatif.js"
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
                "burst": 1.0,
            }
        )
    code = (
        "const f = require(process.argv[1]);"
        "console.log(JSON.stringify(JSON.parse(process.argv[2]).map("
        "(job) => [f.restartOrSpares(job, 0), f.bestSpares(job).share, f.elastic(job), "
        "f.regroup(job), f.elasticSpares(job, 0)])));"
    )
    for job, shares in zip(jobs, _by_script(code, script, jobs), strict=True):
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
        whole = replace(own, regroup=True)
        want.append(rp.training.relative_goodput(whole, "elastic", job["repair"]).share)
        want.append(want[2])  # without spares
        assert shares == pytest.approx(want, rel=1e-9)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_script_of_the_page_knows_elastic_jobs_with_spares_as_the_package_does():
    """Without pauses, which the page takes as a factor of their own; few replicas, and many."""
    script, rng, jobs, want = ROOT / "docs/static/whatif.js", np.random.default_rng(3), [], []
    for units, replica in ((2, 1), (2, 8), (3, 2), (12, 4), (40, 1), (64, 16)):
        spares = replica * int(rng.integers(0, 4))
        job = {
            "nodes": units * replica + spares,
            "replica": replica,
            "nodeRate": 10 ** rng.uniform(-7.5, -6),
            "jobRate": 10 ** rng.uniform(-7, -5),
            "checkpoint": 20.0,
            "restart": 300.0,
            "pause": 0.0,
            "repair": 10 ** rng.uniform(3, 5.5),
            "burst": 1.0,
        }
        jobs.append([job, spares])
        strategy = rp.Strategy(tensor=8, pipeline=replica, data=units)
        model = rp.training.FailureModel(
            cluster=rp.hardware.Cluster(nodes=units * replica),
            placement=rp.parallel.Placement(strategy=strategy),
            classes=tuple(
                rp.training.ComponentClass(name=level, level=level, rate=job[f"{level}Rate"])
                for level in ("node", "job")
            ),
        )
        level = rp.training.CheckpointLevel(name="storage", cost=20.0, restart=0.0)
        way = rp.training.Recovery("elastic", job["repair"], restart=300.0)
        saved = rp.training.Checkpointing(levels=(level,))
        kept = rp.goodput(model, 1.0, saved, way, spares=spares).mean
        want.append(kept * units * replica / job["nodes"])
    code = (
        "const f = require(process.argv[1]), jobs = JSON.parse(process.argv[2]);"
        "console.log(JSON.stringify(jobs.map((job) => [f.elasticSpares(...job), "
        "f.bestElastic(job[0]).share])));"
    )
    asked, best = np.transpose(_by_script(code, script, jobs))
    assert asked == pytest.approx(want, rel=1e-9)
    assert (best >= asked * (1 - 1e-12)).all()


def test_jobs_of_the_page_hold_the_speeds_of_the_plan():
    entries = list(tables.jobs((FIRST,)))
    table = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, strategies=4)
    first = table.to_frame().iloc[0]
    tokens = table.global_batch * table.model.sequence * 86400 / 1e9
    assert entries[0]["speed"][0] == pytest.approx(tokens / first["step [s]"], rel=1e-4)
    assert all(entry["speed"][1] < entry["speed"][0] < entry["speed"][2] for entry in entries)


def test_the_page_opens_on_a_job_that_somebody_ran():
    """Its speed is that of `step_time`, near the 400 TFLOP/s a GPU that Meta printed; it fits."""
    entries = list(tables.runs())
    assert len(entries) == len(recipe_runs())
    first, run = entries[0], recipe_runs()["Llama 3 405B, Meta, 16,384 H100"]
    assert first["name"].startswith(
        "Llama 3 405B, Meta, 16,384 H100, as run, batch 2,048: TP8 PP16"
    )
    assert (first["nodes"], first["replica"]) == (2048, 16)
    known = {"software": run.software, "precision": run.precision}
    step = rp.step_time(run.model, run.strategy, run.cluster, 2048, **known)
    assert step.fits
    tokens = 2048 * run.model.sequence * 86400 / 1e9
    want = [tokens / each for each in (step.total, *step.interval()[::-1])]
    assert first["speed"] == pytest.approx(want, rel=1e-4)
    printed = tokens * 400e12 * 16384 / run.model.flops_per_iteration(2048)
    assert first["speed"][1] < printed < first["speed"][2]


@pytest.mark.browser
@pytest.mark.slow
def test_pages_are_read_searched_and_filtered_without_a_network(built, tmp_path):
    """At the widths of a laptop and of a phone."""
    script = ROOT / "tests" / "browser" / "site.mjs"
    command = ["node", str(script), built.as_uri(), chromium.browser(), str(tmp_path)]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    errors = [
        one for one in seen["errors"] if "search.html" not in one
    ]  # it reads extracts, on hosts
    assert (errors, seen["outside"], seen["broken"]) == ([], [], 0)
    assert seen["formulas"] > 50
    assert seen["computed"] < 1366
    assert 0 < seen["discrepancies"] < seen["rows"]
    assert seen["marked"] == "DALY-001"
    assert any("43_reliability" in target for target in seen["hits"])
    assert any("training.blast_radius" in target for target in seen["hits"])
    assert any("zh" in target for target in seen["chinese"])
    assert seen["moved"]
    assert set(seen["overflow"].values()) == {0}
    assert seen["dark"] != seen["light"]
