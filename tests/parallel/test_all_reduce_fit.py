"""The fit to measured all-reduces: what it finds again, and how wrong it is where it has not looked."""

from __future__ import annotations

import numpy as np
import pytest

from relparallel.parallel import (
    AllReduceFit,
    Links,
    all_reduce_errors,
    collective_time,
    fit_all_reduce,
    measured_all_reduces,
)

NVLINK = 300e9


def test_a_fit_finds_the_numbers_of_exact_times():
    known = AllReduceFit(launch=30e-6, latency=2e-6, bandwidth=220e9, further_rounds=0.5)
    ranks, size = (grid.ravel() for grid in np.meshgrid([2.0, 3.0, 4.0, 8.0], np.logspace(5, 9, 9)))
    found = fit_all_reduce(ranks, size, known.time(ranks, size), highest_bandwidth=NVLINK)
    for name in ("launch", "latency", "bandwidth", "further_rounds"):
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=1e-4)


def test_without_further_rounds_it_is_the_ring():
    fit = AllReduceFit(launch=3e-5, latency=2e-6, bandwidth=200e9, further_rounds=0.0)
    links = Links(latency=2e-6, bandwidth=200e9, network_latency=0, network_bandwidth=1, launch=3e-5)
    ranks = np.array([1, 2, 5, 8])
    ring = collective_time("all_reduce", "ring", 1e8, ranks, ranks, links)
    assert fit.time(ranks, 1e8) == pytest.approx(ring)


def test_no_fit_exceeds_the_link():
    rows = measured_all_reduces()
    found = fit_all_reduce(rows["ranks"], rows["size"], rows["time"], highest_bandwidth=150e9)
    assert found.bandwidth <= 150e9


def test_all_measured_rows_are_read():
    rows = measured_all_reduces()
    assert len(rows) == 40
    assert set(rows["ranks"]) == set(range(2, 9))
    assert (rows["size"] / rows["time"] < NVLINK).all()


def test_errors_out_of_sample_are_larger_and_small():
    errors = all_reduce_errors(measured_all_reduces(), highest_bandwidth=NVLINK)
    mean = errors[["in_sample", "ranks_left_out", "size_left_out"]].abs().mean()
    assert mean["in_sample"] < mean["ranks_left_out"] < mean["size_left_out"]
    assert mean.max() < 0.08
    long = errors[errors["size"] >= 2**26]
    assert long["ranks_left_out"].abs().max() < 0.08


def test_a_fit_needs_enough_rows():
    with pytest.raises(ValueError, match="of 4 rows or more"):
        fit_all_reduce([2, 4, 8], [1e6, 1e6, 1e6], [1e-4, 1e-4, 1e-4], highest_bandwidth=NVLINK)
