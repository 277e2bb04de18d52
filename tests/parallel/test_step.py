import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evidence.training_steps import measured_runs
from relparallel.hardware import cluster
from relparallel.parallel import (
    Placement,
    Strategy,
    bubble_fraction,
    calibration,
    memory,
    simulate_schedule,
    step_time,
)
from relparallel.parallel.layer_times import passes
from relparallel.parallel.machine_parameters import software as known_software
from relparallel.parallel.quantities import Rates, Sizes, Split
from relparallel.topology import dgx_superpod, leaf_spine
from relparallel.units import TFLOP
from relparallel.workload import Transformer, transformer

GPT = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)
KNOWN = calibration("a100-80gb")


def without(**values):
    """The A100 with some parameters replaced."""
    return replace(KNOWN, values={**KNOWN.values, **values}, factors={})


def on(gpus, name="a100-80gb-selene"):
    return cluster(name, gpus=gpus)


def test_one_gpu_costs_its_matrix_products_at_the_calibrated_rate():
    """By hand: with perfect tiles, no traffic or latency a step is its operations over the rate."""
    model = Transformer(layers=8, hidden=12288, heads=96, vocabulary=49152, sequence=2048)
    free = without(
        depth=1e-9, traffic=1e-12, host=1e-9, micro=1e-12, step=1e-12, batched=0.869, gemm=0.8
    )
    found = step_time(model, Strategy(micro_batch=9), on(1), 9, calibrated=free)
    weights = 6 * 9 * model.sequence * (model.layer_weights + model.hidden * model.vocabulary)
    scores = 12 * 9 * model.layers * model.sequence**2 * model.hidden
    assert (
        found.tensor
        == found.data
        == found.pipeline
        == found.pipeline_bubble
        == found.recompute
        == 0
    )
    # 9 x 2048 rows are 72 tiles of 256: 108 processors finish 96 x 72 = 64 x 108 tiles in whole
    # waves
    ideal = weights / (0.8 * 312 * TFLOP) + scores / (0.869 * 312 * TFLOP)
    assert found.total == pytest.approx(ideal, rel=0.02)


