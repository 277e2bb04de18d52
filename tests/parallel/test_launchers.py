"""Words of launchers: what people write for them is read, and what is written reads back."""

import argparse
import json
import re
import shlex
import tomllib
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from any_strategy import strategies
from relparallel.parallel import Strategy, notation, read_launch, read_strategy, step_time
from relparallel.parallel.launch_files import FORMS, launch_file
from relparallel.parallel.launchers import Launch
from relparallel.parallel.stages import deal, in_letters, read_layout

FULL = "--recompute-granularity full --recompute-method"
MEGATRON = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (MEGATRON, "TP4 PP2 DP8"),
        ("--tensor-model-parallel-size=4 --use-distributed-optimizer", "TP4 DP16 ZeRO-1"),
        (
            f"{MEGATRON} --num-layers 16 --num-layers-per-virtual-pipeline-stage 2",
            "TP4 PP2 DP8 VPP4",
        ),
        (f"{MEGATRON} --num-virtual-stages-per-pipeline-rank 4", "TP4 PP2 DP8 VPP4"),
        ("--context-parallel-size 2 --micro-batch-size 4", "CP2 DP32 MBS4"),
        ("--tensor-model-parallel-size 2 --expert-model-parallel-size 8", "TP2 DP32 EP8"),
        (
            "--tensor-model-parallel-size 2 --expert-model-parallel-size 64 "
            "--expert-tensor-parallel-size 1 --sequence-parallel",
            "TP2 DP32 EP64 ETP1 SP",
        ),
        ("--recompute-granularity selective --recompute-modules core_attn", "DP64 selective"),
        ("--recompute-activations", "DP64 selective"),
        ("--recompute-granularity selective --recompute-modules moe_act layernorm", "DP64 between"),
        ('model.recompute_granularity=selective model.recompute_modules=["mlp"]', "DP64 mlp"),
        (f"{FULL} uniform --recompute-num-layers 1", "DP64 full"),
        (f"{FULL} block --num-layers 16 --recompute-num-layers 16", "DP64 full"),
        ("--use-torch-fsdp2", "DP64 ZeRO-3"),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "DP64 ZeRO-2"),
        (
            "--use-distributed-optimizer --num-distributed-optimizer-instances 4",
            "DP64 ZeRO-1/16",
        ),
        (f"{MEGATRON} --account-for-loss-in-pipeline-split", "TP4 PP2 DP8 ends=loss"),
        ("--tp 4 --pp 2", "TP4 PP2 DP8"),
        ("model.tensor_model_parallel_size=4 ++model.sequence_parallel=true", "TP4 DP16 SP"),
        ("trainer.strategy.tensor_model_parallel_size=4 train.micro_batch_size=2", "TP4 DP16 MBS2"),
        (
            "model.virtual_pipeline_model_parallel_size=null model.context_parallel_size=2",
            "CP2 DP32",
        ),
        (
            "--parallelism.tensor_parallel_degree 4 --parallelism.data_parallel_shard_degree 16",
            "TP4 DP16 ZeRO-3 SP",
        ),
        ("model:\n  tensor_model_parallel_size: 4\n  recompute_modules: null\n", "TP4 DP16"),
        (
            '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}',
            "DP64 ZeRO-2",
        ),
        (
            '{"tensor_parallel": {"autotp_size": 4}, "zero_optimization": {"stage": 1}, '
            '"activation_checkpointing": {"partition_activations": true}}',
            "TP4 DP16 ZeRO-1 full",
        ),
        (
            "[training]\nlocal_batch_size = 2\n[parallelism]\ndata_parallel_replicate_degree = 4\n"
            'data_parallel_shard_degree = -1\n[activation_checkpoint]\nmode = "selective"\n'
            'selective_ac_option = "op"\n',
            "DP64 ZeRO-3/16 MBS2 alternate",
        ),
        (
            "[parallelism]\npipeline_parallel_degree = 4\ndata_parallel_replicate_degree = 16\n"
            'data_parallel_shard_degree = 1\npipeline_parallel_schedule = "Interleaved1F1B"\n'
            "pipeline_parallel_microbatch_size = 2\n",
            "PP4 DP16 VPP2 MBS2 ends=both",
        ),
        (
            "[parallelism]\ntensor_parallel_degree = 2\nexpert_parallel_degree = 64\n",
            "TP2 DP32 EP64 ETP1 SP ZeRO-3",  # where it says nothing, its experts are whole
        ),
        (  # a stage keeps its parameters unless they are always to go
            "[parallelism]\npipeline_parallel_degree = 4\n",
            "PP4 DP16 ZeRO-2 ends=both",
        ),
        (
            "[parallelism]\npipeline_parallel_degree = 4\nfsdp_reshard_after_forward = 'always'\n",
            "PP4 DP16 ZeRO-3 ends=both",
        ),
        # DeepSpeed divides the batch by replicas and accumulation
        ('{"train_batch_size": 256, "zero_optimization": {"stage": 1}}', "DP64 MBS4 ZeRO-1"),
        ('{"train_batch_size": 256, "gradient_accumulation_steps": 2}', "DP64 MBS2"),
        ("--zero-stage 2 --tensor-model-parallel-size 4", "TP4 DP16 ZeRO-2"),
        (
            "model.tensor_model_parallel_size=4 model.optim.name=mcore_distributed_optim",
            "TP4 DP16 ZeRO-1",
        ),
        ("model.tensor_model_parallel_size=4 model.optim.name=adamw", "TP4 DP16"),
        ("#SBATCH -N 4\n#SBATCH --gres=gpu:h100:8\nsrun x --tp 4", "TP4 DP8"),
        ("trainer.num_nodes=4 trainer.devices=8 model.tensor_model_parallel_size=4", "TP4 DP8"),
        ("trainer.num_nodes=4 trainer.devices=-1 model.tensor_model_parallel_size=4", "TP4 DP16"),
        ("deepspeed x --zero-stage 1 --per_device_train_batch_size 4", "DP64 MBS4 ZeRO-1"),
    ],
)
def test_the_words_of_launchers_are_read(text, same):
    assert notation(read_strategy(text, gpus=64)) == notation(read_strategy(same))


