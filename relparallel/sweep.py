"""Sweeps in chunks: the same answer in this process, in a pool, or on a cluster of machines.

A sweep is cut into chunks whose number does not depend on the workers, and every chunk gets a
random stream of its own, so an executor changes where the work is done and nothing else. Whatever
has the method ``submit`` of `concurrent.futures.Executor` will do: a process pool, or a dask
cluster by ``distributed.Client("tcp://HOST:8786").get_executor()``, which does the chunks of a
worker that dies again on another.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor
from typing import TypeVar

import numpy as np

from relparallel._checks import require_int, require_rng

__all__: list[str] = []  # how the package itself sweeps

Chunk = TypeVar("Chunk")
Part = TypeVar("Part")


def chunk_sizes(total: int, largest: int) -> list[int]:
    """Cut a number of samples into chunks of equal size and a rest."""
    require_int(total=total, largest=largest, at_least=1)
    full, rest = divmod(total, largest)
    return [largest] * full + ([rest] if rest else [])


def spawn_streams(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    """Independent random streams, one per chunk; spawning again gives others.

    They come from ``SeedSequence.spawn``: the first streams do not depend on how many there are.
    """
    require_rng(rng=rng)
    require_int(count=count, at_least=1)
    return list(rng.spawn(count))


def map_chunks(
    function: Callable[[Chunk], Part],
    chunks: Iterable[Chunk],
    executor: Executor | None = None,
    lost: Callable[[Chunk, str], Part] | None = None,
) -> list[Part]:
    """Apply a function to every chunk, here or by an executor; results in the order of the chunks.

    A process pool has to pickle the function: use one of a module, or `functools.partial`. What a
    chunk raises is raised here, and chunks that have not begun are dropped. Where workers died with
    a chunk, ``lost`` says what stands for it, or else an error says so.
    """
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}")
    if isinstance(chunks, str) or not isinstance(chunks, Iterable):
        raise TypeError(f"chunks must be an iterable of chunks, got {chunks!r}")
    require_executor(executor)
    if executor is None:
        return [function(chunk) for chunk in chunks]
    # one message each: none is too large
    futures = [(chunk, executor.submit(function, chunk)) for chunk in chunks]
    found = []
    try:
        for number, (chunk, future) in enumerate(futures, 1):
            try:
                found.append(future.result())
            except Exception as error:
                if not (said := loss(error)):
                    raise
                if lost is None:
                    said = f"chunk {number} of {len(futures)} was lost: {said}"
                    raise RuntimeError(said) from error
                found.append(lost(chunk, said))
        return found
    finally:
        for _, future in futures:
            future.cancel()


def require_executor(executor: object) -> None:
    """Refuse what is neither None nor takes work; other packages have executors of their own."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be None or have a method submit, got {executor!r:.80}")


def loss(error: BaseException) -> str:
    """Say in a sentence that workers died with their work, and what to do; nothing of other errors."""
    if type(error).__name__ == "KilledWorker":  # of dask, which need not be there
        return (
            "every worker that took it died (out of memory, or killed); give workers more memory or "
            "fewer threads, and ask again"
        )
    if isinstance(error, BrokenExecutor):
        return "a worker process died (out of memory, or killed); ask again with fewer workers"
    return ""
