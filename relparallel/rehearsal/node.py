"""A node of a rehearsed job: a process that trains its part of a small network until it is killed.

It knows nothing of failures and policies. An order names the nodes that train together; when a
connection breaks, it waits for the next order. A step may be half done then: some nodes have its
sum and others not, so each keeps the state of the step before.

The state is what a step needs: the weights of a stage and, in a job with copies, the momentum of
its weights, of which a node keeps shards only. Each shard has so many owners in different replicas;
the next order takes what a dead node held from another owner.
"""

import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relparallel.rehearsal.transports import Door, Sockets

SAMPLES: Final = 4  # of a node and step
RATE: Final = 0.5  # of learning
_WIDTH: Final = 8
_LAYERS: Final = 4  # at least: one for each stage
_KEPT: Final = 0.9  # of the momentum in a step
Array = NDArray[np.float32]


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
    copies: int = 0  # of the state, in shards; 0: every replica has all of it
    backend: str = "sockets"
    mtbf: float = 120.0  # of a node [s]
    start: float = 1.0  # s, slept when a process starts
    write: float = 0.1  # s, slept while a checkpoint is written
    exposed: bool = False  # whether nodes that stand by can fail as well

    @property
    def elastic(self) -> bool:
        """Whether survivors go on; all others wait until enough nodes are there."""
        return self.policy in ("elastic", "regroup")

    @property
    def every(self) -> int:
        """Steps between two checkpoints, about what is best for the policy."""
        return 8 if self.elastic else 4

    @property
    def size(self) -> int:
        """Weights of the network."""
        return max(_LAYERS, self.nodes_per_replica) * _WIDTH**2


class Order(NamedTuple):
    """Who trains together from now on, by rank, and whose weights are those of the job."""

    number: int
    members: tuple[int, ...]
    holders: frozenset[int]


class State(NamedTuple):
    """What a node knows after a step; all arrays have the size of the whole network."""

    done: int  # steps that are in it; -1: none that count
    weights: Array  # those of other stages are not kept up to date
    momentum: Array
    held: NDArray[np.bool_]  # of the momentum: shards of this node


def be_node(node: "Node") -> None:
    """Start, say so, and follow orders."""
    time.sleep(node.run.start)
    slot, pipe = node.slot, node.pipe
    node.door = Door(node.folder, slot, pipe)
    pipe.send(("ready", slot))
    while True:
        order = pipe.recv()
        while pipe.poll():
            order = pipe.recv()
        if slot not in order.holders:
            node.forget()
        if slot in order.members:
            try:
                node.train(order)
            except (RuntimeError, OSError):  # a peer has gone, or is late
                pipe.send(("broken", order.number))
            node.group = None  # closes its connections, so that its peers notice too


