"""Calibrations of accelerators on which nobody measured a run: lent parameters, wide intervals."""

import math

import pytest

from relparallel.claims.scoreboard import scoreboard
from relparallel.hardware import accelerator, accelerators, cluster
from relparallel.parallel import Strategy, step_time
from relparallel.parallel.calibration import calibration, priors
from relparallel.workload import transformer


def test_where_nothing_was_measured_the_parameters_of_the_next_in_rate_are_lent():
    lent = {name: calibration(name).borrowed for name in accelerators()}
    assert {name: near for name, near in lent.items() if near} == {
        "b300-270gb": "b200", "gb300-279gb": "b200", "mi300x-192gb": "h100", "tpu-trillium-32gb": "h100",
        "tpu-v4-32gb": "a100", "tpu-v5p-95gb": "a100", "v100-16gb": "a100", "v100-32gb": "a100",
    }  # fmt: skip
    loan, bounds = calibration("mi300x-192gb"), priors(accelerator("mi300x-192gb"))
    assert not loan.factors
    assert all(value <= bounds[name].highest for name, value in loan.values.items())
    assert loan.values["gemm"] < 668.4 / 1307  # nobody has measured more


def test_the_interval_of_a_loan_is_as_wide_as_loans_among_measured_families_were_off():
    board = scoreboard()
    lent = board[(board["used"] == "parameters of another accelerator") & (board["source"] == "all")]
    assert set(lent["family"]) == {"a100", "b200", "h100"}
    assert (lent["inside"] >= 85).all()  # each by the width that the other two families give
    own, loan = calibration("b200-180gb"), calibration("gb300-279gb")
    assert all(loan.scatter[kind][0.9] > own.scatter[kind][0.9] for kind in own.scatter)


def test_a_step_says_that_nobody_measured_on_its_accelerator():
    gpt, place = transformer("gpt3-13b"), cluster("v100-16gb-dgx", 16)
    step = step_time(gpt, Strategy(tensor=8, data=2, zero_stage=1), place, 64)
    assert "no run on v100 was measured: parameters of the a100" in step.explain()
    low, high = step.interval(0.9)
    assert high / low > 2


@pytest.mark.parametrize("precision", ["fp8", "fp4"])
@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "llama3-8b"])
def test_what_hardly_any_calibration_contains_has_the_interval_of_such_runs_and_says_so(name, precision):
    place, split = cluster("b200-180gb-dgx", 64), Strategy(data=64, zero_stage=1)
    step = step_time(transformer(name), split, place, 512, precision=precision)
    mixed, usual = name.startswith("qwen"), dict(calibration("b200-180gb").scatter["kernels"])
    said = "mixtures of experts are in the fit of one source" if mixed else "products in fp4 are in no fit"
    assert (said in step.explain()) == (mixed or precision == "fp4")
    low, high = step.interval(0.9)
    width = math.log(high / step.total)
    assert width > 2 * usual[0.9] if mixed or precision == "fp4" else width == pytest.approx(usual[0.9])
    assert low == pytest.approx(step.total**2 / high)


def test_left_out_runs_of_untried_kinds_stay_inside():
    board = scoreboard().set_index("source")
    kinds = board[board.index.str.contains("MoE|fp4")]
    assert len(kinds) == 7
    assert (kinds["inside"] >= 85).all()  # by the width that the other sources give
