"""Theorems on sizes, operations, memory and schedules of split models."""

import math

import numpy as np
from theorem_table import theorem

from chapters import s33
from relparallel import parallel, units, workload
from relparallel.parallel.memory_forms import micro_batches_in_flight


@theorem("THM-ring-all-reduce", system="Ring all-reduce")
def test_ring_sum():
    """Executed on vectors of 1,000 whole numbers, 7 ranks all end with the sum."""
    # Entries equal to the sum, and entries in all.
    vectors = np.arange(7000).reshape(7, 1000) ** 2 % 997
    held = parallel.execute(parallel.ring_all_reduce(7, 1000), vectors)
    return float((held == vectors.sum(axis=0)).sum()), 7000.0


@theorem("THM-ring-time", system="Ring all-reduce")
def test_ring_price():
    """With n dividing N the rounds cost 2 (n - 1)(alpha + beta N/n)."""
    # Price of the rounds, and the closed form.
    links = parallel.Links(
        latency=3e-6, bandwidth=100 * units.GB, network_latency=0.0, network_bandwidth=1.0
    )
    priced = parallel.rounds_time(parallel.ring_all_reduce(16, 2**20), 16, links, element_bytes=4)
    return priced, 30 * (3e-6 + 2**20 / 16 * 4 / (100 * units.GB))


@theorem("THM-1f1b-peak", system="1F1B / PipeDream-Flush")
def test_one_forward_one_backward_peak():
    """Summed over 12 stages, simulated 1F1B holds 1 + 2 + ... + 12 micro-batches at its peak."""
    # Sum of the simulated peaks, and of 1 ... p.
    return float(parallel.simulate_schedule("1f1b", 12, 48).peak_in_flight.sum()), 12 * 13 / 2


@theorem("THM-interleaved-peak", system="Interleaved 1F1B")
def test_interleaved_peaks():
    """The simulated peaks of 8 stages with 4 chunks equal the closed form on every stage."""
    # Sum of squares of the simulated and of the closed-form peaks.
    simulated = parallel.simulate_schedule("interleaved_1f1b", 8, 32, 4).peak_in_flight
    return math.fsum(simulated**2), math.fsum(
        micro_batches_in_flight("interleaved_1f1b", 8, 32, 4) ** 2
    )


@theorem("THM-tensor-volume", system="Tensor parallelism (Megatron-LM)")
def test_tensor_volume():
    """Each GPU sends what 4 ring all-reduces per layer send when counted round by round."""
    # Bytes by the formula, and bytes counted.
    model = workload.Transformer(layers=48, hidden=6144, heads=64, vocabulary=51200, sequence=2048)
    (formula,) = s33.strategy_collectives(
        model, parallel.Strategy(tensor=8, micro_batch=4), global_batch=4
    )
    counted = parallel.bytes_sent(
        parallel.ring_all_reduce(8, 4 * 2048 * 6144), ranks=8, element_bytes=2
    )
    return formula.bytes_sent, 4 * 48 * float(counted.max())
