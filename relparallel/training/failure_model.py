"""What fails in a job: rates of a published run on a cluster, under a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from relparallel._checks import require_choice, require_instance
from relparallel.hardware import Cluster, ComponentRates, llama3_interruptions
from relparallel.parallel import Placement, Strategy
from relparallel.topology import Topology
from relparallel.training.failures import ComponentClass, FailureModel

__all__ = ["RATES", "failure_model"]

RATES: Final[Mapping[str, Callable[[], ComponentRates]]] = MappingProxyType({"llama3": llama3_interruptions})
"""Failure tables by name."""
_NODE: Final = 8  # GPUs


def failure_model(
    topology: Cluster | Topology,
    strategy: Strategy,
    placement: Placement | None = None,
    rates: str | ComponentRates | tuple[ComponentClass, ...] = "llama3",
) -> FailureModel:
    """Build what fails in a job, how often, and what it hits.

    Parameters
    ----------
    topology : Cluster or Topology
        Where the job runs. The hosts of a topology are its GPUs, eight to a node, or its nodes.
    strategy : Strategy
        How it is split; it fills the cluster.
    placement : Placement, optional
        Which GPU runs which rank; the default order where omitted.
    rates : str, ComponentRates or tuple of ComponentClass
        One of `RATES`, a failure table of one's own, or the classes themselves.

    Returns
    -------
    FailureModel
        With its `domains`: classes, not GPUs, are what anything is computed on.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, there is no such table, or the strategy does not fill the cluster.

    Examples
    --------
    >>> model = failure_model(Cluster(nodes=2048), Strategy(tensor=8, pipeline=16, data=128), rates="llama3")
    >>> len(model.domains), round(model.mtbf / 3600, 2)
    (18, 3.09)
    """
    require_instance(Strategy, strategy=strategy)
    cluster = _cluster(topology, strategy.gpus)
    place = Placement(strategy=strategy) if placement is None else placement
    if require_instance(Placement, placement=place).strategy != strategy:
        raise ValueError(f"placement must place the strategy {strategy}, got one of {place.strategy}")
    if isinstance(rates, tuple):
        return FailureModel(classes=rates, cluster=cluster, placement=place)
    return FailureModel.from_rates(_table(rates), cluster, place)


def _cluster(topology: Any, gpus: int) -> Cluster:
    """Nodes of the job."""
    if isinstance(topology, Cluster):
        return topology
    hosts = require_instance(Topology, topology=topology).num_hosts
    node = _NODE if hosts == gpus else gpus // hosts
    if hosts not in (gpus, gpus // max(node, 1)) or gpus % max(node, 1):
        raise ValueError(
            f"topology must have a host for each of {gpus} GPUs, or one for each node, got {hosts}"
        )
    return Cluster(nodes=gpus // node, gpus_per_node=node)


def _table(rates: Any) -> ComponentRates:
    """A failure table by name, or as given."""
    if isinstance(rates, str):
        return RATES[require_choice(tuple(RATES), rates=rates)]()
    return require_instance(ComponentRates, rates=rates)  # type: ignore[no-any-return]
