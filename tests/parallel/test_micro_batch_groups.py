"""Interleaved micro-batches in groups: Megatron-Core's order, what others cost, and its argument."""

import re
from dataclasses import replace

import numpy as np
import pytest

from relparallel.parallel import simulate_schedule
from relparallel.parallel.launch_files import launch_file
from relparallel.parallel.launchers import Launch, read_launch, read_strategy
from relparallel.parallel.schedules import _alternating, group_size
from relparallel.parallel.timeline import play


def test_interleaved_micro_batches_go_in_the_groups_of_megatron_core():
    """The example of model_parallel_config.py: five micro-batches of two stages in groups of three."""
    found = simulate_schedule("interleaved_1f1b", 2, 5, 2)
    first = np.flatnonzero((found.resource == 0) & (found.kind == "forward"))
    order = first[np.argsort(found.start[first])]
    assert found.item[order].tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]
    assert found.part[order].tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]
    assert simulate_schedule("interleaved_1f1b", 8, 35, 4).makespan == 3 * (35 + 7 / 4)
    assert group_size(np.array([8, 8, 8, 2]), np.array([32, 35, 33, 5])).tolist() == [8, 9, 11, 3]


def test_other_groups_make_interleaved_micro_batches_wait_for_each_other():
    """Megatron-Core refuses what leaves over fewer than there are stages: some orders never end."""
    m, v, behind = 35, 4, np.arange(7, -1, -1)

    def idle(group):
        order = _alternating(m, v, 2 * behind + (v - 1) * group, group=group)
        seconds = np.broadcast_to(np.array([1.0, 2.0])[:, None, None] / v, order.turn.shape)
        return play(order, seconds, 0.0).makespan - 3 * m

    assert [idle(group) for group in (9, 10, 12)] == [5.25, 9.75, 5.25]
    with pytest.raises(ValueError, match="got a cycle"):
        idle(8)


def test_the_group_of_micro_batches_is_said_where_it_is_not_the_pipeline():
    """GLM-5.2 of Megatron-Bridge: 32 micro-batches on 13 stages in groups of 16."""
    s = read_strategy("PP13 DP32 EP32 VPP2 ZeRO-1")
    for form, ending, word in (
        ("megatron", ".sh", "--microbatch-group-size-per-virtual-pipeline-stage"),
        ("bridge", ".txt", "model.microbatch_group_size_per_vp_stage"),
    ):
        for batch, group in ((1024, 16), (32 * 26, None)):
            told = Launch(s, host=8, global_batch=batch)
            text, _ = launch_file(told, form, ending, (78, 0), ())
            said = re.search(rf"{word}[ =](\d+)", text)
            assert (said and int(said[1])) == group
            assert read_launch(text, gpus=s.gpus, layers=78).strategy == s
    with pytest.raises(ValueError, match="per_vp_stage must be 16, the fewest of 32 micro-batches"):
        read_launch(
            "--pp 13 --vpp 2 --dp 32 --global-batch-size 1024 "
            "--microbatch-group-size-per-virtual-pipeline-stage 19"
        )
    for batch, fits in ((35 * 32, False), (36 * 32, True), (32 * 32, True)):
        told = Launch(replace(s, pipeline=8), host=8, global_batch=batch)
        lost = launch_file(told, "torchtitan", ".toml", (32, 0), ())[1]
        assert any("no equal rounds" in one for one in lost) != fits
