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


def test_a_type_checker_sees_types_in_code_of_a_user(wheel, tmp_path):
    """The snippet of the README has no error and no ``Any``; wrong calls are told."""
    venv.create(tmp_path / "env", with_pip=False)
    python = next(path for path in (tmp_path / "env").glob("*/python*") if path.stem == "python")
    ask = "import site; print(site.getsitepackages()[-1])"
    packages = Path(subprocess.check_output([python, "-c", ask], text=True).strip())
    wheel.extractall(packages)
    (packages / "here.pth").write_text("\n".join(site.getsitepackages()))  # the libraries it needs
    snippet = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)[1]
    shown = [f"reveal_type({name})" for name in re.findall(r"^(\w+) = ", snippet, re.M)]
    (tmp_path / "user.py").write_text("\n".join([snippet, *shown, WRONG]), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "user.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    types = re.findall(r'Revealed type is "(.*)"', told)
    assert len(types) == len(shown) >= 10
    own = r"str|float|relparallel(\.\w+)+|networkx\..*Graph\[.*\]"
    assert all(re.fullmatch(own, one) for one in types), types
    assert len(re.findall(r": error: ", told)) == len(WRONG.split("\n")) - 2, told
