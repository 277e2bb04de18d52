import pickle
import time
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

import evidence
import relparallel as rp
from relparallel.sweep import chunk_sizes, map_chunks, spawn_streams


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_chunks_add_up(total, largest):
    if total / largest < 1000:
        sizes = chunk_sizes(total, largest)
        assert sum(sizes) == total
        assert all(0 < size <= largest for size in sizes)
        assert len(set(sizes[:-1])) <= 1


def test_streams_are_independent_of_their_number_and_of_each_other():
    few, many = (
        spawn_streams(np.random.default_rng(1), 2),
        spawn_streams(np.random.default_rng(1), 5),
    )
    draws = [stream.random() for stream in many]
    assert [stream.random() for stream in few] == draws[:2]
    assert len(set(draws)) == 5


def test_order_is_kept_by_an_executor():
    with ThreadPoolExecutor(4) as executor:
        assert map_chunks(lambda x: x * x, range(50), executor) == [x * x for x in range(50)]


def test_what_a_chunk_raises_is_raised_and_the_waiting_are_dropped():
    begun = []

    def fails_first(chunk):
        begun.append(chunk)
        time.sleep(0.05)
        return 1 / chunk

    with ThreadPoolExecutor(1) as executor, pytest.raises(ZeroDivisionError):
        map_chunks(fails_first, range(50), executor)
    assert len(begun) < 5


class Elsewhere:
    """Takes and gives copies, as other processes do; has the method `submit` alone."""

    def submit(self, function, chunk):
        function, chunk = pickle.loads(pickle.dumps((function, chunk)))
        future: Future = Future()
        future.set_result(pickle.loads(pickle.dumps(function(chunk))))
        return future


def jointly(executor):
    options = {"limits": {"schedule": "1f1b"}, "spares": (0, 1), "executor": executor}
    machine = rp.cluster("a100-80gb-selene", gpus=64)
    found = rp.joint(rp.transformer("gpt3-6.7b"), machine, global_batch=64, **options)
    return found.explain(), found.to_frame().to_csv()


def crossed(executor):
    sources = ("PTD-P", "Korthikanti")
    runs = [run for run in evidence.measured_runs() if run.source in sources]
    return evidence.cross_validate(runs, executor=executor).to_csv()


@pytest.mark.parametrize("asked", [jointly, crossed])
def test_what_came_back_from_elsewhere_is_the_same(asked):
    assert asked(Elsewhere()) == asked(None)


class Dies:
    """Loses the second chunk."""

    def __init__(self, error):
        self.error = error

    def submit(self, function, chunk):
        future: Future = Future()
        if chunk == 2:
            future.set_exception(self.error)
        else:
            future.set_result(function(chunk))
        return future


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BrokenExecutor("…"), "a worker process died"),
        (type("KilledWorker", (Exception,), {})("…"), "every worker that took it died"),
    ],
)
def test_the_loss_of_workers_is_said_in_a_sentence(error, told):
    with pytest.raises(RuntimeError, match=f"chunk 2 of 3 was lost: {told} .*; .*ask again"):
        map_chunks(abs, [1, 2, 3], Dies(error))
    found = map_chunks(str, [1, 2, 3], Dies(error), lambda chunk, said: f"{chunk} {said[:8]}")
    assert found == ["1", f"2 {told[:8]}", "3"]


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (chunk_sizes, (0, 1), "total"),
        (chunk_sizes, (1, 0), "largest"),
        (chunk_sizes, (1.0, 1), "total"),
        (spawn_streams, (7, 1), "rng"),
        (spawn_streams, (np.random.default_rng(0), 0), "count"),
        (map_chunks, (None, []), "function"),
        (map_chunks, (abs, 3), "chunks"),
        (map_chunks, (abs, [], "pool"), "executor"),
    ],
)
def test_bad_input_is_refused_by_name(function, arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"{name} must"):
        function(*arguments)
