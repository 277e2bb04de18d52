"""Handing tasks to workers, and surviving workers that die."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager

from .execute import Failure, Outcome, Task, execute
from .processes import DIED, local_pool

Pool = Callable[[int], AbstractContextManager[Executor]]
Ended = tuple[str, Outcome]


def outcomes(
    tasks: Iterable[Task], workers: int, pool: Pool | None, started: Callable[[str], None]
) -> Generator[Ended, None, None]:
    """Yield the name and outcome of every task as it ends, and say when one starts.

    When a worker dies, an executor tells only that one did. What ran then is run again, last and one at a
    time: the one that breaks a pool of its own is to blame.
    """
    pool = pool or local_pool
    queue, suspects = deque(tasks), list[Task]()
    while queue:
        with pool(workers) as executor:
            suspects += yield from _drained(queue, executor, workers, started)
    for task in suspects:
        with pool(1) as executor:
            broken = yield from _drained(deque([task]), executor, 1, started)
        if broken:
            yield task.name, Outcome(failure=Failure(error=DIED))


def _drained(
    queue: deque[Task], executor: Executor, workers: int, started: Callable[[str], None]
) -> Generator[Ended, None, list[Task]]:
    """Yield tasks of the queue as they end; return those that ran when the executor broke."""
    running: dict[Future[Outcome], Task] = {}
    try:
        while queue or running:
            while queue and len(running) < workers:
                running[executor.submit(execute, queue[0])] = queue[0]
                started(queue.popleft().name)
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                outcome = _outcome(future)
                yield running.pop(future).name, outcome
    except BrokenExecutor:
        pass
    return list(running.values())


def _outcome(future: Future[Outcome]) -> Outcome:
    """Return what came of a task; a cluster that gives one up goes on with the others."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Outcome(failure=Failure(error=f"the cluster lost it ({told})"))
