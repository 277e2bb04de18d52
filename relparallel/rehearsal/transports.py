"""How nodes of a rehearsed job talk: through sockets, which take little memory and notice a death at once."""

import socket
import struct
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_PATIENCE: Final = 5.0  # s: dead peers are noticed at once, others can be late
_FAN: Final = 4  # branches of the tree that sums
_HELLO: Final = struct.Struct("<qqq")  # order, rank, and whether along the tree or a replica
_TREE, _CHAIN = 0, 1


class Door:
    """Where the others call a node, from order to order."""

    def __init__(self, folder: Path, slot: int, *orders: Any) -> None:
        self.orders = orders  # pipes: whoever waits for a peer that is gone hears of the next order
        path = folder / f"door-{slot}"
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(64)
        self.socket.settimeout(_PATIENCE)
        self.waiting: dict[tuple[int, int, int], socket.socket] = {}  # calls of later orders

    def answer(self, call: tuple[int, int, int]) -> socket.socket:
        """Wait for a call, by order, rank and kind; a call of a later order ends the wait."""
        while call not in self.waiting:
            heard = wait([self.socket, *self.orders], _PATIENCE)
            if self.socket not in heard:
                raise ConnectionAbortedError("there is a newer order, or a peer is late")
            link, _ = self.socket.accept()
            link.settimeout(_PATIENCE)
            given = _HELLO.unpack(_read(link, bytearray(_HELLO.size)))
            self.waiting[given] = link
            if given[0] > call[0]:
                raise ConnectionAbortedError("a peer has a newer order")
            if given[0] < call[0]:
                self.waiting.pop(given).close()  # a peer that waits for an order of the past
        return self.waiting.pop(call)

    def forget(self, number: int) -> None:
        """Drop the calls of orders before this one."""
        for call in [call for call in self.waiting if call[0] < number]:
            self.waiting.pop(call).close()

    def close(self) -> None:
        """Answer no more."""
        self.forget(2**63)
        self.socket.close()


class Sockets:
    """Sums go up a tree of all ranks and down again, messages along the stages of a replica."""

    def __init__(self, door: Door, folder: Path, order: Any, rank: int, stages: int) -> None:
        self.links: dict[tuple[int, int], socket.socket] = {}  # by rank and kind
        self.orders: tuple[Any, ...] = (
            door.orders
        )  # heard of while nodes meet: a peer may have left for the next one
        self.parent = (rank - 1) // _FAN if rank else None
        count = len(order.members)
        self.children = [*range(_FAN * rank + 1, min(_FAN * rank + _FAN + 1, count))]
        awaited = [(child, _TREE) for child in self.children]
        awaited += [(rank + 1, _CHAIN)] if rank % stages < stages - 1 else []
        calls = [(self.parent, _TREE)] if self.parent is not None else []
        calls += [(rank - 1, _CHAIN)] if rank % stages else []
        for peer, kind in calls:
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(_PATIENCE)
            self.links[peer, kind] = link
            link.connect(str(folder / f"door-{order.members[peer]}"))
            link.sendall(_HELLO.pack(order.number, rank, kind))
        door.forget(order.number)
        for peer, kind in awaited:
            self.links[peer, kind] = door.answer((order.number, peer, kind))

    def __del__(self) -> None:
        for link in self.links.values():
            link.close()

    def met(self) -> None:
        """Take no more notice of orders: the steps tell of them."""
        self.orders = ()

    def sum(self, values: NDArray[np.float32]) -> None:
        """Replace values by their sums over all ranks."""
        for child in self.children:
            values += self._taken(child, _TREE, values.size)
        if self.parent is not None:
            self.links[self.parent, _TREE].sendall(values.tobytes())
            values[:] = self._taken(self.parent, _TREE, values.size)
        for child in self.children:
            self.links[child, _TREE].sendall(values.tobytes())

    def send(self, rank: int, values: NDArray[np.float32]) -> None:
        """Send values to a neighbour of the replica."""
        self.links[rank, _CHAIN].sendall(values.tobytes())

    def receive(self, rank: int, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Wait for values of a neighbour of the replica."""
        return self._taken(rank, _CHAIN, shape[0] * shape[1]).reshape(shape)

    def _taken(self, rank: int, kind: int, size: int) -> NDArray[np.float32]:
        if self.orders and self.links[rank, kind] not in wait(
            [self.links[rank, kind], *self.orders], _PATIENCE
        ):
            raise ConnectionAbortedError("there is a newer order, or a peer is late")
        return np.frombuffer(_read(self.links[rank, kind], bytearray(4 * size)), np.float32)


def _read(link: socket.socket, room: bytearray) -> bytearray:
    """Fill the room, or learn that the peer has gone."""
    left = memoryview(room)
    while left:
        if not (got := link.recv_into(left)):
            raise ConnectionResetError("a peer has gone")
        left = left[got:]
    return room
