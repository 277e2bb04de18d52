"""Theorems on whole fabrics: closed forms beside the frontier DP where it fits."""

import math
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.integrate import quad
from theorem_table import theorem

from chapters import s13
from relparallel import reliability, topology
from relparallel.reliability.closed_forms.form_recognition import read_form
from relparallel.reliability.problem import read_problem
from relparallel.reliability.sensitivity.class_importance import class_importance


def _programme(k: int, core_up: float, aggregation_up: float, core_link_up: float) -> float:
    """Unreliability of all pods by the frontier DP; one edge switch speaks for each pod."""
    fabric = topology.fat_tree(k)
    core, aggregation = fabric.is_kind("core"), fabric.is_kind("aggregation")
    links = np.where(core[fabric.edges].any(axis=1), core_link_up, 1.0)
    nodes = np.where(core, core_up, np.where(aggregation, aggregation_up, 1.0))
    return reliability.evaluate(
        fabric, np.flatnonzero(fabric.is_kind("edge"))[:: k // 2], links, nodes
    ).unreliability


@theorem("THM-reliability-closed-form", system="fat-tree")
def test_closed_form_equals_programme():
    """The closed form for pods and the frontier DP on the k=6 fabric give the same U."""
    # Switch failures, links perfect.
    return reliability.fat_tree_pods_connected(6, 0.9, 0.85).unreliability, _programme(
        6, 0.9, 0.85, 1.0
    )


@theorem("THM-reliability-partitions", system="fat-tree")
def test_partitions_equal_programme():
    """Moebius inversion over partitions of the pods and the frontier DP agree on k=4."""
    # Cores, aggregation switches and the cables between them fail.
    return reliability.fat_tree_pods_connected(4, 0.9, 0.85, 0.8).unreliability, _programme(
        4, 0.9, 0.85, 0.8
    )


@theorem("THM-reliability-leaf-spine", system="leaf-spine")
def test_leaves_equal_programme():
    """The closed form for leaves and the frontier DP agree on 16 x 8 switches."""
    # Spines and cables fail.
    fabric = topology.leaf_spine(16, 8, 1)
    nodes = np.where(fabric.is_kind("spine"), 0.999, 1.0)
    exact = reliability.evaluate(fabric, np.flatnonzero(fabric.is_kind("leaf")), 0.99, nodes)
    return reliability.leaf_spine_leaves_connected(
        16, 8, 0.999, 0.99
    ).unreliability, exact.unreliability


@theorem("THM-reliability-job", system="fat-tree")
def test_job_equals_programme():
    """Hosts of a job in three pods, any path: the closed form and the frontier DP agree on k=4."""
    # Five hosts; cores, aggregation switches, the cables between them, and hosts fail.
    fabric, hosts = topology.fat_tree(4), (0, 1, 5, 8, 10)
    core = fabric.is_kind("core")
    nodes = np.select(
        [core, fabric.is_kind("aggregation"), fabric.endpoint], [0.9, 0.85, 0.95], 1.0
    )
    asked = fabric, hosts, np.where(core[fabric.edges].any(axis=1), 0.8, 1.0), nodes
    closed, exact = (reliability.evaluate(*asked, method=name) for name in ("closed_form", "exact"))
    return closed.unreliability, exact.unreliability


@theorem("THM-reliability-burtin-pittel", system="Couto et al. arXiv 1510.02735")
def test_life_is_the_integral():
    """(E/r) c^(-1/r) Gamma(1/r) is the integral of exp(-c (t/E)^r): mean time to the first cut."""
    # Cuts of two out of parts that live a million hours, in a thousand places.
    area = quad(lambda t: math.exp(-1000 * t**2), 0.0, math.inf, epsabs=0.0, epsrel=1e-13)[0]
    return s13.mean_time_to_isolation(1e6, 2, 1000), 1e6 * area


def _shorter(parts: Literal["links", "switches"]) -> tuple[float, float]:
    """How much shorter servers of a DCell_1 are joined than a BCube_1's, for as many servers.

    By the closed counts of cuts, and by what the frontier DP leaves of a rare failure.
    """
    lives, rare = [], []
    for design, build in (("bcube", topology.bcube), ("dcell", topology.dcell)):
        fabric = build(4, 1)
        size, cuts = s13.smallest_cuts(topology.describe(design, n=4, k=1), parts)
        lives.append(s13.mean_time_to_isolation(1.0, size, cuts) * fabric.num_hosts ** (1 / size))
        down = np.where(fabric.endpoint, 0.0, 1e-15)
        chances: dict[str, Any] = {"link_down": 1e-15} if parts == "links" else {"node_down": down}
        rare.append(reliability.evaluate(fabric, "all", **chances).unreliability / fabric.num_hosts)
    return lives[0] / lives[1], math.sqrt(rare[1] / rare[0])


@theorem("THM-reliability-couto-links", system="Couto et al. arXiv 1510.02735")
def test_bcube_is_best_for_links():
    """BCube is best for link failures: sqrt(3/2) times the life of a DCell of as many servers."""
    # Three cuts of two cables for two servers of a DCell_1, two for two servers of a BCube_1.
    return _shorter("links")


@theorem("THM-reliability-couto-switches", system="Couto et al. arXiv 1510.02735")
def test_dcell_is_best_for_switches():
    """DCell is best for switch failures: half as many cuts of two switches as a BCube."""
    # One cut of two switches for two servers of a DCell_1, two for two servers of a BCube_1.
    return _shorter("switches")


@theorem("THM-importance-classes", system="Importance measures")
def test_classes_equal_the_sweep_back():
    """A class's share of the derivative of the closed form is Birnbaum's measure of each part."""
    # One core of the k=4 fat-tree whose switches fail: by classes, and by the sweep back.
    fabric = topology.fat_tree(4)
    problem = read_problem(fabric, "all", 1.0, np.array([0.999, 0.98, 0.9, 0.95])[fabric.tier])
    core = len(problem.edges) + int(np.flatnonzero(fabric.is_kind("core"))[0])
    form = partial(read_form, fabric)
    swept = reliability.evaluate(fabric, "all", 1.0, problem.node[:, 0]).importance()
    (row,) = np.flatnonzero(swept.part == core)
    return float(class_importance(fabric, problem, form, form)[1][core]), float(swept.birnbaum[row])
