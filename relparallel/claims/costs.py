"""Published cost, power and cables of networks, from unit prices and counts."""

from relparallel import topology
from relparallel.claims.registry import reproduces
from relparallel.topology.costs import BillOfMaterials


@reproduces("TOPO-*", system="helios", quantity="cost*electrical*")
def helios_cost(pods: int, hosts_per_pod: int, electrical: float, optical: float) -> float:
    """Of the core [USD]."""
    return _helios(pods, hosts_per_pod, electrical, optical).cost


@reproduces("TOPO-*", system="helios", quantity="power*electrical*")
def helios_power(pods: int, hosts_per_pod: int, electrical: float, optical: float) -> float:
    """Of the core [kW]."""
    return _helios(pods, hosts_per_pod, electrical, optical).power / 1e3


@reproduces("TOPO-*", system="helios", quantity="cables*electrical*")
def helios_cables(pods: int, hosts_per_pod: int, electrical: float, optical: float) -> int:
    """Of the core."""
    return _helios(pods, hosts_per_pod, electrical, optical).cables


def _helios(pods: int, hosts_per_pod: int, electrical: float, optical: float) -> BillOfMaterials:
    """Bill of the core at the study's unit prices."""
    return topology.bill_of_materials(
        "helios", pods=pods, hosts_per_pod=hosts_per_pod, electrical=electrical, optical=optical
    )
