"""Hosts of a job: against the frontier DP, and the closed form of all pods."""

import numpy as np
import pytest

from relparallel.reliability import evaluate, fat_tree_pods_connected
from relparallel.topology import fat_tree


def asked(k, hosts, core, aggregation, edge=1.0, core_link=1.0, edge_link=1.0, host=1.0):
    """Arguments of `evaluate`; edge switches without hosts of the job work."""
    fabric = fat_tree(k)
    nodes = np.array([1.0, 1.0, aggregation, core])[fabric.tier]
    nodes[[fabric.num_hosts + h // (k // 2) for h in hosts]] = edge
    nodes[list(hosts)] = host
    links = np.array([1.0, 1.0, edge_link, core_link])[fabric.tier[fabric.edges].max(axis=1)]
    return fabric, hosts, links, nodes


def job_connected(*ups):
    return evaluate(*asked(*ups), method="closed_form")


@pytest.mark.parametrize(
    "hosts", [(0,), (0, 1), (0, 2), (0, 1, 3), (0, 4), (1, 2, 5, 6, 15), tuple(range(16))]
)
@pytest.mark.parametrize("cable", [1.0, 0.8])
def test_any_path_agrees_with_the_exact_programme(hosts, cable):
    ups = (4, hosts, 0.9, 0.85, 0.95, cable, 1.0, 0.97)
    truth, closed = evaluate(*asked(*ups), method="exact"), job_connected(*ups)
    assert closed.unreliability == pytest.approx(truth.unreliability, rel=1e-12)
    assert closed.reliability == pytest.approx(truth.reliability, rel=1e-12)


def test_all_hosts_need_all_pods():
    job = job_connected(16, range(1024), 0.99, 0.95)
    assert job.unreliability == pytest.approx(
        fat_tree_pods_connected(16, 0.99, 0.95).unreliability, rel=1e-13
    )
