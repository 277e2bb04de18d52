"""Notebooks on a dask cluster: the same bytes, whoever dies, and no worker with other files."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from reproduce import NotebookError, cluster
from reproduce.cluster import checked_checkout, described, differences

distributed = pytest.importorskip("distributed", reason="the extra distributed is not installed")
CHECKOUT = Path(__file__).resolve().parents[2]
NO_PORT = "127.0.0.1:0"  # any free one
FIGURE = """\
import os, pathlib
(pathlib.Path(os.environ["RELPARALLEL_FIGURES"]) / "NAME.svg").write_text("NAME")
print(sum(1 / n for n in range(1, 1000)))"""
DEADLY_ONCE = """\
import psutil, signal
if not pathlib.Path("../died").exists():
    pathlib.Path("../died").write_text("")
    worker = psutil.Process(os.getppid()).ppid()
    os.kill(worker, signal.SIGKILL)"""
LONG_ONCE = """\
import pathlib, time
if not pathlib.Path("../began").exists():
    pathlib.Path("../began").write_text("")
    time.sleep(100)"""


def gone(toy) -> bool:
    """Tell whether every kernel of a checkout ends soon."""
    _, alive = psutil.wait_procs(toy.processes(), timeout=10)
    return not alive


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_byte(toy, dask_cluster, capfd):
    for name in ("01_a", "02_b"):
        toy.write(name, FIGURE.replace("NAME", name), *([DEADLY_ONCE] if name == "02_b" else []))
    assert toy.run(executor=dask_cluster.scheduler_address).done == ["01_a", "02_b"]
    assert (toy.root / "died").exists()
    assert re.search(r"worker tcp://\S+ died; 02_b runs again elsewhere\n", capfd.readouterr().err)
    assert gone(toy)
    there = toy.results()
    assert len(there) == 4
    assert toy.run(force=True).exit_code == 0
    assert toy.results() == there


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_kernel_and_the_next_goes_on(
    toy, dask_cluster, pretend, end
):
    toy.write("01_quick", "print(1)")
    toy.write("02_long", LONG_ONCE)
    address = dask_cluster.scheduler_address
    command = [
        sys.executable,
        "-m",
        "relparallel",
        "figures",
        "--root",
        str(toy.root),
        "--executor",
        address,
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(
        command, **quiet, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    record = toy.root / ".relparallel/records/01_quick.json"
    while not ((toy.root / "began").exists() and record.exists()):
        assert run.poll() is None
        time.sleep(0.1)
    run.send_signal(end)
    assert run.wait(timeout=20) == (130 if end == signal.SIGINT else -end)
    assert gone(toy)
    assert toy.run(pool=pretend.pool).done == ["02_long"]


@pytest.mark.slow
def test_a_dead_process_is_told_and_costs_no_worker(toy, dask_cluster):
    with distributed.Client(dask_cluster, set_as_default=False) as client:
        before = client.run(os.getpid)
        toy.write("02_process", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")
        toy.write("03_fine", "print(1)")
        report = toy.run(executor=dask_cluster.scheduler_address)
        assert client.run(os.getpid) == before
    assert report.done == ["03_fine"]
    assert (
        report.failed["02_process"] == "failed: its worker process died (out of memory, or killed)"
    )


@pytest.fixture
def elsewhere(toy, tmp_path_factory, request):
    """A worker whose checkout lies in another folder than the runner's, and that folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.rmtree(toy.root / "relparallel")
    skipped = shutil.ignore_patterns("__pycache__", "*.ipynb")
    shutil.copytree(toy.root / "data", folder / "data")
    for part in ("relparallel", "notebooks"):
        shutil.copytree(CHECKOUT / part, folder / part, ignore=skipped)
        shutil.copytree(folder / part, toy.root / part, dirs_exist_ok=True)
    with distributed.LocalCluster(
        n_workers=0, dashboard_address=NO_PORT, local_directory=str(folder / "d")
    ) as few:
        address = few.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"]
        command += [getattr(request, "param", "--no-nanny"), "--nthreads", "1"]
        worker = subprocess.Popen(
            [*command, "--local-directory", str(folder / "w")],
            env={**os.environ, "PYTHONPATH": f"{folder}:{folder / 'notebooks'}"},
            cwd=folder,
            stderr=subprocess.DEVNULL,
        )
        yield address, folder
        worker.terminate()
        worker.wait()


