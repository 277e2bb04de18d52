"""Make a network smaller without changing its K-terminal reliability.

Every rule replaces the network by a smaller one and, at most, splits off a factor: the event "this part has
already failed" with probability f, else the rest decides, U = f + (1 - f) U'. Up- and down-probabilities are
carried side by side, so the failure mass keeps its relative accuracy.

=============  =============================================================================================
series         a non-terminal with two links becomes one link
degree one     a non-terminal with one link goes; a terminal's only link must work, its neighbour takes over
degree two     a terminal between two terminals: at least one link must work, then both are in series with it
parallel       links between the same two nodes become one
bridge points  the network falls into blocks that only share nodes; blocks off every path between terminals go
=============  =============================================================================================

References
----------
Satyanarayana and Wood, "A linear-time algorithm for computing K-terminal reliability in series-parallel
networks", SIAM Journal on Computing 14, 1985.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from relparallel.reliability.chances import CERTAIN, Chance, parallel, series

__all__ = ["Links", "Network", "reduce", "split"]

Links = dict[int, dict[int, Chance]]


@dataclass(kw_only=True, slots=True)
class Network:
    """A network under reduction: links and nodes with their chances, and what has been split off.

    Attributes
    ----------
    links : dict of dict of Chance
        Both directions.
    nodes : dict of Chance
        Terminals have been made certain: their failure is split off when they become terminals.
    terminals : set
        The nodes that must be connected.
    alive, failed : number
        Mass that is still undecided, and mass that has failed.
    """

    links: Links
    nodes: dict[int, Chance]
    terminals: set[int] = field(default_factory=set)
    alive: Any = 1
    failed: Any = 0

    def require(self, part: Chance) -> None:
        """Split off an independent part without which everything fails."""
        up, down = part
        self.failed += self.alive * down
        self.alive *= up

    def make_terminal(self, v: int) -> None:
        """Add a terminal; it must be up."""
        self.require(self.nodes[v])
        self.nodes[v] = CERTAIN
        self.terminals.add(v)

    def join(self, a: int, b: int, link: Chance) -> None:
        """Add a link, in parallel to one that may be there."""
        link = parallel(self.links[a][b], link) if b in self.links[a] else link
        self.links[a][b] = self.links[b][a] = link

    def remove(self, v: int) -> None:
        """Remove a node with its links."""
        for u in self.links.pop(v):
            del self.links[u][v]
        del self.nodes[v]
        self.terminals.discard(v)

    def restrict(self) -> bool:
        """Remove nodes out of reach of the terminals; tell whether all terminals are within reach."""
        reached: set[int] = set()
        todo = [min(self.terminals)]
        while todo:
            v = todo.pop()
            if v not in reached and self.nodes[v][0] > 0:
                reached.add(v)
                todo += self.links[v]
        for v in self.links.keys() - reached - self.terminals:
            self.remove(v)
        return bool(self.alive > 0) and self.terminals <= reached

    def part(self, block: set[int]) -> Network:
        """The network on some of the nodes, with nothing split off yet."""
        kept = [u for u in self.links if u in block]
        return Network(
            links={u: {v: x for v, x in self.links[u].items() if v in block} for u in kept},
            nodes={u: self.nodes[u] for u in kept},
            terminals=self.terminals & block,
        )


def reduce(network: Network) -> None:
    """Apply the rules for nodes with at most two links, in place, until none fits."""
    todo = list(network.links)
    while todo:
        v = todo.pop()
        if v in network.links and len(network.terminals) > 1 and len(network.links[v]) <= 2:
            todo += _reduce_node(network, v)


def _reduce_node(network: Network, v: int) -> Iterable[int]:
    """Remove v if a rule allows it; return the nodes whose links changed."""
    near = dict(network.links[v])
    if v not in network.terminals:
        if len(near) == 2:
            (a, to_a), (b, to_b) = near.items()
            network.join(a, b, series(to_a, network.nodes[v], to_b))
        network.remove(v)
        return near
    if len(near) == 1:
        ((a, link),) = near.items()
        network.require(link)
        network.remove(v)
        network.make_terminal(a)
        return (a,)
    if len(near) == 2 and near.keys() <= network.terminals:
        (a, (up_a, down_a)), (b, (up_b, down_b)) = near.items()
        some = up_a + down_a * up_b
        network.require((some, down_a * down_b))
        network.join(a, b, (up_a * up_b / some, (up_a * down_b + down_a * up_b) / some))
        network.remove(v)
        return near
    return ()


def split(network: Network) -> list[Network]:
    """Cut a connected network into the blocks that lie on paths between terminals.

    The nodes where blocks meet must be up and become terminals: their failure is split off from
    ``network``, in place, and the reliability is ``alive`` times the product over the blocks.
    """
    graph: nx.Graph[int] = nx.Graph((u, v) for u, near in network.links.items() for v in near)
    found: Any = nx.biconnected_components(graph)  # an iterator of sets of nodes
    blocks: list[set[int]] = list(found)
    shared: Counter[int] = Counter(v for block in blocks for v in block)
    while True:
        idle = [
            block
            for block in blocks
            if sum(shared[v] > 1 for v in block) < 2
            and all(shared[v] > 1 or v not in network.terminals for v in block)
        ]
        if not idle:
            break
        blocks.remove(idle[0])
        shared.subtract(idle[0])
    for v, count in shared.items():
        if count > 1 and v not in network.terminals:
            network.make_terminal(v)
    return [network.part(block) for block in blocks]