class Node:
    """State of a stage, and what is sent to the other nodes."""

    def __init__(self, slot: int, run: Run, folder: Path, pipe: Connection) -> None:
        self.slot, self.run, self.folder, self.pipe = slot, run, folder, pipe
        self.door: Any = None
        self.group: Any = None
        self.rank = self.stage = self.replica = self.replicas = 0
        self.own = slice(0)  # of a vector of all weights: those of this stage
        self.first: Any = None  # of the momentum: what this node works out for all
        self.forget()

    def forget(self) -> None:
        """Have no state that counts."""
        nothing = np.zeros(self.run.size, np.float32)
        self.state = self.before = State(-1, nothing, nothing, np.zeros(self.run.size, np.bool_))

    def train(self, order: Order) -> None:
        """Meet the others, agree on the state, and make steps until there is another order."""
        stage = self.stage
        self._meet(order)
        self._agree(len(order.members), knows=self.stage == stage)  # else its weights are of others
        self.group.met()
        self._tell("begin", order.number, self.state.done)
        beat, leave = time.monotonic(), False
        while not leave:
            beat = self._sleep(beat)
            total = np.zeros(self.run.size + 2, np.float32)
            total[self.own], total[-2] = self._passes()
            total[-1] = self.pipe.poll()  # one who has an order takes all along
            self._sum(total)
            self._update(total[:-2] / np.float32(self.replicas))
            self._tell("step", self.state.done, self.replicas, float(total[-2]) / self.replicas)
            leave = bool(total[-1])
            if self.state.done % self.run.every == 0:
                beat += self._save()

    def _sleep(self, beat: float) -> float:
        """Sleep until a step after the last one began, whatever its messages took."""
        late = time.monotonic() - beat - self.run.step
        time.sleep(max(-late, 0.0))
        return beat + self.run.step + max(late, 0.0)

    def _meet(self, order: Order) -> None:
        """Take a place, and connect with the others of the order."""
        size = self.run.nodes_per_replica
        self.rank = order.members.index(self.slot)
        self.replica, self.stage = divmod(self.rank, size)
        self.replicas = len(order.members) // size
        part = self.run.size // size
        self.own = slice(self.stage * part, (self.stage + 1) * part)
        self.group = Sockets(self.door, self.folder, order, self.rank, size)

    def _tell(self, *what: Any) -> None:
        if self.replica == self.stage == 0:
            self.pipe.send((what[0], time.monotonic(), *what[1:]))

    def _sum(self, values: Array) -> None:
        self.group.sum(values)

    def _agree(self, size: int, knows: bool) -> None:
        """Take the state after the last step that all have, or the newest checkpoint.

        Weights are those of the first replica that knows all of them; momentum that two nodes hold
        is the same, so that its mean is.
        """
        known = np.zeros(2 * size, np.float32)
        known[self.rank] = self.state.done + 1
        known[size + self.rank] = knows * (self.state.done + 1)
        self._sum(known)
        whole = (known[size:].reshape(-1, self.run.nodes_per_replica) > 0).all(axis=1)
        done = int(known[:size][known[:size] > 0].min(initial=np.inf)) - 1 if whole.any() else -1
        mine = self.state if self.state.done == done else self.before
        weights, momentum, held = np.zeros((3, self.run.size), np.float32)
        if self.replica == whole.argmax():
            weights[self.own] = mine.weights[self.own]
        if self.run.copies and self.state.done >= 0:
            momentum[mine.held], held[mine.held] = mine.momentum[mine.held], 1
        if done >= 0:
            together = np.stack([weights, momentum, held] if self.run.copies else [weights])
            self._sum(together.ravel())
            weights = together[0]
            if self.run.copies:
                _, momentum, held = together
        if done < 0 or (self.run.copies and not held.all()):
            done, weights, momentum = self._load()
        self.first = self._shards(1)
        held_now = self._shards(self.run.copies)
        self.state = State(
            done, weights, (momentum / np.maximum(held, 1)).astype(np.float32), held_now
        )

    def _shards(self, copies: int) -> NDArray[np.bool_]:
        """Which momentum this node keeps: of each shard the replicas a half apart, with two copies."""
        part = self.run.size // self.run.nodes_per_replica
        shard = np.arange(part) * self.replicas // part
        apart = max(self.replicas // max(copies, 1), 1)
        owners = [(shard + copy * apart) % self.replicas for copy in range(copies)]
        held = np.zeros(self.run.size, np.bool_)
        held[self.own] = (
            np.any([own == self.replica for own in owners], axis=0) if owners else False
        )
        return held

    def _update(self, gradient: Array) -> None:
        """Make a step: its momentum is worked out by the owners, and sent to all by the first."""
        done, weights, momentum, held = self.before = self.state
        change = np.zeros_like(gradient)
        change[self.own] = gradient[self.own]
        if self.run.copies:
            momentum = np.where(held, _KEPT * momentum + (1 - _KEPT) * gradient, np.float32(0))
            change = np.where(self.first, momentum, np.float32(0))
            self._sum(change)
        self.state = State(done + 1, weights - np.float32(RATE) * change, momentum, held)

    def _passes(self) -> tuple[Array, float]:
        """Forward and backward through the stages of this replica: gradient, and the loss where it ends."""
        size, group, loss = self.run.nodes_per_replica, self.group, 0.0
        shape = SAMPLES * size, _WIDTH
        if self.stage == 0:
            rng = np.random.default_rng([self.state.done, self.replica])
            inputs = rng.standard_normal(shape, np.float32)
        else:
            inputs = group.receive(self.rank - 1, shape)
        layers = self.state.weights[self.own].reshape(-1, _WIDTH, _WIDTH)
        outputs = [inputs]
        for layer in layers:
            outputs.append(np.tanh(outputs[-1] @ layer))
        if self.stage == size - 1:
            error = outputs[-1] - np.float32(0.5)
            loss, back = float((error**2).mean()), 2 / error.size * error
        else:
            group.send(self.rank + 1, outputs[-1])
            back = group.receive(self.rank + 1, shape)
        gradients = []
        for layer, below, above in zip(layers[::-1], outputs[-2::-1], outputs[:0:-1], strict=True):
            back = back * (1 - above**2)
            gradients.append((below.T @ back).ravel())
            back = back @ layer.T
        if self.stage:
            group.send(self.rank - 1, back)
        return np.concatenate(gradients[::-1]), loss

    def _save(self) -> float:
        """Let the first replica write a checkpoint, which counts once all its parts are on the disk; s."""
        begin = time.monotonic()
        done, weights, momentum, _ = self.state
        if self.run.copies:
            momentum = np.where(self.first, momentum, np.float32(0))
            self._sum(momentum)
        if self.replica == 0:
            parts = np.stack([weights[self.own], momentum[self.own]])
            self._write(f"{done}-{self.stage}", lambda file: np.save(file, parts))
        time.sleep(self.run.write)
        self._sum(np.zeros(1, np.float32))
        if self.replica == self.stage == 0:
            self._write("newest", lambda file: file.write(str(done).encode()))
        took = time.monotonic() - begin
        self._tell("saved", took)
        return took

    def _write(self, name: str, put: Any) -> None:
        part = self.folder / f"{name}.part"
        with part.open("wb") as file:
            put(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.folder / name)

    def _load(self) -> tuple[int, Array, Array]:
        """Read the newest checkpoint, or begin: steps done, weights of this stage, all momentum."""
        newest, done = self.folder / "newest", np.zeros(1, np.float32)
        if self.rank == 0 and newest.exists():  # one reads: there may be a newer one meanwhile
            done += int(newest.read_text())
        self._sum(done)
        weights, momentum = np.zeros((2, self.run.size), np.float32)
        if count := int(done[0]):
            parts = np.load(self.folder / f"{count}-{self.stage}")
            weights[self.own], momentum[self.own] = parts
        else:
            rng = np.random.default_rng(1)
            weights = rng.standard_normal(self.run.size, np.float32) / np.float32(_WIDTH**0.5)
        return count, weights, momentum