def test_the_parts_sum_to_the_total():
    found = step_time(GPT, Strategy(tensor=4, pipeline=2, data=2, recompute="full"), on(16), 64)
    assert found.to_frame()["seconds"].sum() == pytest.approx(found.total, rel=1e-12)
    assert found.to_frame()["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "p", "v"),
    [
        ("1f1b", 2, 1),
        ("1f1b", 4, 1),
        ("interleaved_1f1b", 4, 2),
        ("interleaved_1f1b", 8, 3),
        ("gpipe", 4, 1),
        ("pipedream", 4, 1),
        ("zb_h1", 4, 1),
        ("zb_2p", 4, 1),
        ("chimera", 4, 1),
    ],
)
def test_the_bubble_is_that_of_the_closed_form(name, p, v):
    """Without output layer, transfers and latencies all stages are equal, the closed form exact."""
    model = Transformer(layers=24, hidden=4096, heads=32, vocabulary=1, sequence=2048)
    free = without(
        micro=1e-12, step=1e-12, hop=1e-12, round=1e-12, link_share=1.0, network_share=1.0
    )
    machine = replace(on(p), network_bandwidth=1e18)
    machine = replace(machine, accelerator=replace(machine.accelerator, node_link=1e18))
    split = Strategy(pipeline=p, virtual_stages=v, schedule=name)
    found = step_time(model, split, machine, 4 * p, calibrated=free, software="megatron-2022")
    rates = Rates.of(machine, free, known_software("megatron-2022"))
    f, b, w, *_ = passes(Sizes.of(model), rates, Split.of(split, 4 * p))
    share = bubble_fraction(name, p, 4 * p, v, forward=f, backward=b, backward_weight=w)
    busy = found.compute + found.launch
    assert found.pipeline_bubble / busy == pytest.approx(share, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("batch", [8, 32])
def test_a_heavy_output_layer_slows_the_pipeline_as_in_the_simulation(batch):
    """BLOOM's vocabulary makes the last stage slowest: closed form against event simulation."""
    p, model = 8, replace(GPT, vocabulary=250880)
    found = step_time(model, Strategy(pipeline=p), on(8), batch)
    middle = (found.pipeline_bubble - 2 * (p - 1) * found.pipeline / (2 * batch)) / (p - 1)
    last = middle + found.head / batch
    thirds = np.array([middle] * (p - 1) + [last]) / 3
    simulated = simulate_schedule("1f1b", p, batch, forward=thirds, backward=2 * thirds)
    closed = found.total - found.data - found.optimizer - found.overhead - found.pipeline
    closed -= 2 * (p - 1) * found.pipeline / (2 * batch)
    assert found.head > 0.1 * closed
    assert closed == pytest.approx(simulated.makespan, rel=0.01)


def test_full_recomputation_costs_one_more_forward_pass():
    plain = step_time(GPT, Strategy(tensor=4), on(4), 8)
    again = step_time(GPT, Strategy(tensor=4, recompute="full"), on(4), 8)
    assert again.compute == plain.compute
    assert 0.25 < again.recompute / plain.compute < 0.4  # a third in operations
    assert again.tensor == pytest.approx(1.5 * plain.tensor)  # its all-reduces are done again too


@pytest.mark.parametrize("name", ["gpt3-175b", "llama3-8b", "deepseek-v3"])
@pytest.mark.parametrize("software", ["megatron-2022", "torchtitan-2024"])
def test_more_that_is_computed_again_takes_longer_and_keeps_less(name, software):
    """Nothing, every second product, every layer: in time and, the other way, in memory."""
    model, kinds = transformer(name), ("none", "alternate", "full")
    splits = [Strategy(tensor=8, data=2, sequence_parallel=True, recompute=k) for k in kinds]
    steps = [step_time(model, split, on(16), 16, software=software) for split in splits]
    held = [memory(model, split, 16, software=software).activations[0] for split in splits]
    for values in (held[::-1], [s.recompute for s in steps], [s.tensor for s in steps]):
        assert values[0] < values[1] < values[2]
    assert steps[0].recompute == 0
    assert [s.compute for s in steps] == [steps[0].compute] * 3
    sent = [s.tensor for s in steps]  # what is gathered twice, and not what is scattered
    assert sent[1] == pytest.approx((sent[0] + sent[2]) / 2, rel=1e-12)


def test_every_second_product_is_priced_as_those_products_are():
    """K, the projection and half of a gated block, and what is between, by products of their own."""
    model, machine = transformer("llama3-8b"), on(8)
    rates = Rates.of(machine, calibration(machine.accelerator), known_software("torchtitan-2024"))
    rates = rates._replace(traffic=0.0)  # what is between products costs nothing
    sizes, split = Sizes.of(model), Split.of(Strategy(data=8), 8)
    whole = passes(sizes, rates, split)
    products = whole.forward - whole.core
    h, keys = model.hidden, model.key_value_heads * model.head_width
    again = h * keys + h * h + h * model.ffn_hidden
    every = 2 * h * (h + keys) + 3 * h * model.ffn_hidden
    assert whole.alternate / products == pytest.approx(again / every, rel=0.02)
    stored = passes(sizes, rates._replace(flash_attention=0), split)
    assert stored.alternate - stored.core == pytest.approx(whole.alternate, rel=1e-12)
    assert whole.between == 0
    assert whole.mlp / products == pytest.approx(3 * h * model.ffn_hidden / every, rel=0.02)


def test_parts_that_are_computed_again_cost_their_own_kernels_and_transfers():
    """Norms and activations no product and no transfer; a dense block half of those of a layer."""
    model = transformer("llama3-8b")
    none, between, mlp, full = (
        step_time(model, Strategy(tensor=8, data=2, recompute=kind), on(16), 16)
        for kind in ("none", "between", "mlp", "full")
    )
    assert between.tensor == none.tensor
    assert mlp.tensor == pytest.approx((none.tensor + full.tensor) / 2, rel=1e-12)
    assert 0 < between.recompute < 0.2 * mlp.recompute
    assert 0.4 * full.recompute < mlp.recompute < full.recompute


def test_gradients_of_a_ring_take_the_bytes_over_the_share_of_the_network():
    """Eight tensor-parallel ranks of a node reduce at once: each has an eighth of the adapters."""
    free = without(hop=1e-12, round=1e-12, network_share=0.5)
    found = step_time(
        GPT, Strategy(tensor=8, data=16), on(128), 64, calibrated=free, software="megatron-2022"
    )
    held = (GPT.layer_weights + GPT.vocabulary * GPT.hidden) / 8
    sent = 2 * 15 / 16 * held * 4  # fp32 gradients
    assert found.data == pytest.approx(sent * 8 / (0.5 * 200e9), rel=1e-9)


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_a_faster_network_is_never_slower(t, p, d):
    slow, fast = (
        step_time(GPT, Strategy(tensor=t, pipeline=p, data=d), machine, 16 * d)
        for machine in (
            on(8 * t * p * d // 8, name) for name in ("a100-80gb-jean-zay", "a100-80gb-selene")
        )
        if t * p * d < 8 or t * p * d % 8 == 0
    )
    assert fast.total <= slow.total


def test_a_placement_across_nodes_pays_for_its_tensor_groups():
    """Data dealt first puts the ranks of a tensor group on different nodes."""
    split = Strategy(tensor=8, data=8)
    usual = step_time(GPT, split, on(64), 64)
    same = step_time(GPT, split, on(64), 64, placement=Placement(strategy=split))
    across = Placement(strategy=split, order=("data", "context", "tensor", "pipeline"))
    paid = step_time(GPT, split, on(64), 64, placement=across)
    assert same == usual
    assert paid.tensor > 3 * usual.tensor
    assert paid.data < usual.data
    assert paid.compute == usual.compute


def test_a_network_is_as_good_as_the_links_that_groups_meet_on():
    """Rails carry each GPU's gradients apart; half the spines of a leaf-spine do half as well."""
    split = Strategy(tensor=8, data=8)
    machine = on(64)
    rails = dgx_superpod(1)
    assert step_time(GPT, split, machine, 64, network=rails).data > 0
    wide, narrow = (leaf_spine(leaves=8, spines=spines, hosts_per_leaf=8) for spines in (8, 4))
    fast, slow = (
        step_time(GPT, split, machine, 64, network=net, software="megatron-2022")
        for net in (wide, narrow)
    )
    assert slow.data == pytest.approx(2 * fast.data, rel=0.01)
    assert slow.compute == fast.compute


def test_a_lost_cable_slows_exactly_the_collectives_that_cross_it():
    net = leaf_spine(leaves=8, spines=8, hosts_per_leaf=8)
    split = Strategy(tensor=8, data=8)
    alive = np.ones(net.num_nodes + len(net.edges), dtype=bool)
    # leaf to spine
    alive[net.num_nodes + int(np.flatnonzero((net.edges >= 64).all(axis=1))[0])] = False
    whole, lost = (step_time(GPT, split, on(64), 64, network=net, alive=a) for a in (None, alive))
    assert lost.data > whole.data
    assert lost.tensor == whole.tensor
    alive[net.num_nodes] = False  # the cable of GPU 0
    with pytest.raises(ValueError, match="alive must leave the tensor groups joined"):
        step_time(GPT, split, on(64), 64, network=net, alive=alive)


def test_work_scales_with_the_batch():
    small, large = (step_time(GPT, Strategy(data=2), on(2), batch) for batch in (8, 16))
    assert large.compute == pytest.approx(2 * small.compute)
    assert (large.data, large.optimizer) == (small.data, small.optimizer)


def test_sharded_parameters_hide_behind_compute_only_while_the_network_keeps_up():
    split = Strategy(data=64, zero_stage=3, micro_batch=2)
    fast = step_time(GPT, split, on(64), 128, software="llm-foundry-2023")
    slow = step_time(
        GPT, split, replace(on(64), network_bandwidth=1e9), 128, software="llm-foundry-2023"
    )
    assert fast.data < 0.25 * fast.total
    assert slow.data > 0.9 * slow.total


def test_experts_cost_their_active_part_and_two_exchanges():
    dense = replace(GPT, ffn=4 * 4096)
    mixed = replace(GPT, experts=8, active_experts=2, expert_ffn=2 * 4096)
    one = step_time(dense, Strategy(data=8), on(8), 64)
    many = step_time(mixed, Strategy(data=8, expert=8), on(8), 64)
    assert many.compute == pytest.approx(one.compute, rel=0.1)  # as many operations
    assert many.expert > 0 == one.expert


def test_fp8_halves_what_it_can():
    model = replace(GPT, hidden=8192, heads=64)
    half, quarter = (
        step_time(
            model,
            Strategy(tensor=8, sequence_parallel=True),
            on(8, "h100-80gb-dgx"),
            8,
            software="megatron-bridge-2025",
            precision=precision,
        )
        for precision in ("bf16", "fp8")
    )
    assert 0.55 < quarter.compute / half.compute < 0.9


def test_most_published_runs_lie_in_their_interval():
    inside = []
    for run in measured_runs():
        chunks = run.strategy.pipeline * run.strategy.virtual_stages
        if run.model.layers % chunks and (run.model.layers + 2) % chunks:
            continue  # stages of unequal length, as DeepSpeed deals them out
        found = step_time(
            run.model,
            run.strategy,
            run.cluster,
            run.global_batch,
            software=run.software,
            precision=run.precision,
        )
        low, high = found.interval(0.9)
        inside.append(low <= run.time <= high)
    assert np.mean(inside) >= 0.9


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"tensor": 3, "data": 1}, "tensor must divide the heads"),
        ({"pipeline": 32, "data": 1}, r"pipeline \* virtual_stages must be at most the layers"),
        ({"data": 5}, "data \\* micro_batch must divide the global batch"),
        ({"micro_batch": 5}, "data \\* micro_batch must divide the global batch"),
        ({"sequence_parallel": True}, "sequence_parallel needs tensor above 1"),
    ],
)
def test_a_broken_rule_is_named(changed, error):
    split = Strategy(**changed)
    with pytest.raises(ValueError, match=error):
        step_time(GPT, split, on(split.gpus), 64)


