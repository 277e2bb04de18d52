"""A node of a rehearsed job: a process that trains its part of a small network until it is killed.

It knows nothing of failures and policies. An order names the nodes that train together; when a
connection breaks, it waits for the next order. A step may be half done then: some nodes have its
sum and others not, so each keeps the weights of the step before.
"""

import os
import time
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import lazy_loader

torch: Any = lazy_loader.load("torch")

SAMPLES: Final = 4  # of a node and step
_WIDTH: Final = 16
_SIZE: Final = 4 * _WIDTH**2  # weights of four layers
RATE: Final = 0.5  # of learning
_WRITE: Final = 0.1  # s, slept while a checkpoint is written
_START: Final = 1.0  # s, slept when a process starts
_TIMEOUT: Final = 1.0  # s, of gloo; five times that for a peer that dies while it connects


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One job to rehearse. The nodes are the budget: spares are some of them."""

    policy: str
    nodes_per_replica: int
    repair: float  # mean [s]
    seed: int
    seconds: float
    step: float  # s, slept
    nodes: int = 12
    spares: int = 0
    backend: str = "processes"
    mtbf: float = 120.0  # of a node [s]

    @property
    def elastic(self) -> bool:
        """Whether survivors go on; all others wait until enough nodes are there."""
        return self.policy == "elastic"

    @property
    def every(self) -> int:
        """Steps between two checkpoints, about what is best for the policy."""
        return 8 if self.elastic else 4


class Order(NamedTuple):
    """Who trains together from now on, by rank, and whose weights are those of the job."""

    number: int
    members: tuple[int, ...]
    holders: frozenset[int]


def be_node(node: "Node") -> None:
    """Start, say so, and follow orders."""
    time.sleep(_START)
    slot, pipe = node.slot, node.pipe
    pipe.send(("ready", slot))
    while True:
        order = pipe.recv()
        while pipe.poll():
            order = pipe.recv()
        if slot not in order.holders:
            node.done = -1
        if slot in order.members:
            try:
                node.train(order)
            except (RuntimeError, OSError):  # a peer has gone, or is late
                pipe.send(("broken", order.number))
            node.group = None  # closes its connections, so that its peers notice too


class Node:
    """Weights of a stage, and what is sent to the other nodes."""

    def __init__(self, slot: int, run: Run, folder: Path, pipe: Connection) -> None:
        self.slot, self.run, self.folder, self.pipe = slot, run, folder, pipe
        self.done = -1  # steps that are in the weights; none that count
        self.weights: Any = None
        self.before: Any = None
        self.group: Any = None
        self.rank = self.stage = self.replica = 0
        self.own = slice(0)  # of a vector of all weights: those of this stage

    def train(self, order: Order) -> None:
        """Meet the others, agree on the weights, and make steps until there is another order."""
        self._meet(order)
        replicas = len(order.members) // self.run.nodes_per_replica
        self._agree(len(order.members))
        self._tell("begin", order.number, self.done)
        leave = False
        while not leave:
            time.sleep(self.run.step)
            total = torch.zeros(_SIZE + 2)
            total[self.own], total[-2] = self._passes()
            total[-1] = self.pipe.poll()  # one who has an order takes all along
            self._sum(total)
            self.before, self.done = self.weights, self.done + 1
            self.weights = self.weights - RATE / replicas * total[self.own]
            self._tell("step", self.done, replicas, float(total[-2]) / replicas)
            leave = bool(total[-1])
            if self.done % self.run.every == 0:
                self._save()

    def _meet(self, order: Order) -> None:
        """Take a place, and connect with the others of the order."""
        size = self.run.nodes_per_replica
        self.rank = order.members.index(self.slot)
        self.replica, self.stage = divmod(self.rank, size)
        part = _SIZE // size
        self.own = slice(self.stage * part, (self.stage + 1) * part)
        self.group = _group(self.folder / f"store-{order.number}", self.rank, len(order.members))

    def _tell(self, *what: Any) -> None:
        if self.replica == self.stage == 0:
            self.pipe.send((what[0], time.monotonic(), *what[1:]))

    def _sum(self, values: Any) -> None:
        self.group.allreduce([values]).wait()

    def _send(self, rank: int, values: Any) -> None:
        self.group.send([values], rank, 0).wait()

    def _receive(self, rank: int) -> Any:
        values = torch.empty(SAMPLES * self.run.nodes_per_replica, _WIDTH)
        self.group.recv([values], rank, 0).wait()
        return values

    def _agree(self, size: int) -> None:
        """Take the weights of the first whole replica that has any, after the last step that all have."""
        known, weights = torch.zeros(size), torch.zeros(_SIZE)
        known[self.rank] = self.done + 1
        self._sum(known)
        whole = (known.view(-1, self.run.nodes_per_replica) > 0).all(dim=1)
        if not whole.any():
            self._load()
            return
        done = int(known[known > 0].min()) - 1
        if self.replica == int(whole.int().argmax()):
            weights[self.own] = self.weights if self.done == done else self.before
        self._sum(weights)
        self.weights, self.done = weights[self.own].clone(), done

    def _passes(self) -> tuple[Any, float]:
        """Forward and backward through the stages of this replica: gradient, and the loss where it ends."""
        size = self.run.nodes_per_replica
        if self.stage == 0:
            draws = torch.Generator().manual_seed(1000 * self.done + self.replica)
            inputs = torch.randn(SAMPLES * size, _WIDTH, generator=draws)
        else:
            inputs = self._receive(self.rank - 1).requires_grad_()
        layers = self.weights.view(-1, _WIDTH, _WIDTH).requires_grad_()
        found, loss = inputs, 0.0
        for layer in layers:
            found = torch.tanh(found @ layer)
        if self.stage == size - 1:
            error = ((found - 0.5) ** 2).mean()
            error.backward()
            loss = float(error.detach())
        else:
            self._send(self.rank + 1, found.detach())
            # a sum, since the gradient of anything else loads sympy first, which takes seconds
            (found * self._receive(self.rank + 1)).sum().backward()
        if self.stage:
            self._send(self.rank - 1, inputs.grad)
        return layers.grad.flatten(), loss

    def _save(self) -> None:
        """Let the first replica write a checkpoint, which counts once all its parts are on the disk."""
        begin = time.monotonic()
        if self.replica == 0:
            self._write(f"{self.done}-{self.stage}", lambda file: torch.save(self.weights, file))
        time.sleep(_WRITE)
        self._sum(torch.zeros(1))
        if self.replica == self.stage == 0:
            self._write("newest", lambda file: file.write(str(self.done).encode()))
        self._tell("saved", time.monotonic() - begin)

    def _write(self, name: str, put: Any) -> None:
        part = self.folder / f"{name}.part"
        with part.open("wb") as file:
            put(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.folder / name)

    def _load(self) -> None:
        """Read the newest checkpoint, or begin."""
        newest, done = self.folder / "newest", torch.zeros(1)
        if self.rank == 0 and newest.exists():  # one reads: there may be a newer one meanwhile
            done += int(newest.read_text())
        self._sum(done)
        self.done = int(done)
        if self.done:
            self.weights = torch.load(self.folder / f"{self.done}-{self.stage}")
        else:
            draws = torch.Generator().manual_seed(1)
            self.weights = torch.randn(_SIZE, generator=draws)[self.own] / _WIDTH**0.5


def _group(path: Path, rank: int, size: int) -> Any:
    """A gloo group that listens on the loopback alone and meets in a file."""
    gloo = torch.distributed.ProcessGroupGloo
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname="127.0.0.1")]
    options._timeout = timedelta(seconds=_TIMEOUT)
    return gloo(torch.distributed.FileStore(str(path), size), rank, size, options)
