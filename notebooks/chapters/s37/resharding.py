"""Sending a tensor from one mesh of workers to another that holds it in another layout.

Parts that the same workers hold and the same workers ask for are one transfer. A host sends one
transfer at a time and receives one at a time, so that who sends, and in which order, decides how
long all of them take.
"""

from itertools import combinations, product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import require_choice
from relparallel.parallel.collectives import Whole
from relparallel.parallel.timeline import Timeline

_MOST_NODES: Final = 20_000  # of the search
_MOST_HOSTS: Final = 12  # on either side; the bound looks at all sets of senders


class _Transfer(NamedTuple):
    """Seconds, hosts of which one sends, and hosts that all receive."""

    seconds: float
    senders: tuple[int, ...]
    receivers: tuple[int, ...]


_Choice = tuple[int, int]  # a transfer, and its sender


class Resharding(NamedTuple):
    """When every transfer between two meshes runs.

    ``time`` [s] until all is there; ``bound`` [s] that no order and no choice of senders can beat:
    the work of the busiest receiver, or of a set of senders for what only they hold; ``proven``:
    whether no faster order exists. ``timeline``: kinds "send" and "receive", of each transfer
    (``item``) on each of its hosts, the senders first.
    """

    time: float
    bound: float
    proven: bool
    timeline: Timeline