SCRIPT = """#!/bin/bash
#SBATCH --nodes=18
#SBATCH --gpus-per-node=8
export TP=4  # of a node
PP=${PP:-2}
MODEL_ARGS=(
    --num-layers 32
    --tensor-model-parallel-size ${TP}
)
OLD_ARGS="
    --pipeline-model-parallel-size $PP \\
    --save-interval 250
"
echo "TP=$TP of $# arguments"
srun ft_launcher --nnodes 16:18 --nproc-per-node 8 pretrain_gpt.py "${MODEL_ARGS[@]}" $OLD_ARGS \\
    --lr 3e-4 --sequence-parallel "$@"
"""


def test_a_script_is_read_with_its_variables_nodes_spares_and_checkpoints(tmp_path):
    path = tmp_path / "train.sh"
    path.write_text(SCRIPT)
    told = read_launch(path)
    assert told.strategy == read_strategy("TP4 PP2 DP16 SP")
    assert (told.host, told.spares, told.save_every) == (8, 2, 250)
    assert "lr" in told.passed
    assert read_strategy(str(path), layers=32) == told.strategy
    with pytest.raises(
        ValueError, match=r"train.sh: num_layers must be the 16 of the model, got 32"
    ):
        read_strategy(path, layers=16)
    path.write_text(SCRIPT.replace("16:18", "$NNODES").replace("--nodes=18", "--nodes=16"))
    assert read_launch(path).spares == 0
    path.write_text("--nnodes 1 --nproc-per-node 8 --tp 8 --pp 16")  # of an example
    assert read_launch(path).strategy == read_strategy("TP8 PP16")
    assert read_launch(path, gpus=256).strategy.data == 2


def test_a_batch_is_that_of_the_file_or_of_its_accumulation():
    told = read_launch(
        '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 2, '
        '"gradient_accumulation_steps": 8}',
        gpus=16,
    )
    assert told.global_batch == 2 * 8 * 16
    assert read_launch("--tp 2 --global-batch-size 96").global_batch == 96


