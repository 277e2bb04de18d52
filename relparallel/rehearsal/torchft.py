"""A node whose replica trains under torchft, and the lighthouse by which replicas find each other.

Who trains with whom, and with which weights, is left to torchft. It notices the loss of a replica
by the time-out of the group. It listens on all networks, so that a job has one of its own.
"""

import os
import signal
import time
from datetime import timedelta
from typing import Any, Final

import lazy_loader
import numpy as np

from relparallel.rehearsal.node import RATE, Node, Order, State

torch: Any = lazy_loader.load("torch")
torchft: Any = lazy_loader.load("torchft")

_TIMEOUT: Final = 1.5  # s, of a group; five times that for a peer that dies while it connects
_UNSEEN: Final = 1000  # ms without a sign after which a replica counts as lost
_PORT: Final = 20_000  # of the lighthouse, then of the store of each order


class TorchftNode(Node):
    """A stage whose replica asks torchft with which others it makes a step."""

    def train(self, order: Order) -> None:
        """Make steps until this replica breaks."""
        _silence()
        self._meet(order)
        manager, group = self._manager(order), -1
        done, weights, momentum = self._load()
        self.group.met()
        self.state = State(done, weights, momentum, self.state.held)
        manager.load_state_dict({"step": done, "batches_committed": 0})
        while True:
            manager.start_quorum()  # takes the weights of others that are ahead
            done, self.replica = manager.current_step(), manager.participating_rank()
            self.state = self.state._replace(done=done)
            if group != manager._quorum_id and self.stage == 0:
                self.pipe.send(("begin", time.monotonic(), order.number, done))
            group = manager._quorum_id
            time.sleep(self.run.step)
            gradient, loss = self._passes()
            told = np.array([loss], np.float32)
            self._sum(told)
            manager.allreduce(torch.from_numpy(gradient)).wait()
            if manager.should_commit():
                weights = self.state.weights.copy()
                weights[self.own] -= RATE * gradient
                self.state = self.state._replace(done=done + 1, weights=weights)
                self._tell("step", done + 1, manager.num_participants(), float(told[0]))
                if (done + 1) % self.run.every == 0:
                    self._save()

    def _manager(self, order: Order) -> Any:
        port, patience = _PORT + order.number, timedelta(seconds=_TIMEOUT)
        self.store = torch.distributed.TCPStore(
            "localhost", port, is_master=self.stage == 0, wait_for_workers=False
        )
        return torchft.Manager(
            pg=torchft.ProcessGroupGloo(timeout=patience),
            load_state_dict=self._take,
            state_dict=lambda: torch.from_numpy(self.state.weights),
            min_replica_size=1,
            use_async_quorum=False,
            timeout=3 * patience,  # stages of a replica notice one after the other
            rank=self.stage,
            world_size=self.run.nodes_per_replica,
            store_addr="localhost",
            store_port=port,
            lighthouse_addr=f"http://localhost:{_PORT}",
            replica_id=f"replica{order.members[0]:02d}",  # ranks are in this order
            hostname="localhost",
        )

    def _take(self, weights: Any) -> None:
        """Have the weights of another replica."""
        self.state = self.state._replace(weights=weights.numpy().copy())


def _silence() -> None:
    """Drop what this process says: torchft reports every step and death, whatever one sets."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def be_lighthouse() -> None:
    """Tell replicas of each other until this process is killed."""
    _silence()
    server = torchft._torchft.LighthouseServer(
        bind=f"[::]:{_PORT}", min_replicas=1, join_timeout_ms=_UNSEEN, heartbeat_timeout_ms=_UNSEEN
    )
    signal.pause()
    del server
