"""Plans that a launcher takes, and strategies asked about in a launcher's words."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import relparallel as rp
from relparallel.__main__ import main
from relparallel.parallel import read_launch
from relparallel.planning.launching import EVERY

FILES = (
    ("x.sh", None),
    ("x.sh", "megatron"),
    ("x.sh", "slurm"),
    ("x.args", None),
    ("x.sbatch", None),
    ("x.slurm", None),
    ("x.toml", None),
    ("x.yaml", None),
    ("x.txt", None),
)


@pytest.fixture(scope="module")
def found():
    return rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512, strategies=2)


@pytest.fixture(
    scope="module",
    params=[
        ("gpt3-6.7b", "a100-80gb-selene", 64, {}),
        ("llama3-70b", "h100-80gb-dgx", 512, {"spares": 2, "policies": ["spares"]}),
        ("deepseek-v3", "gb200-186gb-nvl72", 512, {}),
        ("llama3-405b", "h100-80gb-dgx", 512, {"policies": ["restart"]}),
    ],
    ids=lambda one: one[0],
)
def plan(request):
    model, cluster, gpus, options = request.param
    return rp.plan(model, cluster, gpus=gpus, strategies=1, **options)


@pytest.mark.parametrize(("name", "form"), FILES)
def test_a_plan_that_was_saved_reads_back_with_spares_and_interval(plan, tmp_path, name, form):
    path, best = tmp_path / name, plan.best
    said = plan.save(path, form)
    told = read_launch(path, layers=plan.model.layers)
    assert told.strategy == plan.strategy
    assert told.global_batch == plan.global_batch
    seconds = plan.to_frame()["step [s]"].iloc[0]
    assert told.save_every == max(round(best.interval / seconds), 1)
    hosts = best.cluster.gpus_per_node // best.cluster.tray
    assert told.spares == best.spares * hosts
    text = path.read_text()
    for one in said:  # in the file as well
        name, _, value = one.partition(" word for ")[2].partition(":")[0].partition("=")
        assert (f"# relparallel: {name}={value} " if value else f"# {one}") in text
    assert ("recovery elastic" in " ".join(said)) == (best.policy == "elastic")
    if path.suffix in (".sbatch", ".slurm"):
        assert f"#SBATCH --nodes={best.cluster.gpus // best.cluster.tray}\n" in text
        assert ("ft_launcher" in text) == (best.spares > 0)


def test_spare_trays_of_a_rack_stand_by(tmp_path):
    cluster = rp.hardware.cluster("gb200-186gb-nvl72", 128)
    racks = rp.hardware.Cluster(
        **{
            name: getattr(cluster, name)
            for name in cluster.__dataclass_fields__
            if name != "spare_trays"
        },
        spare_trays=2,
    )
    found = rp.plan("llama3-8b", racks, strategies=1, limits={"data": [128]})
    found.save(tmp_path / "x.sbatch")
    text = (tmp_path / "x.sbatch").read_text()
    assert "#SBATCH --nodes=36\n" in text  # 18 trays of each of two racks, 16 at work
    assert "--nnodes=32:36 --nproc-per-node=4" in text


def test_where_nothing_loses_state_no_interval_is_written(found, tmp_path):
    safe = replace(found, found=(replace(found.best, interval=math.inf),))
    assert "no checkpoint interval: nothing that fails loses state" in safe.save(tmp_path / "x.sh")
    assert "save-interval" not in (tmp_path / "x.sh").read_text()
    assert read_launch(tmp_path / "x.sh").save_every is None


def test_a_page_holds_the_table(found, tmp_path):
    assert found.save(tmp_path / "x.html") == ()
    page = (tmp_path / "x.html").read_text()
    assert page.startswith("<!doctype html>")
    for name in found.to_frame()["strategy"]:
        assert name in page
    assert found.save(tmp_path / "x.csv") == ()


@pytest.mark.parametrize(
    ("name", "form", "said"),
    [
        ("x.toml", "bridge", "path must end in .yaml or .yml or .txt for bridge, got .toml"),
        ("x.csv", "slurm", "path must end in .sbatch or .slurm or .sh for slurm, got .csv"),
        ("x.sh", "megatrn", "did you mean 'megatron'"),
        ("x.xls", None, "path must end in .csv"),
    ],
)
def test_a_form_that_an_ending_does_not_have_is_refused(found, tmp_path, name, form, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        found.save(tmp_path / name, form)
    assert list(tmp_path.iterdir()) == []


def test_launchers_words_ask_what_the_notation_asks(found, tmp_path):
    asked = found.why_not("TP4 PP2 ZeRO-1 SP")
    words = (
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel "
        "--use-distributed-optimizer"
    )
    assert found.why_not(words) == asked
    more = found.why_not(f"{words} --lr 3e-4 --global-batch-size 96")
    assert more.splitlines() == [
        asked,
        "Passed over, since no strategy has it: lr.",
        "The batch is the plan's 512, not 96.",
    ]
    path = tmp_path / "train.yaml"
    path.write_text(
        "model:\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 2\n"
        "  sequence_parallel: true\nddp:\n  use_distributed_optimizer: true\n"
    )
    assert found.why_not(str(path)) == asked
    # layers of a stage are those of the model that is planned, 32
    by_layers = f"{words} --num-layers-per-virtual-pipeline-stage 8"
    assert found.why_not(by_layers) == found.why_not("TP4 PP2 ZeRO-1 SP VPP2")
    found.save(tmp_path / "best.sbatch")
    assert "it is the best" in found.why_not(str(tmp_path / "best.sbatch"))


def test_layers_and_what_leaves_the_gpu_are_priced(found):
    even, uneven = found.why_not("TP4 PP2 SP"), found.why_not("TP4 PP2 SP 26+6")
    steps = [float(re.search(r": ([\d.]+) s per step", said)[1]) for said in (even, uneven)]
    assert uneven.startswith("TP4 PP2 DP8 SP stage_layers 26+6: ")
    assert steps[1] > 1.3 * steps[0]  # 26 layers instead of 16 on the slowest stage
    lost = [float(re.search(r"([\d.]+)% less than", said)[1]) for said in (even, uneven)]
    kept = (1 - lost[1] / 100) / (1 - lost[0] / 100)
    assert kept == pytest.approx(steps[0] / steps[1], rel=2e-3)
    away = found.why_not("--tp 4 --pp 2 --sequence-parallel --cpu-offloading-num-layers 31")
    assert away.startswith("TP4 PP2 DP8 SP offload activations: ")
    assert "has no predicted step: offload must be" in found.why_not(
        '{"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}'
    )
    with pytest.raises(ValueError, match="got activations of 4 layers"):
        found.why_not("--tp 4 --cpu-offloading-num-layers 4")


def test_own_runs_may_be_named_in_launchers_words():
    common = {"model": "gpt3-6.7b", "cluster": "a100-80gb-selene", "batch": 512}
    words = "--tensor-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 8 --pp 2"
    runs = [
        rp.planning.learn(rp_table(text), **common).to_frame()
        for text in ("TP8 PP2 DP4 VPP2", words)
    ]
    assert runs[0].equals(runs[1])
    with pytest.raises(ValueError, match=r"row 2: own runs are strategies alone, without .*26\+6"):
        rp.planning.learn(rp_table("TP4 PP2 DP8 26+6"), **common)


def rp_table(strategy):
    import pandas as pd

    return pd.DataFrame({"strategy": [strategy], "step [s]": [3.2], "gpus": [64]})


def test_the_command_saves_and_asks_in_launchers_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = [
        "plan",
        "gpt3-6.7b",
        "a100-80gb-selene",
        "--gpus",
        "64",
        "--batch",
        "512",
        "--strategies",
        "1",
    ]
    asked = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"
    saved = ["--save", "x.sh", "--save", "x.toml", "--save", "x.html"]
    assert main([*line, "--why-not", asked, *saved]) == 0
    said = capsys.readouterr().out
    assert "\nTP4 PP2 DP8: " in said
    assert "x.sh: recovery elastic" in said
    assert "x.toml: torchtitan has no word for" in said or "x.toml: recovery" in said
    assert "ft_launcher --nnodes=8:8 " in Path("x.sh").read_text()
    assert main([*line, "--save", "y.sh", "--form", "slurm"]) == 0
    assert "#SBATCH --nodes=8" in Path("y.sh").read_text()
    assert {".sh", ".toml", ".html", ".csv"} <= {*EVERY}
