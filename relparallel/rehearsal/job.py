"""A rehearsed job: its nodes as processes, what kills them, and who puts the rest together again.

`Chaos` kills and tells nobody. The controller learns of a death from a pipe that closes. Waiting
policies then end all processes and start as many again once enough nodes are there; the elastic one
goes on with the whole replicas, once spares that stand by have taken the places of dead nodes.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from relparallel.rehearsal import processes
from relparallel.rehearsal.node import Node, Order, Run, be_node
from relparallel.rehearsal.torchft import TorchftNode, be_lighthouse

_LIVES = 1000  # of a node that are drawn ahead
_SETTLE = 0.1  # s in which deaths and returns are gathered before a new order
_AGAIN = 0.05  # s, at least, that a node is up between two failures of a timetable


@dataclass(kw_only=True, slots=True)
class Log:
    """What happened, in seconds since the first step began."""

    began: list[tuple[float, int, int]] = field(default_factory=list)  # at, order, steps done
    steps: list[tuple[float, int, int, float]] = field(
        default_factory=list
    )  # at, done, replicas, loss
    saves: list[tuple[float, float]] = field(default_factory=list)  # at the end, seconds
    kills: list[tuple[int, float, float, bool]] = field(
        default_factory=list
    )  # node, at, back, working
    waits: list[tuple[float, float]] = field(default_factory=list)  # from, to: too few nodes
    joins: list[float] = field(default_factory=list)  # s from a repair until it is of use
    timeouts: int = 0  # groups that broke though nobody had died


class Chaos:
    """Lives and repairs of every node, one after the other: the same under every policy."""

    def __init__(self, lives: Any, repairs: Any) -> None:
        own = [[iter([float(one) for one in row]) for row in rows] for rows in (lives, repairs)]
        self.lives, self.repairs = own
        self.left = dict(enumerate(map(next, self.lives)))  # of its life, for a node at rest
        self.due: dict[int, float] = {}  # when a node that ages dies

    @classmethod
    def of(cls, run: Run) -> "Chaos":
        """Draw exponential lives and repairs."""
        rngs = [np.random.default_rng([run.seed, slot]) for slot in range(run.nodes)]
        draws = np.array([rng.exponential(size=(2, _LIVES)) for rng in rngs])
        return cls(run.mtbf * draws[:, 0], run.repair * draws[:, 1])

    def age(self, slot: int, now: float) -> None:
        """Let a node age from now on."""
        self.due[slot] = now + self.left[slot]

    def rest(self, slot: int, now: float) -> None:
        """Let it age no more."""
        self.left[slot] = max(self.due.pop(slot, now) - now, 0.0)

    def strike(self, slot: int) -> float:
        """End a life; seconds of the repair."""
        del self.due[slot]
        self.left[slot] = next(self.lives[slot])
        return float(next(self.repairs[slot]))


class Timetable(Chaos):
    """Failures at moments that are given, which nodes can share: columns node, start and end [s].

    All nodes fail by it, those at rest and those that stand by as well.
    """

    def __init__(self, records: Any) -> None:
        self.rows: dict[int, list[tuple[float, float]]] = {}
        columns = (records[name].tolist() for name in ("node", "start", "end"))
        for node, start, end in sorted(zip(*columns, strict=True), reverse=True):
            self.rows.setdefault(node, []).append((start, end))
        self.due = {}
        self.begin: float | None = None

    def age(self, slot: int, now: float) -> None:
        """Let the time run from the first call on."""
        if self.begin is None:
            self.begin = now
            self.due = {node: now + rows[-1][0] for node, rows in self.rows.items()}

    def rest(self, slot: int, now: float) -> None:
        """Change nothing: the time runs on."""

    def strike(self, slot: int) -> float:
        """End a life; seconds of the repair."""
        begin = self.begin or 0.0
        start, end = self.rows[slot].pop()
        del self.due[slot]
        if self.rows[slot]:
            self.due[slot] = begin + max(self.rows[slot][-1][0], end + _AGAIN)
        return begin + end - max(time.monotonic(), begin + start)


class _Controller:
    """Keeps a job going."""

    kind: type[Node] = Node

    def __init__(self, run: Run, chaos: Chaos, folder: Path) -> None:
        self.run, self.chaos, self.folder, self.log = run, chaos, folder, Log()
        self.wanted = run.nodes - run.spares
        self.begin = self.waiting = 0.0  # when the first step began, and a wait that goes on; or 0
        self.free = list(
            range(run.nodes)
        )  # nodes that are up: who works, then spares by their turn
        self.back: dict[int, float] = {}  # when repaired, of those that are down
        # node by place, a replica after the other: an elastic job's, of which spares may take one
        self.places = self.free[: self.wanted]
        self.children: dict[int, tuple[int, Connection]] = {}
        self.ready: set[int] = set()
        self.joining: dict[int, float] = {}
        self.news = float("inf")  # when the first change came that no order knows
        self.order = Order(0, (), frozenset())

    def go(self) -> Log:
        """Run the job to its end."""
        self._launch()
        while not self.begin or time.monotonic() < self.begin + self.run.seconds:
            now = time.monotonic()
            for slot in [slot for slot, at in self.chaos.due.items() if at <= now]:
                if slot not in self.back:  # its death is still unknown, or its return has come late
                    self._strike(slot, now)
            for slot in [slot for slot, at in self.back.items() if at <= now]:
                if slot not in self.children:  # its death is known
                    self._return(slot)
            pipes: dict[Any, int] = {pipe: slot for slot, (_, pipe) in self.children.items()}
            ends = [now + 1, self.news + _SETTLE, *self.back.values()]
            ends += [at for slot, at in self.chaos.due.items() if slot not in self.back]
            ends += [self.begin + self.run.seconds] if self.begin else []
            for pipe in wait(list(pipes), max(min(ends) - now, 0.0)):
                slot = pipes[pipe]
                if slot in self.children and self.children[slot][1] is pipe:  # not ended meanwhile
                    self._hear(slot)
            if time.monotonic() >= self.news + _SETTLE:
                self._settle()
        self._wait(False)
        self._end_all()
        return self.log

    def _strike(self, slot: int, now: float) -> None:
        """Kill a node; nobody is told."""
        self.back[slot] = now + self.chaos.strike(slot)
        self.free.remove(slot)
        runs = slot in self.children
        working = slot in self.order.members or (runs and not self.run.elastic)
        self.log.kills.append((slot, self._at(now), self._at(self.back[slot]), working))
        if runs:
            os.kill(self.children[slot][0], signal.SIGKILL)

    def _return(self, slot: int) -> None:
        """Take a node that is repaired."""
        at = self.back.pop(slot)
        self.free.append(slot)
        if self.run.elastic:
            self.joining[slot] = at
            self._start(slot)
        elif not self.children:
            self._launch()

    def _launch(self) -> None:
        """Start as many nodes as the job needs, or wait for them."""
        self._wait(len(self.free) < self.wanted)
        if not self.waiting:
            for slot in self.free if self.run.elastic else self.free[: self.wanted]:
                self._start(slot)

    def _start(self, slot: int) -> None:
        ours, theirs = Pipe()
        child = processes.fork(be_node, self.kind(slot, self.run, self.folder, theirs))
        theirs.close()
        self.children[slot] = child, ours
        if self.begin and not self.run.elastic:
            self.chaos.age(slot, time.monotonic())

    def _end(self, slot: int) -> None:
        child, pipe = self.children.pop(slot)
        processes.kill(child)
        pipe.close()
        self.ready.discard(slot)
        if slot not in self.back:
            self.chaos.rest(slot, time.monotonic())

    def _end_all(self) -> None:
        for slot in list(self.children):
            self._end(slot)

    def _hear(self, slot: int) -> None:
        """Take one message of a node, or learn that it has died."""
        try:
            kind, *said = self.children[slot][1].recv()
        except (EOFError, ConnectionResetError):
            self._end(slot)
            self._lost(slot)
        else:
            getattr(self, f"_on_{kind}")(*said)

    def _lost(self, slot: int) -> None:
        if self.run.elastic:
            self.joining.pop(slot, None)
            self.news = min(self.news, time.monotonic())
        else:
            self._end_all()
            self.order = Order(self.order.number, (), frozenset())
            self._launch()

    def _on_ready(self, slot: int) -> None:
        self.ready.add(slot)
        if self.begin and slot in self.places and self.run.elastic:
            self.chaos.age(slot, time.monotonic())
        self.news = min(self.news, time.monotonic())

    def _settle(self) -> None:
        """Order anew if others can train than do so, and note who stands by."""
        self.news = float("inf")
        complete = self.ready == self.children.keys()
        if (complete or (self.begin and self.run.elastic)) and self._whole() != self.order.members:
            self._regroup()
        for slot in (self.ready & self.joining.keys()).difference(self.order.members):
            back = self.joining.pop(slot)
            if slot not in self.places:  # else others of its replica are away
                self.log.joins.append(time.monotonic() - back)

    def _on_broken(self, number: int) -> None:
        """Order the same again, unless a death explains it."""
        if number == self.order.number and not set(self.order.members) & self.back.keys():
            self.log.timeouts += 1
            self._regroup()

    def _on_begin(self, now: float, number: int, done: int) -> None:
        if not self.begin:
            self.begin = now
            for slot in self.places:
                self.chaos.age(slot, now)
        self.log.began.append((self._at(now), number, done))
        if number == self.order.number:
            self.order = self.order._replace(holders=frozenset(self.order.members))
            joined = self.joining.keys() & self.order.holders
            self.log.joins += [now - self.joining.pop(slot) for slot in joined]

    def _on_step(self, now: float, done: int, replicas: int, loss: float) -> None:
        self.log.steps.append((self._at(now), done, replicas, loss))

    def _on_saved(self, now: float, seconds: float) -> None:
        self.log.saves.append((self._at(now), seconds))

    def _whole(self) -> tuple[int, ...]:
        """Nodes that are ready and whose replicas are whole, spares in the places of dead ones."""
        if not self.run.elastic:
            return tuple(sorted(self.ready))
        size, places = self.run.nodes_per_replica, self.places
        for place in [place for place, slot in enumerate(places) if slot in self.back]:
            if free := sorted(self.ready.difference(places)):
                places[place] = free[0]
                self.chaos.age(free[0], time.monotonic())
        if self.run.policy == "regroup":
            self._fill()
        replicas = [places[first : first + size] for first in range(0, self.wanted, size)]
        return tuple(slot for own in replicas if self.ready.issuperset(own) for slot in own)

    def _fill(self) -> None:
        """Let ready nodes of the replicas that miss most take the places that others miss."""
        size, places = self.run.nodes_per_replica, self.places
        firsts = range(0, self.wanted, size)
        missing = {
            first: size - len(self.ready & {*places[first : first + size]}) for first in firsts
        }
        order = sorted(firsts, key=lambda first: missing[first])  # fullest first
        seats = [place for first in order for place in range(first, first + size)]
        empty = [place for place in seats if places[place] not in self.ready]
        for place in reversed(seats):
            if empty and places[place] in self.ready and seats.index(empty[0]) < seats.index(place):
                hole = empty.pop(0)
                places[hole], places[place] = places[place], places[hole]

    def _regroup(self) -> None:
        """Order who can train to do so."""
        members = self._whole()
        self.order = Order(self.order.number + 1, members, self.order.holders & set(members))
        self._wait(not members)
        for slot in self.ready:
            with suppress(BrokenPipeError):  # it has died meanwhile, and will be heard of
                self.children[slot][1].send(self.order)

    def _wait(self, waits: bool) -> None:
        """Note when the job has too few nodes and when no longer."""
        now = time.monotonic()
        if self.waiting and not waits:
            self.log.waits.append((self._at(self.waiting), self._at(now)))
        self.waiting = (self.waiting or now) if waits else 0.0

    def _at(self, now: float) -> float:
        return now - (self.begin or now)


class _TorchftController(_Controller):
    """Does what a scheduler does: starts a replica once it is whole. torchft does the rest."""

    kind = TorchftNode

    def __init__(self, run: Run, chaos: Chaos, folder: Path) -> None:
        super().__init__(run, chaos, folder)
        self.sent: list[tuple[int, ...]] = []  # orders: the nodes of a replica

    def go(self) -> Log:
        """Run the job to its end."""
        processes.isolate()
        lighthouse = processes.fork(be_lighthouse)
        log = super().go()
        processes.kill(lighthouse)
        return log

    def _lost(self, slot: int) -> None:
        first = slot - slot % self.run.nodes_per_replica
        self._again(range(first, first + self.run.nodes_per_replica))
        super()._lost(slot)

    def _again(self, slots: Sequence[int]) -> None:
        """Start those of a replica anew that are up."""
        for slot in self.children.keys() & set(slots):
            self._end(slot)
            if slot not in self.back:
                self._start(slot)

    def _regroup(self) -> None:
        members, size = self._whole(), self.run.nodes_per_replica
        self._wait(not members)
        for first in range(0, len(members), size):
            own = members[first : first + size]
            if own[0] not in self.order.members:
                self.sent.append(own)
                for slot in own:
                    self.children[slot][1].send(Order(len(self.sent), own, frozenset()))
        self.order = self.order._replace(members=members)

    def _on_broken(self, number: int) -> None:
        """Start a replica again that gave up, unless a death explains it."""
        own = self.sent[number - 1]
        if not self.back.keys() & set(own):
            self.log.timeouts += 1
            self._again(own)
            self._regroup()

    def _on_begin(self, now: float, number: int, done: int) -> None:
        super()._on_begin(now, number, done)
        joined = self.joining.keys() & set(self.sent[number - 1])
        self.log.joins += [now - self.joining.pop(slot) for slot in joined]


def run_job(run: Run, chaos: Chaos, folder: Path) -> Log:
    """Rehearse one job in a folder of its own."""
    folder.mkdir()
    kind = _TorchftController if run.backend == "torchft" else _Controller
    return kind(run, chaos, folder).go()


def together(runs: Sequence[Run], chaos: Sequence[Chaos] | None = None) -> list[Log]:
    """Rehearse jobs side by side, each under a controller process of its own."""
    drawn = [Chaos.of(run) for run in runs] if chaos is None else chaos
    with processes.stage(runs[0].backend) as folder:
        folders = [folder / str(place) for place in range(len(runs))]
        return processes.answers(run_job, list(zip(runs, drawn, folders, strict=True)))
