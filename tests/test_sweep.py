import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

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