def expanded(text: str) -> list[int]:
    """Layers of a layout by hand: brackets first, then letters, a sign at a time."""
    text, out = text.replace(",", ""), ""
    while text:
        unit, text = text[0], text[1:]
        if unit == "(":
            unit, _, text = text.partition(")")
            unit = "".join(
                [
                    "t" * int(n or 1) if c == "t" else c
                    for c, n in re.findall(r"(.)(?:\*(\d+))?", unit)
                ]
            )
        number = re.match(r"\*(\d+)", text)
        out += unit * int(number[1] if number else 1)
        text = text[number.end() :] if number else text
    return [stage.count("t") for stage in out.split("|")]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 12)), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(0, 2),
)
def test_layouts_are_expanded_as_by_hand(runs, last, mtp):
    text = "E" + "".join(f"({'t' * n}|)*{k}," if k % 2 else f"(t*{n}|)*{k}" for n, k in runs if n)
    text += "|" * (text == "E") + f"t*{last}" * (last > 0) + "m" * mtp + "L"
    layers = read_layout(text)
    assert layers == expanded(text)
    if len(layers) > 1:
        assert read_layout(in_letters(np.array(layers), mtp)) == layers


@pytest.mark.parametrize(
    ("split", "layout", "chunks", "layers"),
    [
        ("TP2 PP8 DP64 EP64", "1+2x30+0", "VPP4", 61),
        ("TP2 PP8 DP64 EP64", "Et|(tt|)*30mL", "VPP4", 61),
        ("PP2 DP128 EP32", "4x15+1", "VPP8", 61),
        ("PP2 DP128 EP32", "Et*4|(tttt|)*14tmL", "VPP8", 61),
        ("PP8 DP32 EP32", "3+4x22+3", "VPP3", 94),
        ("PP4 DP8", "Et*4|(t*7|)*2,tmL", "", 19),
    ],
)
def test_layouts_of_published_runs_are_read_in_words_and_in_arguments(
    split, layout, chunks, layers
):
    strategy = read_strategy(f"{split} {chunks}")
    names = {"TP": "tensor", "PP": "pipeline", "EP": "expert"}
    words = re.findall(r"(TP|PP|EP)(\d+)", split)
    arguments = " ".join(f"--{names[a]}-model-parallel-size {n}" for a, n in words)
    for text in (f"{split} {layout}", f"{arguments} --pipeline-model-parallel-layout '{layout}'"):
        told = read_launch(text, gpus=strategy.gpus, layers=layers)
        assert told.strategy == strategy
        assert sum(told.stage_layers) == layers


