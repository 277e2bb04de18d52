"""Start-up times as a law of the size of a job, and what it does to large jobs."""

import numpy as np
import pytest

from chapters.s42.start_ups import start_up_law
from relparallel.training import Job, relative_goodput, start_ups
from relparallel.training.run_logs import StartUp

DAY = 86400.0
SIZES = np.array([64, 96, 512, 768, 1024, 1280])


@pytest.mark.parametrize(
    "law", [StartUp(base=163, growth=127, power=2), StartUp(base=0, growth=40, power=1)]
)
def test_a_law_is_found_from_its_own_values(law):
    found = start_up_law(SIZES, law(SIZES))
    assert found(5000) == pytest.approx(law(5000), rel=1e-3)


def test_the_published_sizes_grow_faster_than_the_nodes():
    runs = start_ups().query("software == 'nemo-2023'")
    found = start_up_law(runs["nodes"], runs["seconds"])
    assert np.abs(found(runs["nodes"]) - runs["seconds"]).max() < 2
    assert 2 < found.power < 3
    other = start_ups().query("software == 'nemo-2024' and nodes == 1344")["seconds"].item()
    assert other > 1.9 * found(1344)  # another container took twice as long


def test_a_fixed_restart_is_too_kind_to_large_jobs():
    runs = start_ups().query("software == 'nemo-2023'")
    law = start_up_law(runs["nodes"], runs["seconds"])
    kept = {}
    for nodes in (256, 4096):
        common = {
            "nodes": nodes,
            "nodes_per_replica": 16,
            "node_rate": 3.79e-3 / DAY,
            "checkpoint": 20.0,
        }
        kept[nodes] = [
            relative_goodput(Job(restart=restart, pause=30.0, **common), "spares", DAY).share
            for restart in (law(256), law(nodes))
        ]
    assert kept[256][0] == kept[256][1]
    assert kept[4096][0] > kept[4096][1] + 0.1


def test_two_sizes_make_no_law():
    with pytest.raises(ValueError, match="nodes must be of three sizes"):
        start_up_law([64, 96, 96], [1.0, 2.0, 2.0])
