"""Where a job can stand: a cluster with some nodes held back, and the strategies for the others."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from relparallel._checks import require_int
from relparallel.hardware import Cluster
from relparallel.optimize.joint_network import Wiring, network_price
from relparallel.optimize.joint_question import Machine, Question
from relparallel.optimize.joint_strategies import (
    Fastest,
    fastest_of_each_kind,
    measured_strategies,
    with_fewer_replicas,
)
from relparallel.parallel.grid import lawful_degrees
from relparallel.sweep import map_chunks
from relparallel.training import FailureLog, FailureModel
from relparallel.training.failing_parts import rate_table

HELD: Final = 20  # at most one node in so many is held back unless asked otherwise


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Site:
    """A cluster with some nodes held back: what fills the others, and what the whole costs."""

    cluster: Cluster
    job: Cluster
    spares: int
    failures: FailureModel
    fastest: Fastest
    price: float
    weight: float
    fabric: str = ""
    wiring: Wiring | None = None

    def failures_under(self, row: int) -> FailureModel:
        """Failures under one of the strategies, the network without parts."""
        return replace(self.failures, placement=self.fastest.placement(row))


def sites_of(
    question: Question, machines: list[Machine], spares: Any, executor: Executor | None
) -> tuple[Site, ...]:
    """Every machine with every number of nodes held back and every rank order."""
    places = [
        (machine, held, order)
        for machine in machines
        for held in _held_of(question, machine.cluster, spares)
        for order in question.orders
    ]
    found = map_chunks(partial(_site, question), places, executor)
    # what comes from another process has copies of the clusters, which a report would number
    return tuple(
        replace(site, cluster=machine.cluster)
        for site, (machine, *_) in zip(found, places, strict=True)
    )


def _site(question: Question, place: tuple[Machine, int, tuple[str, ...]]) -> Site:
    """A machine with some nodes held back, and a rank order."""
    (cluster, fabric, price), held, order = place
    network = fabric.network
    if question.write_off is not None:
        price += 0.0 if network is None else network_price(network) / question.write_off
    job = replace(cluster, nodes=cluster.nodes - held)
    fastest = _strategies(question, place, job)
    wiring = None
    if network is not None and fastest.costs is not None:
        rates = fabric.rates or {}
        wiring = Wiring(network=network, job=job, costs=fastest.costs, rates=rates, order=order)
    return Site(
        cluster=cluster,
        job=job,
        spares=held,
        failures=_failures(question, job, wired=network is not None),
        price=price,
        fastest=fastest,
        weight=price if question.objective == "cost" else 1.0,
        fabric=fabric.name,
        wiring=wiring,
    )


def _strategies(
    question: Question, place: tuple[Machine, int, tuple[str, ...]], job: Cluster
) -> Fastest:
    """Those that fill a job's nodes."""
    machine, held, order = place
    together = question.source is not None and len(question.source.sizes) > 1
    if question.measured:
        asked = question.measured, job, question.tokens
        return measured_strategies(*asked, whole=held == 0, together=together)
    network = machine.fabric.network
    kinds = (order, together, question.apart)
    given = (question.workload, job, question.batch, question.limits, network, *kinds)
    try:
        told = pickle.dumps((*given[:4], *kinds, question.options))
    except (pickle.PicklingError, AttributeError, TypeError):
        return fastest_of_each_kind(*given, **question.options)
    return _computed(_Asked(told, id(network), given, question.options))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What `fastest_of_each_kind` is asked: the same if all is, on one and the same network."""

    told: bytes
    network: int
    given: tuple[Any, ...] = field(compare=False)
    options: Mapping[str, Any] = field(compare=False)


@lru_cache(maxsize=32)  # other failures, repairs and checkpoints leave the strategies as they are
def _computed(asked: _Asked) -> Fastest:
    """Strategies of computed speed."""
    return fastest_of_each_kind(*asked.given, **asked.options)


def _held_of(question: Question, cluster: Cluster, spares: Any) -> list[int]:
    """Numbers of nodes to hold back."""
    measured = question.measured
    together = int(np.lcm(cluster.nodes_per_switch, cluster.nodes_per_rack))

    def filled(held: int) -> bool:
        job = replace(cluster, nodes=cluster.nodes - held)
        if measured:
            return any(with_fewer_replicas(one, job) for one in measured)
        asked = question.workload, question.batch, job.gpus_per_node, question.limits
        return lawful_degrees(job.gpus, *asked)[0].size > 0

    if spares is None:
        most = cluster.nodes - 1 if measured else cluster.nodes // HELD
        return [held for held in range(0, most + 1, together) if filled(held)] or [0]
    given = (spares,) if isinstance(spares, (int, np.integer)) else spares
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise TypeError(f"spares must be a number of nodes or several, got {spares!r}")
    for one in given:
        if require_int(spares=one, at_least=0, at_most=cluster.nodes - 1) % together:
            raise ValueError(
                f"spares must be whole switches and racks of {together} nodes, got {one}"
            )
        if measured and not filled(int(one)):
            raise ValueError(f"spares must be whole replicas of some measured strategy, got {one}")
    return sorted(set(given))


def _failures(question: Question, cluster: Cluster, wired: bool) -> FailureModel:
    """What fails on the nodes of a job, no strategy placed; a network's parts replace a table's."""
    cluster = replace(cluster, accelerator=None)  # what fails is a matter of counts
    table, source = rate_table(question.rates, cluster, question.source), question.source
    if isinstance(table, tuple):
        if question.repaired and isinstance(question.rates, FailureLog):
            table = tuple(replace(entry, repair=None) for entry in table)
        return FailureModel(classes=table, cluster=cluster, source=source)
    if wired:
        table = replace(
            table, causes=tuple(row for row in table.causes if row.category != "network")
        )
    return replace(FailureModel.from_rates(table, cluster), source=source)