def test_layers_that_no_rule_deals_out_are_said_and_priced():
    from relparallel.hardware import cluster
    from relparallel.workload import transformer

    model, machine = transformer("llama3-70b"), cluster("h100-80gb-dgx", 64)
    text = "TP4 PP4 DP4 ZeRO-1 SP Et*2|(t*2|)*34,t*3|(t*2|)*3,tL"
    with pytest.warns(UserWarning, match=r"stage_layers='2x35\+3\+2x3\+1'"):
        strategy = read_strategy(text)
    assert strategy == read_strategy("TP4 PP4 DP4 ZeRO-1 SP VPP10")
    told = read_launch(text)
    assert told.beside(model) == {"stage_layers": "2x35+3+2x3+1"}
    for layout in ("Et*2|(t*2|)*34,t*3|(t*2|)*3,tL", told.stage_layers):
        found = step_time(model, strategy, machine, 64, stage_layers=layout)
        assert found.total == step_time(model, strategy, machine, 64, **told.beside(model)).total
    assert read_launch("TP4 PP4 DP4 layout=2x40").beside(model) == {}
    with pytest.warns(UserWarning, match="offload='parameters'"):
        read_strategy('{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--tensor-model-parallel-sise 4", "did you mean 'tensor_model_parallel_size'"),
        ("--hierarchical-context-parallel-sizes 2 4", "got hierarchical_context_parallel_sizes"),
        ("--recompute-granularity selective --recompute-modules mlp core_attn", "got mlp"),
        ("--recompute-granularity full --recompute-num-layers 2", "got 2 layers at once"),
        (
            "--recompute-granularity full --recompute-method block --recompute-num-layers 2",
            "got 2 layers of a stage",
        ),
        ("--recompute-granularity half", "got half"),
        ("--cpu-offloading-num-layers 4", "got activations of 4 layers"),
        ("model.cpu_offloading=true model.cpu_offloading_num_layers=4", "got activations of 4"),
        ("--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --tp 2", "got 0.5 of the opt"),
        ("--model-parallel-size 8 --pp 2", "got model_parallel_size = '8'"),
        (
            "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n",
            "got fsdp_config.fsdp_sharding",
        ),
        (
            "--tensor-model-parallel-size $1",
            r"set the value of tensor_model_parallel_size, got '\$1'",
        ),
        ("--tensor-model-parallel-size four", "must be a whole number, got 'four'"),
        ("--tensor-model-parallel-size 4 --tp 8", "must say tp once, got 4, 8"),
        ("--tensor-model-parallel-size '4", "quotation"),
        ("TP8 --sequence-parallel", "words or arguments throughout, got 'TP8'"),
        (
            f"{MEGATRON} --num-layers-per-virtual-pipeline-stage 2",
            "layers must be those of the model",
        ),
        ("--pp 4 --num-layers 32 --num-layers-per-virtual-pipeline-stage 3", "got 3"),
        ("--pp 3 --pipeline-model-parallel-layout 'Et|tL'", "layout must have"),
        ("--pp 2 --pipeline-model-parallel-layout 'tt|tL'", "layout must be"),
        ("--pp 2 --pipeline-model-parallel-layout 'Emt|tL'", "must be E, then layers t"),
        ("PP2 layout=2z3", "layout must be like"),
        ("PP2 VPP4 4x3+1", "layout must have 4 chunks in each of 2 stages"),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy all", "got 'all'"),
        ("--use-distributed-optimizer --num-distributed-optimizer-instances 3", "got 3"),
        ("--lr 3e-4 --data-path x", "must have a word of a strategy.*'lr', 'data_path'"),
        ("#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nsrun x --lr 1", "must have a word"),
        ('{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}', "zero_hpz_partition"),
        (
            "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'DualPipeV'",
            "got 'DualPipeV'",
        ),
        ("[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = '2'", "got 2"),
        ("[activation_checkpoint]\nmode = 'selective'", "got 2"),
        ("[parallelism]\ntensor_parallel_degree = ", "must be TOML"),
        ("[parallelism]\ntensor_parallel_degree = 1.5", "must be a whole number, got 1.5"),
        ('{"a": 1,', "no JSON or YAML"),
        ("TP2 DP16 EP32", "ETP1 SP"),
    ],
)
def test_a_word_that_is_not_understood_is_refused_by_name(text, said):
    with pytest.raises(ValueError, match=said):
        read_launch(text)


def test_words_that_sound_alike_and_change_nothing_are_passed_over():
    quiet = (
        "--ckpt-fully-parallel-save --overlap-param-gather --pipeline-dtype bf16 --num-workers 2"
    )
    told = read_launch(f"{MEGATRON} {quiet} --hierarchical-context-parallel-sizes 1")
    assert told.strategy == read_strategy("TP4 PP2")
    assert len(told.passed) == 5


def test_a_variable_is_put_in_where_a_script_gives_it_one_value(tmp_path):
    path = tmp_path / "train.sh"
    path.write_text('PP=${PP:=2}\nARGS="--tp 4"\nARGS+=" --sequence-parallel"\nx $ARGS --pp $PP')
    assert read_launch(path).strategy == read_strategy("TP4 PP2 SP")
    path.write_text(
        "A=(--tp 4 --recompute-activations)\nA+=(--pp 2 --sequence-parallel)\nx ${A[@]}"
    )
    assert read_launch(path).strategy == read_strategy("TP4 PP2 SP selective")
    path.write_text("if x; then\n  TP=1\nelse\n  TP=8\nfi\npretrain_gpt.py --tp $TP --pp 2")
    with pytest.raises(ValueError, match=r"value of tp, got '\$TP of several values'"):
        read_launch(path)


@pytest.mark.parametrize("name", ["none.toml", "a/b.sh", "none.json"])
def test_a_file_that_is_not_there_is_named(name):
    with pytest.raises(FileNotFoundError, match=name):
        read_strategy(name)