def reshard(
    before: ArrayLike,
    after: ArrayLike,
    *,
    bandwidth: float,
    method: str = "broadcast",
    order: str = "greedy",
    element_bytes: float = 2,
    per_host: int = 1,
    pieces: int = 64,
) -> Resharding:
    """A tensor sent to another mesh of workers: Zhuang et al., MLSys 2023, sections 3.1 and 3.2.

    ``before`` and ``after`` are boxes of each worker of the two meshes, as `shards` gives them;
    ``bandwidth`` is that of a host's link [bytes/s], and links inside hosts, of ``per_host``
    workers, take no time ("On optimizing the communication of model parallelism").

    By ``method`` a transfer of t seconds to D workers of A hosts takes D t, one copy for each
    worker ("send_recv"); A t, parts of a copy to the workers of a host, which gather them
    ("all_gather"); or t (1 + (A - 1)/K), K ``pieces`` that the hosts pass on ("broadcast"). By
    ``order`` they run as the parts lie, each from the first holder ("given"); always the longest of
    those that could start first ("greedy"); or in the best of all orders, as long as the search has
    patience ("search").

    >>> from chapters.s37.sharding import shards
    >>> mesh, dims = {"host": 2}, {"x": 8, "y": 8}
    >>> rows, columns = shards(dims, mesh, {"x": "host"}), shards(dims, mesh, {"y": "host"})
    >>> [reshard(rows, columns, bandwidth=1.0, order=how).time for how in ("given", "greedy")]
    [96.0, 64.0]
    """
    require_choice(("given", "greedy", "search"), order=order)
    held, wanted = np.asarray(before, dtype=np.int64), np.asarray(after, dtype=np.int64)
    if held.shape[1] != wanted.shape[1]:
        raise ValueError(
            f"after must have {held.shape[1]} dimensions, as before has, got {wanted.shape[1]}"
        )
    if max(len(held), len(wanted)) > _MOST_HOSTS * per_host:
        raise ValueError(
            f"per_host must give at most {_MOST_HOSTS} hosts, got {per_host} workers on each"
        )
    transfers = []
    for entries, holders, users in _parts(held, wanted):
        hosts = tuple(np.unique(users // per_host).tolist())
        chain = 1 + (len(hosts) - 1) / pieces
        copies = {"send_recv": len(users), "all_gather": len(hosts), "broadcast": chain}[method]
        senders = tuple(np.unique(holders // per_host).tolist())
        transfers.append(_Transfer(copies * entries * element_bytes / bandwidth, senders, hosts))
    bound, proven = _bound(transfers), False
    chosen = [(k, task.senders[0]) for k, task in enumerate(transfers)]
    if order != "given":
        chosen = _greedy(transfers)
    if order == "search":
        chosen, proven = _search(transfers, chosen, bound)
    time = _end(transfers, chosen)
    proven = proven or time <= bound * (1 + 1e-12)
    return Resharding(time, bound, proven, _timeline(transfers, chosen))


def _parts(held: Whole, wanted: Whole) -> list[tuple[int, Whole, Whole]]:
    """Entries, holders and users of all that the same workers hold and the same workers ask for."""
    every = np.concatenate([held, wanted])
    cuts = [np.unique(every[:, side]) for side in range(every.shape[1])]
    ends = [np.column_stack((cut[:-1], cut[1:])) for cut in cuts]
    found: dict[tuple[bytes, bytes], tuple[int, Whole, Whole]] = {}
    for corners in product(*ends):
        cell = np.stack(corners)
        inside = np.asarray(
            ((every[..., 0] <= cell[:, 0]) & (cell[:, 1] <= every[..., 1])).all(axis=1)
        )
        holders, users = np.flatnonzero(inside[: len(held)]), np.flatnonzero(inside[len(held) :])
        if users.size and not holders.size:
            raise ValueError(f"before must hold all of after, got nothing for {cell.tolist()}")
        if users.size:
            name = holders.tobytes(), users.tobytes()
            entries = found[name][0] if name in found else 0
            found[name] = entries + int(np.diff(cell).prod()), holders, users
    return list(found.values())


def _bound(transfers: list[_Transfer]) -> float:
    """Work of the busiest receiver, and of every set of senders for what only they hold."""
    receivers = {host for task in transfers for host in task.receivers}
    senders = sorted({host for task in transfers for host in task.senders})
    work = [sum(task.seconds for task in transfers if host in task.receivers) for host in receivers]
    for size in range(1, len(senders) + 1):
        for some in combinations(senders, size):
            work.append(
                sum(task.seconds for task in transfers if set(task.senders) <= set(some)) / size
            )
    return float(max(work))


def _hosts(task: _Transfer, sender: int) -> list[int]:
    """Ports that a transfer keeps busy: ~host sends, host receives."""
    return [~sender, *task.receivers]


def _starts(transfers: list[_Transfer], chosen: list[_Choice]) -> list[float]:
    """Start of each chosen transfer, in this order on every port."""
    free: dict[int, float] = {}
    starts = []
    for k, sender in chosen:
        ports = _hosts(transfers[k], sender)
        starts.append(max(free.get(port, 0.0) for port in ports))
        free |= dict.fromkeys(ports, starts[-1] + transfers[k].seconds)
    return starts


def _greedy(transfers: list[_Transfer]) -> list[_Choice]:
    """Take the longest transfer of those that could start first, again and again."""
    left, chosen = set(range(len(transfers))), list[_Choice]()
    while left:
        options = [(k, sender) for k in sorted(left) for sender in transfers[k].senders]
        busy = [sender for _, sender in chosen]
        ranks = [
            (
                _starts(transfers, [*chosen, (k, sender)])[-1],
                -transfers[k].seconds,
                busy.count(sender),
            )
            for k, sender in options
        ]
        chosen.append(options[ranks.index(min(ranks))])
        left.remove(chosen[-1][0])
    return chosen


def _end(transfers: list[_Transfer], chosen: list[_Choice]) -> float:
    """Time until the last of the chosen transfers is done."""
    starts = _starts(transfers, chosen)
    return max(
        (s + transfers[k].seconds for (k, _), s in zip(chosen, starts, strict=True)), default=0.0
    )


def _search(
    transfers: list[_Transfer], known: list[_Choice], bound: float
) -> tuple[list[_Choice], bool]:
    """Best order and senders by depth-first search, and whether the search came to its end."""
    best, least, nodes = known, _end(transfers, known), 0
    stack: list[list[_Choice]] = [[]]
    while stack and nodes < _MOST_NODES and least > bound * (1 + 1e-12):
        nodes += 1
        chosen = stack.pop()
        done = _end(transfers, chosen)
        left = [k for k in range(len(transfers)) if k not in dict(chosen)]
        if done < least and not left:
            best, least = chosen, done
        elif done < least:
            kinds = {transfers[k]: k for k in left}  # of equal transfers one is enough
            stack += [
                [*chosen, (k, sender)] for task, k in kinds.items() for sender in task.senders
            ]
    return best, nodes < _MOST_NODES


def _timeline(transfers: list[_Transfer], chosen: list[_Choice]) -> Timeline:
    """Each transfer on all of its hosts."""
    many, starts = 1 + max(sender for _, sender in chosen), _starts(transfers, chosen)
    rows = [
        (port + many if port >= 0 else ~port, "receive" if port >= 0 else "send", k, begin)
        for (k, sender), begin in zip(chosen, starts, strict=True)
        for port in _hosts(transfers[k], sender)
    ]
    resource, kind, item, begins = (np.array(column) for column in zip(*rows, strict=True))
    return Timeline(
        resources=int(resource.max()) + 1,
        resource=resource,
        start=begins,
        holding=np.zeros(len(rows)),
        duration=np.array([transfers[k].seconds for k in item]),
        kind=kind,
        item=item,
        part=np.zeros(len(rows), dtype=np.int64),
    )
