"""Training with compressed gradients: what was not sent is remembered, the workers' messages are averaged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import (
    Result,
    require_flag,
    require_instance,
    require_int,
    require_number,
    require_rng,
)
from relparallel.book.s36.compression import Compressor, Message, global_top_k, top_k
from relparallel.communication.descent import Gradient


class Memory(NamedTuple):
    """What a worker keeps from one update to the next: its velocity u, and the residual r it has not sent."""

    velocity: Any = 0.0
    residual: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ErrorFeedback(Result):
    """A compressor whose error is added to the next gradient, with momentum on the side of the worker.

    With ``momentum`` m in [0, 1): u <- m u + g, r <- r + u, C(r) is sent, r <- r - C(r); with 0 this is error
    feedback. ``masking``: whether the velocity u becomes 0 where a number was sent. Seide et al., Interspeech
    2014 (feedback). Lin et al., ICLR 2018, section 3 (momentum, masking).

    Examples
    --------
    >>> message, memory = ErrorFeedback(top_k(0.5)).send([3.0, 1.0])
    >>> message.decode().tolist(), memory.residual.tolist()
    ([3.0, 0.0], [0.0, 1.0])
    """

    compressor: Compressor
    momentum: float = 0.0
    masking: bool = False

    def __post_init__(self) -> None:
        require_instance(Compressor, compressor=self.compressor)
        require_number(momentum=self.momentum, at_least=0, below=1)
        require_flag(masking=self.masking)

    def send(
        self, gradient: ArrayLike, memory: Memory | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Message, Memory]:
        """What a worker sends for its gradient, and what it remembers then."""
        before, gradient = memory or Memory(), np.asarray(gradient)
        if np.shape(before.residual) not in ((), gradient.shape):
            raise ValueError(
                f"memory must be of gradients of shape {gradient.shape}, got {np.shape(before.residual)}"
            )
        velocity = self.momentum * before.velocity + gradient
        residual = before.residual + velocity
        message = self.compressor.encode(residual, rng)
        if self.masking:
            velocity[message.positions] = 0.0
        return message, Memory(velocity, residual - message.decode())


def deep_gradient_compression(epoch: int = 4, density: float = 0.001, momentum: float = 0.9) -> ErrorFeedback:
    """Deep Gradient Compression in an epoch of its warm-up, with momentum correction and masking.

    4**-(epoch + 1) of the gradients are sent, but at least ``density``. Lin et al., ICLR 2018, section 3.
    """
    share = 4.0 ** -(require_int(epoch=epoch, at_least=0, at_most=500) + 1)
    least = require_number(density=density, above=0, at_most=1)
    return ErrorFeedback(top_k(max(share, least)), momentum, masking=True)


@dataclass(slots=True, eq=False)
class CompressedGradient(Result):
    """The mean of what several workers send, as a gradient for `delayed_descent`.

    Parameters
    ----------
    gradient : callable
        As in `delayed_descent`; called once for every worker, each time with a batch of its own.
    method : Compressor or ErrorFeedback
        What each worker sends; residuals are remembered, so every run needs a new object.
    workers, rng : int, numpy.random.Generator, optional
        At least 1; needed where the compressor is random.
    kept : int, optional
        With it the messages are added up by `global_top_k`, and a worker takes back what that leaves out.

    Examples
    --------
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

    def __post_init__(self) -> None:
        require_instance(Callable, gradient=self.gradient)
        require_instance((Compressor, ErrorFeedback), method=self.method)
        require_int(workers=self.workers, at_least=1)
        if self.rng is not None:
            require_rng(rng=self.rng)
        if self.kept is not None:
            require_int(kept=self.kept, at_least=1)

    def __call__(self, forward: NDArray[np.float64], backward: NDArray[np.float64]) -> NDArray[np.float64]:
        """Let every worker compute and send a gradient."""
        rows = np.array(
            [self._received(k, np.ravel(self.gradient(forward, backward))) for k in range(self.workers)]
        )
        total = rows.sum(axis=0) if self.kept is None else self._tree(rows, self.kept)
        return np.asarray(total / self.workers).reshape(forward.shape)

    def _received(self, worker: int, own: NDArray[np.float64]) -> NDArray[np.float64]:
        if isinstance(self.method, Compressor):
            message = self.method.encode(own, self.rng)
        else:
            message, self.memories[worker] = self.method.send(own, self.memories.get(worker), self.rng)
        self.bits += message.bits
        return message.decode()

    def _tree(self, rows: NDArray[np.float64], kept: int) -> NDArray[np.float64]:
        total = global_top_k(rows, kept)
        for worker, (velocity, residual) in self.memories.items():
            self.memories[worker] = Memory(velocity, residual + rows[worker] * (total == 0))
        return total