def test_a_file_that_cannot_be_read_says_which(tmp_path):
    for name, text in (("x.json", "[1, 2]"), ("y.toml", "a = "), ("z.yaml", "a: b: c")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ValueError, match=name):
            read_launch(path)


@st.composite
def launches(draw):
    """Any strategy with its hosts, and the sizes of a model that it can split."""
    s = draw(strategies())
    s = replace(s, micro_batch=draw(st.sampled_from([1, 2, 7])))
    chunks = s.pipeline * s.virtual_stages
    if chunks > 96:
        s = replace(s, schedule="1f1b", virtual_stages=1)
        chunks = s.pipeline
    layers = draw(st.integers(chunks, 2 * chunks + 30))
    hosts = [n for n in (1, 2, 4, 8) if s.gpus % n == 0]
    told = Launch(
        s,
        host=draw(st.sampled_from(hosts)),
        spares=draw(st.integers(0, 9)),
        save_every=draw(st.sampled_from([None, 1, 7, 1000])),
        global_batch=s.data * s.micro_batch * draw(st.integers(1, 5)),
    )
    return told, (layers, draw(st.integers(0, 1)))


WRITTEN = [(form, ending) for form, endings in FORMS.items() for ending in endings]


@settings(max_examples=200, deadline=None)
@given(launches(), st.sampled_from(WRITTEN))
def test_every_file_reads_back_as_the_same_strategy_spares_and_interval(drawn, written):
    (told, sizes), (form, ending) = drawn, written
    text, lost = launch_file(told, form, ending, sizes, ("a plan",))
    found = read_launch(text, layers=sizes[0])
    assert found.strategy == told.strategy
    assert found[2:5] == told[2:5]
    for name in re.findall(r"^# relparallel: (\w+)=", text, re.MULTILINE):
        assert any(f"word for {name}=" in one for one in lost) or name == "ends_as_layers"


