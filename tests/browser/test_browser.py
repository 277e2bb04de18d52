"""A reader opens a notebook in JupyterLab, runs all cells, and sees the figure and no error."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import chromium

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOTEBOOK = ROOT / "notebooks" / "34_pipeline_schedules.ipynb"
TOKEN = "reader"


def cleared_copy(path: Path, folder: Path) -> Path:
    """Copy a notebook without its outputs: a stored figure must not pass for a drawn one."""
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    copy = folder / "notebooks" / path.name
    copy.parent.mkdir(parents=True)
    copy.write_text(json.dumps(content))
    return copy


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def private_environment(folder: Path) -> dict[str, str]:
    """An environment without this user's settings, whose figures go to the copy's folder."""
    names = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    settings = folder / "settings"
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    # every cell is in the page, not only what is in view
    tracker.write_text('{"windowingMode": "none"}')
    return {
        **{name: value for name, value in os.environ.items() if name != "MPLBACKEND"},
        **{name: str(folder / name.lower()) for name in names},
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "RELPARALLEL_FIGURES": str(folder / "figures"),
    }


@contextmanager
def laboratory(folder: Path) -> Iterator[str]:
    """Run JupyterLab in a folder and give its address."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"),
        *(
            f"--IdentityProvider.token={TOKEN}",
            f"--ServerApp.root_dir={folder}",
            "--ServerApp.port_retries=0",
        ),
        *(
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
        ),
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env=private_environment(folder), cwd=folder
        )
    try:
        await_server(
            f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server, folder / "server.log"
        )
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=15)
        server.kill()


def await_server(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(240):
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
            if answer.status == 200:
                return
        assert server.poll() is None, log.read_text()
        time.sleep(0.25)
    pytest.fail(f"JupyterLab did not come up:\n{log.read_text()}")


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_runs_all_cells_and_sees_the_figure(tmp_path):
    copy = cleared_copy(NOTEBOOK, tmp_path / "lab")
    cells = [cell for cell in json.loads(copy.read_text())["cells"] if cell["cell_type"] == "code"]
    with laboratory(tmp_path / "lab") as address:
        url = f"{address}/lab/tree/notebooks/{copy.name}?reset&token={TOKEN}"
        arguments = [url, chromium.browser(), str(tmp_path / "profile"), str(tmp_path / "page.png")]
        drive = ["node", str(HERE / "run_all.mjs"), *arguments]
        done = subprocess.run(drive, capture_output=True, text=True, timeout=420)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    folded = [cell["metadata"].get("jupyter", {}).get("source_hidden") for cell in cells]
    assert seen["prompts"] == [f"[{i}]:" for i, hidden in enumerate(folded, 1) if not hidden]
    assert seen["figureWidths"]
    assert min(seen["figureWidths"]) > 0
    assert (seen["errors"], seen["stderr"], seen["pageErrors"]) == (0, 0, [])
    assert list((tmp_path / "lab" / "figures").iterdir())


@pytest.mark.parametrize("lacking", ["Chromium", "node", "playwright-core"])
def test_a_machine_without_the_tools_is_told_what_it_lacks(monkeypatch, tmp_path, lacking):
    here = {"Chromium": "chromium", "node": "node"}.get(lacking)
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == here or here == "chromium" else f"bin/{name}"
    )
    monkeypatch.setattr(chromium, "HERE", tmp_path)
    assert chromium.missing().startswith(lacking)
