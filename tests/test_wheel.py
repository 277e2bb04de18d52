"""The wheel that users install: complete, and its types are seen."""

import re
import site
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import relparallel

ROOT = Path(__file__).resolve().parents[1]
WRONG = """
rp.plan("llama3-70b", "h100-80gb-dgx", gpus="many")
rp.Strategy(tensor=8, pipelines=2)
rp.topology.fat_tree(k="four")
rp.step_time(model, strategy, cluster)
rp.nothing
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = (
        "pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir"
    )
    subprocess.run([sys.executable, "-m", *command.split(), folder, ROOT], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        yield archive


def test_types_data_and_terms_are_inside(wheel):
    names = set(wheel.namelist())
    stubs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "relparallel").rglob("*.pyi")}
    assert {"relparallel/py.typed", "relparallel/_data/README.md", *stubs} <= names
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    said = Parser().parsestr(wheel.read(metadata).decode())
    assert said["Version"] == relparallel.__version__
    assert said["Author"] == "The relparallel authors"
    assert "Typing :: Typed" in said.get_all("Classifier")
    assert re.findall(r"\]\((?!https?:)[^)]*\)", said.get_payload()) == []


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment in which the wheel is installed, and no checkout."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    python = next(path for path in (folder / "env").glob("*/python*") if path.stem == "python")
    ask = "import site; print(site.getsitepackages()[-1])"
    packages = Path(subprocess.check_output([python, "-c", ask], text=True).strip())
    wheel.extractall(packages)
    # the libraries that it needs, without what their folder adds to the path: this checkout
    (packages / "here.pth").write_text("\n".join(site.getsitepackages()))
    return python


def snippet() -> str:
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)[1]


def test_no_chapter_evidence_runner_or_table_of_theirs_is_inside(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"relparallel"}
    data = {
        name.split("/")[2] for name in wheel.namelist() if name.startswith("relparallel/_data/")
    }
    assert data & {"benchmarks", "rehearsals", "literature.csv", "systems.csv"} == set()


def test_an_installed_wheel_answers_outside_the_checkout(python, tmp_path):
    """The snippet of the README, the commands, and in one sentence what needs a checkout."""

    def said(*arguments: str) -> subprocess.CompletedProcess:
        command = [python, "-P", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    for name in ("chapters", "evidence", "reproduce"):
        assert "No module named" in said("-c", f"import {name}").stderr
    done = said("-c", snippet() + "\nprint(rp.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(ROOT) not in done.stdout
    for command in ("models", "clusters", "software"):
        assert said("-m", "relparallel", command).returncode == 0
    line = "plan gpt3-6.7b a100-80gb-selene --gpus 64 --batch 512"
    assert "TP" in said("-m", "relparallel", *line.split()).stdout
    for command in ("figures", "notebook", "ledger", "scoreboard", "derive"):
        done = said("-m", "relparallel", command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"relparallel {command}: needs a checkout")


def test_a_type_checker_sees_types_in_code_of_a_user(python, tmp_path):
    """The snippet of the README has no error and no ``Any``; wrong calls are told."""
    shown = [f"reveal_type({name})" for name in re.findall(r"^(\w+) = ", snippet(), re.M)]
    (tmp_path / "user.py").write_text("\n".join([snippet(), *shown, WRONG]), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "user.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    types = re.findall(r'Revealed type is "(.*)"', told)
    assert len(types) == len(shown) >= 10
    own = r"str|float|relparallel(\.\w+)+|networkx\..*Graph\[.*\]"
    assert all(re.fullmatch(own, one) for one in types), types
    assert len(re.findall(r": error: ", told)) == len(WRONG.split("\n")) - 2, told
