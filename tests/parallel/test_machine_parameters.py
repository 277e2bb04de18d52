"""Calibrations of accelerators on which nobody measured a run: lent parameters, wide intervals."""

from dataclasses import replace

from evidence.claims.scoreboard import scoreboard
from relparallel.hardware import Accelerator, accelerator, accelerators, cluster
from relparallel.parallel import Strategy, step_time
from relparallel.parallel.machine_parameters import calibration, priors
from relparallel.workload import transformer


def test_where_nothing_was_measured_the_parameters_of_the_vendors_next_in_rate_are_lent():
    lent = {name: calibration(name).borrowed for name in accelerators()}
    assert {name: near for name, near in lent.items() if near} == {
        "h20-96gb": "a100",
        "l40s-48gb": "a100",
        "tpu-v4-32gb": "tpu-trillium",
        "tpu-v5p-95gb": "tpu-trillium",
        "v100-16gb": "a100",
        "v100-32gb": "a100",
    }
    loan, bounds = calibration("h20-96gb"), priors(accelerator("h20-96gb"))
    assert not loan.factors
    assert all(value <= bounds[name].highest for name, value in loan.values.items())


def own(**fields):
    numbers = {
        "peak": {"bf16": 1.0e15},
        "matmul": {"bf16": 8e14},
        "memory": 9.6e10,
        "memory_bandwidth": 4e12,
    }
    return Accelerator(
        **{"name": "mine", "node_link": 4.5e11, "multiprocessors": 120} | numbers | fields
    )


def time_on(device):
    place = replace(cluster("h100-80gb-dgx", 16), accelerator=device)
    return step_time(transformer("gpt3-13b"), Strategy(tensor=8, data=2, zero_stage=1), place, 64)


def test_an_own_accelerator_borrows_the_next_in_rate_and_says_so():
    step = time_on(own())
    assert (
        "no run on mine was measured: parameters of the h100, interval of such loans"
        in step.explain()
    )
    assert time_on(own(peak={"bf16": 3e14}, matmul={"bf16": 2e14})).compute > 2 * step.compute
    assert calibration(own(peak={"bf16": 3e14}, matmul={"bf16": 2e14})).borrowed == "a100"


def test_an_own_accelerator_of_a_named_family_takes_that_with_the_interval_of_a_loan():
    # though the h100 is nearer in rate
    assert calibration(own(name="a100-mine")).borrowed == "a100"
    shipped = accelerator("h100-80gb")
    other = replace(shipped, node_link=shipped.node_link / 2)
    measured, loan = time_on(shipped), time_on(other)
    assert loan.tensor > 1.5 * measured.tensor
    assert loan.compute == measured.compute
    assert "no run on this h100 was measured" in loan.explain()
    assert "was measured" not in measured.explain().replace("was assumed, the newest measured", "")
    wide = [high / low for low, high in (loan.interval(), measured.interval())]
    assert wide[0] > wide[1]


def test_no_share_of_an_own_accelerator_exceeds_what_was_measured_on_it():
    slow = own(name="h100-slow", matmul={"bf16": 3e14})
    assert calibration(slow).values["gemm"] <= 0.3


def test_the_interval_of_a_loan_is_as_wide_as_loans_among_measured_families_were_off():
    board = scoreboard()
    lent = board[
        (board["used"] == "parameters of another accelerator") & (board["source"] == "all")
    ]
    assert {"a100", "b200", "b300", "h100", "mi300x", "mi355x", "tpu-v7"} <= set(lent["family"])
    assert (lent["inside"] >= 80).all()  # each by the width that the other families give


def test_a_step_says_that_nobody_measured_on_its_accelerator():
    gpt, place = transformer("gpt3-13b"), cluster("v100-16gb-dgx", 16)
    step = step_time(gpt, Strategy(tensor=8, data=2, zero_stage=1), place, 64)
    assert "no run on v100 was measured: parameters of the a100" in step.explain()
    low, high = step.interval(0.9)
    assert high / low > 2
