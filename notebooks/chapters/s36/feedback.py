"""Training with compressed gradients: unsent parts are remembered, workers' messages averaged."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.descent import Gradient
from chapters.s36.compression import Compressor, Message, global_top_k, top_k


class Memory(NamedTuple):
    """What a worker keeps between updates: its velocity u, and the residual r it has not sent."""

    velocity: Any = 0.0
    residual: Any = 0.0


class ErrorFeedback(NamedTuple):
    """A compressor whose error is added to the next gradient, with momentum on the worker's side.

    With ``momentum`` m in [0, 1): u <- m u + g, r <- r + u, C(r) is sent, r <- r - C(r); with 0
    this is error feedback. ``masking``: whether the velocity u becomes 0 where a number was sent.
    Seide et al., Interspeech 2014 (feedback). Lin et al., ICLR 2018, section 3 (momentum, masking).

    >>> message, memory = ErrorFeedback(top_k(0.5)).send([3.0, 1.0])
    >>> message.decode().tolist(), memory.residual.tolist()
    ([3.0, 0.0], [0.0, 1.0])
    """

    compressor: Compressor
    momentum: float = 0.0
    masking: bool = False

    def send(
        self,
        gradient: ArrayLike,
        memory: Memory | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Message, Memory]:
        """What a worker sends for its gradient, and what it remembers then."""
        before = memory or Memory()
        velocity = self.momentum * before.velocity + np.asarray(gradient)
        residual = before.residual + velocity
        message = self.compressor.encode(residual, rng)
        if self.masking:
            velocity[message.positions] = 0.0
        return message, Memory(velocity, residual - message.decode())


def deep_gradient_compression(epoch: int = 4, density: float = 0.001) -> ErrorFeedback:
    """Deep Gradient Compression in an epoch of its warm-up, with momentum correction and masking.

    4**-(epoch + 1) of the gradients are sent, but at least ``density``. Lin et al., ICLR 2018,
    section 3.
    """
    return ErrorFeedback(top_k(max(4.0 ** -(epoch + 1), density)), momentum=0.9, masking=True)


@dataclass(eq=False)
class CompressedGradient:
    """The mean of what several workers send, as a gradient for `delayed_descent`.

    ``gradient`` is called once for every worker, each time with a batch of its own. Residuals are
    remembered, so every run needs a new object; ``rng`` is needed where the compressor is random.
    With ``kept`` the messages are added up by `global_top_k`, and a worker takes back what that
    leaves out.

    >>> sent = CompressedGradient(lambda w, u: w, ErrorFeedback(top_k(0.5)), workers=4)
    >>> sent(np.array([3.0, 1.0]), np.zeros(2)).tolist(), sent.bits  # of all workers so far
    ([3.0, 0.0], 132.0)
    """

    gradient: Gradient
    method: Compressor | ErrorFeedback
    workers: int = 1
    rng: np.random.Generator | None = None
    kept: int | None = None
    bits: float = field(default=0.0, init=False)
    memories: dict[int, Memory] = field(default_factory=dict, init=False)

    def __call__(
        self, forward: NDArray[np.float64], backward: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Let every worker compute and send a gradient."""
        rows = np.array(
            [
                self._received(k, np.ravel(self.gradient(forward, backward)))
                for k in range(self.workers)
            ]
        )
        total = rows.sum(axis=0) if self.kept is None else self._tree(rows, self.kept)
        return np.asarray(total / self.workers).reshape(forward.shape)

    def _received(self, worker: int, own: NDArray[np.float64]) -> NDArray[np.float64]:
        if isinstance(self.method, Compressor):
            message = self.method.encode(own, self.rng)
        else:
            message, self.memories[worker] = self.method.send(
                own, self.memories.get(worker), self.rng
            )
        self.bits += message.bits
        return message.decode()

    def _tree(self, rows: NDArray[np.float64], kept: int) -> NDArray[np.float64]:
        total = global_top_k(rows, kept)
        for worker, (velocity, residual) in self.memories.items():
            self.memories[worker] = Memory(velocity, residual + rows[worker] * (total == 0))
        return total
