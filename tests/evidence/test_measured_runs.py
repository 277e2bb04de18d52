"""Measured runs: every row of the table is a run or is refused with a reason."""

from dataclasses import replace

import pytest

from evidence.fitting import errors
from evidence.training_steps import measured_runs, refused_runs, row_as_run
from relparallel.parallel import step_time
from relparallel.parallel.machine_parameters import calibration, software
from relparallel.published import facts, shipped_rows
from relparallel.units import GBIT, GIB

ROWS = {row["id"]: row for row in shipped_rows("measured_runs.csv")}


def test_no_row_is_dropped_in_silence():
    refused = set(refused_runs().index)
    taken = {run.id for run in measured_runs(outliers=True)}
    bridge = {name for name in facts("parallelism-cost") if name.startswith("BRIDGE-")}
    assert len(bridge) == 215
    assert refused | (taken & (bridge | set(ROWS))) == bridge | set(ROWS)
    assert not refused & taken


def test_every_row_names_where_it_stands_in_public():
    assert all(row["reference"] and row["confidence"] for row in ROWS.values())
    assert all("(" in row["reference"] for row in ROWS.values())  # its licence


def test_a_reason_is_in_words():
    reasons = refused_runs()["reason"]
    assert reasons["LLAMA3-0002"] == "virtual_stages is not published"
    assert reasons["BRIDGE-0278"] == "no sizes of Nemotron_3_Ultra"
    assert reasons["MAXTEXT-001"] == "tensor is not published"
    assert reasons.str.len().min() > 10


def test_a_row_of_mlperf_is_the_run_that_was_submitted():
    run = next(run for run in measured_runs() if run.id == "MLPERF-3.1-003")
    assert (run.strategy.gpus, run.strategy.data, run.strategy.virtual_stages) == (10240, 320, 12)
    assert (run.time, run.precision, run.global_batch, run.cluster.nodes) == (
        0.94685,
        "fp8",
        2560,
        1280,
    )
    assert run.model.parameters == pytest.approx(175e9, rel=0.003)


@pytest.mark.parametrize(
    ("row", "unit", "value", "seconds"),
    [
        ("MLPERF-3.1-005", "s", "1.5", 1.5),
        ("MLPERF-3.1-005", "ms", "1500", 1.5),
        # 2,048 sequences of 2,048 tokens on 4,096 GPUs
        ("MLPERF-3.1-005", "tokens/s/GPU", "1024", 1.0),
    ],
)
def test_times_and_rates_are_read(row, unit, value, seconds):
    assert row_as_run({**ROWS[row], "unit": unit, "value": value}).time == pytest.approx(
        seconds, rel=1e-12
    )


def test_a_network_that_is_not_published_is_not_made_up():
    """It was 100 Gb/s a GPU; a single node has none."""
    row = ROWS["MLPERF-4.1-008"]
    run = row_as_run(row)
    assert run.cluster.network_bandwidth == 3200 * GBIT  # of the DGX B200 that its settings name
    assert "not stated" in row["reference"]
    with pytest.raises(ValueError, match="network_gbit is not published"):
        row_as_run({**row, "network_gbit": ""})
    for other in ROWS.values():
        alone = int(other["gpus"]) <= int(other["gpus_per_node"])
        assert other["network_gbit"] or alone or other["id"] in refused_runs().index


def test_a_rate_of_operations_counts_those_of_the_model():
    run = row_as_run(ROWS["MLPERF-3.1-005"])
    rate = run.model.flops_per_iteration(2048) / (run.time * 4096 * 1e12)
    again = row_as_run({**ROWS["MLPERF-3.1-005"], "unit": "TFLOP/s/GPU", "value": str(rate)})
    assert again.time == pytest.approx(run.time, rel=1e-12)


def test_peaks_of_memory_come_along():
    run = next(run for run in measured_runs() if run.id == "TITAN-006")
    assert run.memory == float(ROWS["TITAN-006"]["memory_gib"]) * GIB
    assert next(run for run in measured_runs() if run.id == "PTDP-T-0010").memory == 0


def test_a_strategy_that_breaks_a_rule_is_refused_in_its_words():
    with pytest.raises(ValueError, match="tensor must divide the heads"):
        row_as_run(
            {
                **ROWS["VTRAIN-S-0001"],
                "heads": "15",
                "hidden": "960",
                "tensor": "2",
                "pipeline": "1",
            }
        )
    assert replace(measured_runs()[0], memory=1.0).memory == 1.0


def test_models_of_the_rows_do_the_operations_that_the_source_counts():
    """Attention aside, of which Megatron-Bridge counts what a causal mask leaves."""
    for name in ("BRIDGE-0009", "BRIDGE-0035", "BRIDGE-0264", "BRIDGE-0272", "BRIDGE-0273"):
        run = next(run for run in measured_runs() if run.id == name)
        counted = float(facts()[name].inputs["model_tflops_per_gpu"]) * 1e12 * run.strategy.gpus
        counted *= run.time / (run.global_batch * run.model.sequence)
        without = run.model.flops_per_token - 3 * run.model.core_flops(run.model.sequence)
        assert 0.95 * without < counted < 1.02 * run.model.flops_per_token
        further = replace(run.model, mtp_layers=run.model.mtp_layers + 1).flops_per_token
        assert abs(run.model.flops_per_token / counted - 1) < abs(further / counted - 1)