@pytest.mark.slow
def test_a_worker_uses_its_own_checkout_and_is_refused_when_it_differs(toy, elsewhere):
    address, folder = elsewhere
    toy.write("01_where", "import os\nprint(os.getcwd())")
    assert toy.run(executor=address).exit_code == 0
    assert str(folder / "notebooks") in (toy.root / "notebooks/01_where.ipynb").read_text()
    before = toy.files()
    (folder / "relparallel/units.py").write_text(
        (folder / "relparallel/units.py").read_text() + "\n"
    )
    with pytest.raises(
        NotebookError, match=r"worker tcp://\S+ has code of the checkout \w+ instead of \w+"
    ):
        toy.run(executor=address, force=True)
    assert toy.files() == before


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", ["--nanny"], indirect=True)
def test_a_worker_with_a_nanny_is_sent_the_checkout(toy, elsewhere):
    address, folder = elsewhere
    (folder / "notebooks/reproduce/__init__.py").write_text("raise ImportError('broken')")
    where = "import os, relparallel.units\nprint(os.getcwd())\nprint(relparallel.__file__)"
    toy.write("01_where", where)
    (toy.root / "data/facts.csv").write_text("only the runner has this")
    assert toy.run(executor=address).exit_code == 0
    said = (toy.root / "notebooks/01_where.ipynb").read_text()
    assert (
        len(re.findall(rf"{folder}/w/\S*relparallel-\w+/(notebooks|relparallel/__init)", said)) == 2
    )
    assert toy.run(executor=address, force=True).exit_code == 0


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused(toy, monkeypatch):
    toy.write("01_a", "1")
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=NO_PORT) as empty,
        pytest.raises(
            NotebookError, match=f"{empty.scheduler_address} has no worker; start one: dask worker"
        ),
    ):
        toy.run(executor=empty.scheduler_address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://host", "host", "", 7])
def test_an_address_without_a_scheduler_is_refused(toy, monkeypatch, address):
    toy.write("01_a", "1")
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with pytest.raises(
        NotebookError, match=f"executor must be the address .*got {re.escape(repr(address))}"
    ):
        toy.run(executor=address)


@pytest.mark.parametrize("address", ["nonsense", "nonsense://host", "host", ""])
def test_an_address_without_a_meaning_makes_no_client(toy, monkeypatch, address):
    """One that has been half made waits for 20 s when it is dropped, and shows a traceback."""
    toy.write("01_a", "1")
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client was made"))
    with pytest.raises(NotebookError, match="executor must be the address"):
        toy.run(executor=address)


def test_nothing_is_asked_of_a_cluster_when_nothing_is_stale(toy, pretend):
    toy.write("01_a", "1")
    assert toy.run(pool=pretend.pool).done == ["01_a"]
    assert toy.run(executor="tcp://127.0.0.1:9").current == ("01_a",)


def test_without_dask_the_message_says_how_to_get_it(toy, monkeypatch):
    toy.write("01_a", "1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotebookError, match=re.escape("pip install 'relparallel[distributed]'")):
        toy.run(executor="tcp://127.0.0.1:9")


def test_a_pool_and_a_cluster_exclude_each_other(toy, pretend):
    with pytest.raises(
        NotebookError, match="executor must be None where a pool is given, got 'tcp://a:1'"
    ):
        toy.run(pool=pretend.pool, executor="tcp://a:1")


def test_a_folder_with_other_files_is_no_checkout_of_this_run(toy, monkeypatch, tmp_path_factory):
    own = tmp_path_factory.mktemp("own")
    shutil.copytree(toy.root, own, dirs_exist_ok=True)
    monkeypatch.setattr(cluster, "ROOT", own)
    wanted, missing = described(toy.root), str(toy.root / "missing")
    assert checked_checkout(missing, wanted) == (own, "")
    (own / "data/facts.csv").write_text("changed")
    assert checked_checkout(str(toy.root), wanted) == (toy.root, "")
    found, told = checked_checkout(missing, wanted)
    assert found is None
    assert re.fullmatch(r"files of the checkout \w+ instead of \w+", told)
    monkeypatch.setattr(cluster, "ROOT", toy.root / "gone")
    assert "files of the checkout missing instead of" in checked_checkout(missing, wanted)[1]


@pytest.mark.slow
def test_a_cluster_that_goes_away_ends_the_run_and_the_next_goes_on(toy, tmp_path_factory, pretend):
    """The scheduler dies: what runs has failed, what waits is not awaited, nothing stays behind."""
    folder = str(tmp_path_factory.mktemp("dask"))
    toy.write("02_long", LONG_ONCE)
    toy.write("03_waits", "print(1)")
    with distributed.LocalCluster(
        n_workers=1, dashboard_address=NO_PORT, local_directory=folder
    ) as mortal:

        def end():
            while not (toy.root / "began").exists():
                time.sleep(0.1)
            mortal.close()

        with ThreadPoolExecutor(1) as other:
            other.submit(end)
            report = toy.run(executor=mortal.scheduler_address, jobs=1)
    assert set(report.failed) == {"02_long", "03_waits"}
    assert all("the cluster lost it" in problem for problem in report.failed.values())
    assert gone(toy)
    assert toy.run(pool=pretend.pool).done == sorted(report.failed)


@pytest.mark.slow
def test_a_client_that_lost_its_cluster_takes_nothing_and_ends_in_peace(dask_cluster):
    client = distributed.Client(dask_cluster.scheduler_address, set_as_default=False)
    executor = cluster._Apart(client, ".", {})
    client.close()
    assert isinstance(executor.submit(print, None).exception(), ConnectionError)
    executor.shutdown(wait=False)


def test_versions_are_compared_where_both_have_the_package():
    here = described(CHECKOUT)
    assert differences(here, here) == ""
    assert differences(here | {"numpy": "1.0"}, here) == f"numpy {here['numpy']} instead of 1.0"
    assert differences(here | {"ruff": "0"}, {k: v for k, v in here.items() if k != "ruff"}) == ""
    assert "python" in differences(here | {"python": "2.7"}, here)
