"""Claims of reliability optimisation: allocations of Fyffe, Hines and Lee, theorems of the paradigms."""

from relparallel.book import s12
from relparallel.claims.registry import reproduces
from relparallel.published import component_table


@reproduces("NR-rap-*")
def optimal_allocation(components: str, cost_limit: int, weight_limit: int) -> float:
    """Most reliable system within the limits, by the table of all limits."""
    return s12.redundancy_allocation(component_table(components), cost_limit, weight_limit).reliability
