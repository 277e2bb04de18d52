"""Sweeps in chunks: the same answer in this process, in a pool, or on a cluster of machines.

A sweep is cut into chunks whose number does not depend on the workers, and every chunk gets a random stream
of its own, so an executor changes where the work is done and nothing else. Any `concurrent.futures.Executor`
will do: a process pool, or a dask cluster by ``distributed.Client("tcp://HOST:8786").get_executor()``, which
does the chunks of a worker that dies again on another.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypeVar

import numpy as np

from relparallel._checks import require_instance, require_int, require_rng

__all__ = ["chunk_sizes", "map_chunks", "spawn_streams"]

Chunk = TypeVar("Chunk")
Part = TypeVar("Part")


def chunk_sizes(total: int, largest: int) -> list[int]:
    """Cut a number of samples into chunks of equal size and a rest.

    Parameters
    ----------
    total : int
        Samples, at least 1.
    largest : int
        Samples per chunk, at least 1.

    Returns
    -------
    list of int
        They add up to ``total``.

    Examples
    --------
    >>> chunk_sizes(total=10, largest=4)
    [4, 4, 2]
    """
    require_int(total=total, largest=largest, at_least=1)
    full, rest = divmod(total, largest)
    return [largest] * full + ([rest] if rest else [])


def spawn_streams(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    """Independent random streams, one per chunk.

    Parameters
    ----------
    rng : numpy.random.Generator
        The parent; spawning again gives other streams.
    count : int
        How many, at least 1.

    Returns
    -------
    list of numpy.random.Generator
        From ``SeedSequence.spawn``: the first streams do not depend on how many there are.

    Examples
    --------
    >>> few, many = (spawn_streams(np.random.default_rng(7), n) for n in (2, 3))
    >>> bool(few[1].integers(10**9) == many[1].integers(10**9))
    True
    """
    require_rng(rng=rng)
    require_int(count=count, at_least=1)
    return list(rng.spawn(count))


def map_chunks(
    function: Callable[[Chunk], Part], chunks: Iterable[Chunk], executor: Executor | None = None
) -> list[Part]:
    """Apply a function to every chunk, in this process or by an executor; results in the order of chunks.

    Parameters
    ----------
    function : callable
        Of one chunk. A process pool has to pickle it: use a function of a module, or `functools.partial`.
    chunks : iterable
        What the function is applied to.
    executor : concurrent.futures.Executor, optional
        None works through the chunks here.

    Returns
    -------
    list
        One result per chunk.

    Notes
    -----
    What a chunk raises is raised here, and chunks that have not begun are dropped.

    Examples
    --------
    >>> map_chunks(abs, [-1, 2])
    [1, 2]
    """
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}")
    if isinstance(chunks, str) or not isinstance(chunks, Iterable):
        raise TypeError(f"chunks must be an iterable of chunks, got {chunks!r}")
    require_instance((Executor, type(None)), executor=executor)
    if executor is None:
        return [function(chunk) for chunk in chunks]
    futures = [executor.submit(function, chunk) for chunk in chunks]  # one message each: none is too large
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
