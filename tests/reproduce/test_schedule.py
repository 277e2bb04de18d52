"""Workers that die: the one to blame is found, and nobody else suffers."""

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import pytest

from relparallel.reproduce.execute import Outcome, Task, outcomes


class Fragile(Executor):
    """Breaks for good when a given task comes, with everything that runs; the last submitted runs on."""

    def __init__(self, deadly: set[str]) -> None:
        self.deadly, self.running, self.broken = deadly, [], False

    def submit(self, function, task):
        if self.broken:
            raise BrokenProcessPool
        future: Future = Future()
        self.running.append(future)
        if task.name in self.deadly:
            self.broken = True
            for each in self.running:
                if not each.done():
                    each.set_exception(BrokenProcessPool())
        elif task.name != "slow" or len(self.running) == 1:
            future.set_result(Outcome())
        return future


def run(names: str, deadly: set[str], workers: int):
    """Return what came of the tasks, and the size and tasks of every pool."""
    pools, started = [], []

    @contextmanager
    def pool(size):
        pools.append((size, []))
        started.append(pools[-1][1])
        yield Fragile(deadly)

    tasks = [Task(name=n, raw=b"", folder="", cell_timeout=1.0, timeout=1.0) for n in names.split()]
    ended = list(outcomes(tasks, workers, pool, lambda name: pools[-1][1].append(name)))
    return {name: outcome.failure for name, outcome in ended}, pools


def test_without_deaths_one_pool_serves_all():
    failures, pools = run("a b c", set(), 2)
    assert failures == {"a": None, "b": None, "c": None}
    assert [(size, sorted(names)) for size, names in pools] == [(2, ["a", "b", "c"])]


@pytest.mark.parametrize(
    "names", ["slow deadly a b", "a slow deadly b", "a b slow deadly", "deadly", "deadly slow"]
)
def test_the_deadly_one_is_blamed_and_the_others_are_done(names):
    failures, pools = run(names, {"deadly"}, 2)
    assert set(failures) == set(names.split())
    assert {name for name, failure in failures.items() if failure} == {"deadly"}
    assert "worker process died" in failures["deadly"].error
    suspects = [names for size, names in pools if size == 1]
    assert ["deadly"] in suspects
    assert all(len(alone) == 1 for alone in suspects)


def test_two_deadly_ones_are_both_blamed():
    failures, _ = run("deadly a worse b", {"deadly", "worse"}, 2)
    assert {name for name, failure in failures.items() if failure} == {"deadly", "worse"}