def test_a_strategy_must_fit_its_cluster():
    with pytest.raises(ValueError, match="fit the 16 GPUs of the cluster, got 32"):
        step_time(GPT, Strategy(tensor=8, data=4), on(16), 64)


def test_a_part_of_a_cluster_is_as_fast_as_a_cluster_of_that_size():
    split = Strategy(tensor=8, data=2)
    assert step_time(GPT, split, on(64), 64).total == step_time(GPT, split, on(16), 64).total


def test_a_cluster_without_an_accelerator_has_no_times():
    with pytest.raises(ValueError, match="cluster must have an accelerator"):
        step_time(GPT, Strategy(tensor=8), replace(on(8), accelerator=None), 64)


def test_an_unknown_software_is_refused():
    with pytest.raises(ValueError, match="software must be one of"):
        step_time(GPT, Strategy(tensor=8), on(8), 64, software="megatron-1999")


def test_a_step_takes_as_long_without_compilation():
    lines = (
        "from relparallel.hardware import cluster",
        "from relparallel.parallel import Strategy, step_time",
        "from relparallel.workload import Transformer",
        "model = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048)",
        "strategy, machine = Strategy(tensor=4, pipeline=4, data=2), cluster('a100-80gb-selene', "
        "32)",
        "found = step_time(model, strategy, machine, 64)",
        "print(repr(float(found.total)))",
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    plain = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = step_time(GPT, Strategy(tensor=4, pipeline=4, data=2), on(32), 64)
    assert float(plain.stdout) == pytest.approx(found.total, rel=1e-12)


def test_activations_that_leave_the_gpu_cost_what_the_passes_do_not_hide():
    split = Strategy(
        tensor=4, pipeline=4, data=2, zero_stage=1, sequence_parallel=True, micro_batch=4
    )
    machine = on(32)
    device = machine.accelerator

    def with_link(bandwidth):
        return replace(machine, accelerator=replace(device, host_link=bandwidth))

    here = step_time(GPT, split, machine, 64)
    fast, slow, slower = (
        step_time(GPT, split, with_link(rate), 64, offload="activations")
        for rate in (1e18, 1e9, 0.5e9)
    )
    assert fast.total == pytest.approx(here.total, rel=1e-6)
    moved = memory(GPT, split, 64, offload="activations").transfer.max()  # both ways
    share = calibration(device.name).values["link_share"]
    assert slower.total - slow.total == pytest.approx(
        moved / 1e9 / share, rel=1e-9
    )  # nothing left to hide it
    usual = step_time(GPT, split, machine, 64, offload="activations")
    assert here.total < usual.total < slow.total
    assert usual.overhead - here.overhead == pytest.approx(usual.total - here.total)
    assert usual.memory.needed < here.memory.needed
    with pytest.raises(ValueError, match="offload must be 'none' on"):
        step_time(GPT, split, with_link(0.0), 64, offload="activations")
    with pytest.raises(ValueError, match="offload must be one of 'none', 'activations'"):
        step_time(GPT, split, machine, 64, offload="optimizer")


@pytest.mark.parametrize("gpus", [1, 8, 512])
def test_a_step_waits_for_the_slowest_rank_as_the_logarithm_of_their_number(gpus):
    """The longest of n exponential waits is ln(n) of them on average, but for a constant."""
    known, name = calibration("h100-80gb"), "megatron-bridge-2026"
    place = cluster("h100-80gb-dgx", 512)
    dense = step_time(transformer("llama3-8b"), Strategy(data=gpus), place, 512, software=name)
    waits = known.values["step"] * math.log(1 + gpus) * known.factor(name)
    assert dense.overhead == pytest.approx(waits, rel=1e-12)


@pytest.mark.parametrize("zero_stage", [0, 1])
def test_what_hides_gradients_does_not_hide_tensor_parallel_sums(zero_stage):
    known, place = calibration("h100-80gb"), cluster("h100-80gb-dgx", 64)
    split = Strategy(tensor=8, data=8, sequence_parallel=True, zero_stage=zero_stage)

    def moved(**values):
        step = step_time(
            transformer("llama3-8b"),
            split,
            place,
            64,
            software="megatron-bridge-2025",
            calibrated=replace(known, values={**known.values, **values}),
        )
        return step.data, step.tensor

    data, tensor = moved(late=0.1, exposed=0.1)
    later, same = moved(late=0.9, exposed=0.1)
    assert (later > 1.5 * data, same) == (True, tensor)
    less, more = moved(late=0.1, exposed=0.9)  # longer passes hide more of the gradients
    assert (less <= data, more > 2 * tensor) == (True, True)
