"""The two levels of links that a group of ranks works over, and the price of rounds on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import reals, record, require_instance, require_int, require_real
from relparallel.parallel._arguments import MOST_BYTES, MOST_DEVICES, require_number
from relparallel.parallel.collectives import Round

_LATENCIES: Final = ("latency", "network_latency", "launch")
_BANDWIDTHS: Final = ("bandwidth", "network_bandwidth")


@record(eq=False)
class Links:
    """Latency and bandwidth inside a node and between nodes: numbers, or arrays of equal shape.

    Parameters
    ----------
    latency, bandwidth : array_like
        Of a rank to the ranks of its node: alpha [s] and 1/beta [bytes/s].
    network_latency, network_bandwidth : array_like
        Of a node to the others: alpha [s] and 1/beta [bytes/s], which the ranks of the node share.
    launch : array_like
        Of a collective before its first round [s].

    Notes
    -----
    Where s rings leave a node at once, each has 1/s of what the node has: give that share.

    Examples
    --------
    >>> Links(latency=2e-6, bandwidth=250e9, network_latency=8e-6, network_bandwidth=180e9).launch
    0.0
    """

    latency: Any = reals(at_least=0)
    bandwidth: Any = reals(above=0)
    network_latency: Any = reals(at_least=0)
    network_bandwidth: Any = reals(above=0)
    launch: Any = reals(default=0.0, at_least=0)

    def __post_init__(self) -> None:
        for name in (*_LATENCIES, *_BANDWIDTHS):
            object.__setattr__(self, name, require_real(**{name: getattr(self, name)}))


def rounds_time(
    rounds: Iterable[Round], ranks_per_node: int, links: Links, *, element_bytes: float = 2
) -> float:
    """Price rounds on two levels of links.

    Parameters
    ----------
    rounds : iterable of Round
        Messages, round by round; ranks are numbered node by node.
    ranks_per_node : int
        Ranks of a node, at least 1.
    links : Links
        One set of numbers.
    element_bytes : float
        Bytes of one element, above 0.

    Returns
    -------
    float
        Seconds; 0 without any round.

    Notes
    -----
    A round lasts until both levels are done: alpha and the bytes of the rank that sends most inside its node,
    and alpha and the bytes of the node that sends most to other nodes.

    Examples
    --------
    >>> from relparallel.parallel import ring_all_reduce
    >>> links = Links(latency=0, bandwidth=4e9, network_latency=1, network_bandwidth=1e9)
    >>> rounds_time(ring_all_reduce(ranks=4, elements=10**9), 2, links, element_bytes=4)
    12.0
    """
    require_instance(Iterable, rounds=rounds)
    require_int(ranks_per_node=ranks_per_node, at_least=1, at_most=MOST_DEVICES)
    require_number(element_bytes=element_bytes, above=0, at_most=MOST_BYTES)
    require_instance(Links, links=links)
    if any(np.ndim(getattr(links, name)) for name in _LATENCIES + _BANDWIDTHS):
        raise ValueError(f"links must hold one number each, got {links!r}")
    inside, between = (links.latency, links.bandwidth), (links.network_latency, links.network_bandwidth)
    seconds = [
        max(_level(*inside, step.source, near, sent), _level(*between, node, ~near, sent))
        for step in rounds
        for sent in [require_instance(Round, rounds=step).elements * element_bytes]
        for node in [step.source // ranks_per_node]
        for near in [node == step.destination // ranks_per_node]
    ]
    return float(links.launch + sum(seconds)) if seconds else 0.0


def _level(
    latency: float, bandwidth: float, sender: NDArray[np.int64], here: NDArray[np.bool_],
    sent: NDArray[np.float64],
) -> float:  # fmt: skip
    """Seconds of the messages on one level: those of the sender with most; 0 if there is none."""
    if not here.any():
        return 0.0
    return float(latency + np.bincount(sender[here], weights=sent[here]).max() / bandwidth)
