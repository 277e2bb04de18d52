"""A small network of each design, by the sizes its ``@design`` gives: no test lists all designs."""

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any

import networkx as nx
import numpy as np

from relparallel.atlas.catalogue import closest
from relparallel.topology import Topology, describe, names
from relparallel.topology.description import rules

HOSTS = 24  # about


def arguments(name: str) -> dict[str, Any]:
    """Every argument of the builder: those of the size, the defaults of the others, a generator."""
    known = signature(rules()[name].builder).parameters
    defaults = {name: p.default for name, p in known.items() if p.default is not Parameter.empty}
    random = {"rng": np.random.default_rng(1)} if "rng" in known else {}
    return defaults | closest(name, HOSTS) | random


def with_every_design(
    chosen: Sequence[Topology | nx.Graph], largest: int = 130
) -> list[Topology | nx.Graph]:
    """The chosen networks and one, of at most so many nodes, of each design not among them."""
    there = {t.meta.name for t in chosen if isinstance(t, Topology)}
    forms = {name: describe(name, **closest(name, HOSTS)) for name in names() if name not in there}
    small = [name for name, form in forms.items() if form.hosts + form.switches <= largest]
    return [*chosen, *(rules()[name].builder(**arguments(name)) for name in small)]