def test_experts_are_split_by_tensor_ranks_where_a_row_says_so():
    of = {run.id: run.strategy for run in measured_runs()}
    assert (of["DGXC-GROK-fp8-512"].expert, of["DGXC-GROK-fp8-512"].expert_tensor) == (8, 4)
    assert (of["DGXC-DSV3-bf16-128"].expert, of["DGXC-DSV3-bf16-128"].expert_tensor) == (32, 1)


def test_mixtures_of_experts_wait_for_the_host_but_not_in_graphs():
    """The host counts tokens, then launches the kernels of every expert, forward and backward."""
    run = next(run for run in measured_runs() if run.id == "BRIDGE-0209")  # 16 experts a GPU
    known, did = calibration("b200-180gb"), software(run.software.partition("+")[0])
    passes = 2 * run.model.layers * run.global_batch / run.strategy.data
    stall = passes * (known.values["sync"] + 16 * did.expert_launch)
    stall *= known.factor(did.name, run.model.kind)
    priced = [
        step_time(
            run.model,
            run.strategy,
            run.cluster,
            run.global_batch,
            software=name,
            precision=run.precision,
        )
        for name in (did.name, f"{did.name}+cuda_graphs")
    ]
    assert priced[1].launch == 0
    assert priced[0].launch > stall > 0.3 * priced[0].total
    assert priced[0].total - priced[1].total == pytest.approx(priced[0].launch)


def test_options_of_a_row_are_those_of_its_software():
    of = {run.id: run.software for run in measured_runs()}
    assert of["TITAN-001"] == "torchtitan-2024+eager"
    assert of["TITAN-020"] == "torchtitan-2025+async_tp"
    assert of["TITAN-023"] == "torchtitan-2025+rowwise"
    assert of["MLPERF-4.1-008"] == "nemo-2024+cuda_graphs+mlperf"
    assert of["MLPERF-4.0-009"] == "nemo-2024+adapters+mlperf+no_tp_overlap"
    assert software("nemo-2024+no_tp_overlap").tensor_overlap is False
    with pytest.raises(ValueError, match="option must be one of"):
        software("nemo-2024+graphs")


def test_checkpoints_of_every_second_product_are_read_and_lie_in_the_interval():
    runs = [run for run in measured_runs() if run.strategy.recompute == "alternate"]
    assert {run.source for run in runs} == {"torchtitan"}
    assert len(runs) == 7
    for run in runs:
        of = (run.model, run.strategy, run.cluster, run.global_batch)
        low, high = step_time(*of, software=run.software, precision=run.precision).interval(0.9)
        assert low < run.time < high


def test_kernels_one_by_one_take_longer_between_products_and_nowhere_else():
    run = next(run for run in measured_runs() if run.id == "TITAN-001")
    of = (run.model, run.strategy, run.cluster, run.global_batch)
    eager, compiled = (step_time(*of, software=n) for n in (run.software, "torchtitan-2024"))
    assert eager.compute > 1.05 * compiled.compute
    assert eager.recompute > 1.05 * compiled.recompute
    assert (eager.head, eager.optimizer) == (compiled.head, compiled.optimizer)


def test_adapters_have_no_gradients_of_weights_nor_an_optimizer():
    run = next(run for run in measured_runs() if run.id == "MLPERF-4.1-026")
    all_of, adapters = (
        step_time(
            run.model, run.strategy, run.cluster, run.global_batch, software=name, precision="fp8"
        )
        for name in ("nemo-2024", "nemo-2024+adapters")
    )
    assert (adapters.data, adapters.optimizer) == (0, 0)
    assert all_of.data > 0 < all_of.optimizer
    known = calibration("h100-80gb")
    factor = known.factor("nemo-2024+adapters") / known.factor("nemo-2024")
    assert 2 / 3 < adapters.compute / all_of.compute / factor < 0.8
    assert adapters.memory.fits
    assert not all_of.memory.fits
    assert adapters.mfu * adapters.total == pytest.approx(2 / 3 * all_of.mfu * all_of.total)
    assert run.least_time == pytest.approx(
        2 / 3 * replace(run, software="nemo-2024").least_time, rel=1e-12
    )


def test_more_than_half_of_the_mixtures_are_within_10_per_cent():
    errors_of = {
        chip: errors(own, calibration(own[0].cluster.accelerator))["error"].abs()
        for chip in ("B200", "GB200", "B300", "GB300", "H100")
        if (own := [run for run in measured_runs() if run.source.endswith(f"MoE, {chip}")])
    }
    assert {chip: len(of) for chip, of in errors_of.items()} == {
        "B200": 13,
        "GB200": 26,
        "B300": 13,
        "GB300": 40,
        "H100": 15,
    }
    assert max(of.median() for of in errors_of.values()) < 0.1