def megatron(text: str) -> argparse.Namespace:
    """Arguments as argparse takes them, by none of the words of the package."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("tensor-model", "pipeline-model", "expert-model", "context", "expert-tensor"):
        parser.add_argument(f"--{name}-parallel-size", type=int, default=1)
    for name in ("sequence-parallel", "use-distributed-optimizer", "use-megatron-fsdp"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in (
        "num-virtual-stages-per-pipeline-rank",
        "micro-batch-size",
        "global-batch-size",
        "save-interval",
        "num-distributed-optimizer-instances",
        "nproc-per-node",
    ):
        parser.add_argument(f"--{name}", type=int, default=1)
    for name in ("nnodes", "pipeline-model-parallel-layout", "recompute-granularity"):
        parser.add_argument(f"--{name}", default=None)
    parser.add_argument("--recompute-modules", nargs="*", default=())
    plain = re.sub(r"^#.*$", "", text.replace("\\\n", " "), flags=re.MULTILINE)
    return parser.parse_known_args(shlex.split(plain))[0]


@st.composite
def usual(draw):
    """Strategies that Megatron has words for."""
    degree = st.sampled_from([1, 2, 4])
    t, p, c, d = (draw(degree) for _ in range(4))
    zero, whole = draw(st.sampled_from([0, 1, 2, 3])), draw(st.booleans())
    v = draw(st.sampled_from([1, 2, 5])) if p > 1 else 1
    return Strategy(
        tensor=t,
        pipeline=p,
        context=c,
        data=4 * d,
        virtual_stages=v,
        schedule="interleaved_1f1b" if v > 1 else "1f1b",
        expert=draw(degree),
        sequence_parallel=t > 1,
        experts_over_tensor=whole and t > 1,
        zero_stage=zero,
        shard=draw(st.sampled_from([None, 2 * d])) if zero else None,
        recompute=draw(st.sampled_from(["none", "selective", "full", "between", "mlp"])),
        micro_batch=draw(degree),
    )


@settings(max_examples=100, deadline=None)
@given(usual(), st.integers(0, 3), st.integers(20, 90))
def test_what_megatron_has_words_for_is_said_in_its_words(s, spares, layers):
    """None of it hides in comments: argparse alone finds it."""
    told = Launch(s, host=2, spares=spares, save_every=50, global_batch=s.data * s.micro_batch)
    text, lost = launch_file(told, "nvrx", ".sh", (layers, 0), ())
    assert lost == ()
    assert "# relparallel" not in text
    found = megatron(text)
    assert (found.tensor_model_parallel_size, found.pipeline_model_parallel_size) == (
        s.tensor,
        s.pipeline,
    )
    assert (found.context_parallel_size, found.expert_model_parallel_size) == (s.context, s.expert)
    assert found.sequence_parallel == s.sequence_parallel
    assert found.use_distributed_optimizer == (s.zero_stage > 0)
    assert found.use_megatron_fsdp == (s.zero_stage > 1)
    copies = s.data // s.shard_group if s.zero_stage else 1
    assert found.num_distributed_optimizer_instances == copies
    kinds = {("layernorm", "moe_act"): "between", ("mlp",): "mlp"}
    kind = kinds.get(tuple(found.recompute_modules), found.recompute_granularity)
    assert (kind or "none") == s.recompute
    assert (found.micro_batch_size, found.global_batch_size, found.save_interval) == (
        s.micro_batch,
        told.global_batch,
        50,
    )
    assert found.nnodes == f"{s.gpus // 2}:{s.gpus // 2 + spares}"
    dealt = deal(layers, 0, s).tolist()
    if found.pipeline_model_parallel_layout:
        assert expanded(found.pipeline_model_parallel_layout) == dealt
    else:
        assert len({*dealt}) == 1  # as Megatron deals them out itself
        assert found.num_virtual_stages_per_pipeline_rank == s.virtual_stages


def test_torchtitan_bridge_and_slurm_have_their_own_words():
    s = read_strategy("TP2 PP4 DP16 VPP2 FSDP8 SP full MBS2")
    told = Launch(s, host=8, spares=3, save_every=70, global_batch=128)
    text, lost = launch_file(told, "torchtitan", ".toml", (30, 0), ("a plan",))
    found = tomllib.loads(text)
    assert found["parallelism"]["data_parallel_shard_degree"] == 8
    assert found["parallelism"]["data_parallel_replicate_degree"] == 2
    assert found["parallelism"]["pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert found["training"] == {"local_batch_size": 8, "global_batch_size": 128}
    assert found["activation_checkpoint"] == {"mode": "full"}
    assert found["checkpoint"] == {"interval": 70, "enable": True}
    parts = found["parallelism"]["module_fqns_per_model_part"]
    assert [len([m for m in part if "layers." in m]) for part in parts] == deal(30, 0, s).tolist()
    assert [m for part in parts for m in part][1:-2] == [f"layers.{k}" for k in range(30)]
    assert lost == ("torchtitan has no word for spares=3",)
    text, lost = launch_file(told, "bridge", ".yaml", (32, 0), ("a plan",))
    found = yaml.safe_load(text)
    assert found["ddp"]["use_megatron_fsdp"] == found["dist"]["use_megatron_fsdp"] is True
    assert found["model"]["virtual_pipeline_model_parallel_size"] == 2
    assert found["checkpoint"] == {"save_interval": 70}
    assert "bridge has no word for data=16: start it on 128 GPUs" in lost
    text, lost = launch_file(told, "slurm", ".sbatch", (32, 0), ("a plan",))
    assert lost == ()
    for line in ("#SBATCH --nodes=19", "#SBATCH --requeue", "srun ft_launcher --nnodes=16:19 "):
        assert line in text


def test_what_torchtitan_cannot_say_is_said_and_kept():
    told = Launch(read_strategy("TP2 DP8 ZeRO-1 selective"), host=8)
    text, lost = launch_file(told, "torchtitan", ".toml", (32, 0), ())
    assert lost == (
        "torchtitan has no word for sequence_parallel=False",
        "torchtitan has no word for recompute=selective",
        "torchtitan has no word for zero_stage=1",
    )
    assert "enable_sequence_parallel" not in tomllib.loads(text)["parallelism"]  # 0.2 refuses it
    assert json.dumps(tomllib.loads(text)["activation_checkpoint"]) == (
        '{"mode": "selective", "selective_ac_option": "op"}'
    )
