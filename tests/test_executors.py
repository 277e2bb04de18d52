"""Every sweep gives the same digits in this process, a pool, and a cluster that loses a worker."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from relparallel.hardware import Cluster, cluster
from relparallel.parallel import Strategy, StrategyGrid, price_strategies
from relparallel.reliability import estimate
from relparallel.sweep import map_chunks, spawn_streams
from relparallel.training import Checkpointing, CheckpointLevel, Recovery, failure_model, simulate
from relparallel.workload import Transformer

distributed = pytest.importorskip("distributed", reason="the extra distributed is not installed")
GPT3 = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
GPUS = cluster("a100-80gb-selene", gpus=64)


def sampled(executor):
    rng = np.random.default_rng(2)
    options = {"method": "crude", "samples": 200_000, "rng": rng, "executor": executor}
    return estimate(nx.cycle_graph(5), link_down=0.1, **options)


def strategies(executor):
    grid = StrategyGrid.all(gpus=64, model=GPT3, global_batch=64, tensor=8)
    found = price_strategies(GPT3, grid, GPUS, global_batch=64, executor=executor)
    return [column.tobytes() for column in (found.time, found.memory, found.reason)]


def simulated(executor):
    model = failure_model(Cluster(nodes=16), Strategy(tensor=8, pipeline=4, data=4))
    storage = Checkpointing(levels=(CheckpointLevel(name="storage", cost=20.0, restart=300.0),))
    found = simulate(
        model,
        5.0,
        storage,
        Recovery("spares", repair=86400.0),
        2,
        years=40,
        rng=np.random.default_rng(3),
        executor=executor,
    )
    return found.mean, found.sd, found.samples.tobytes()


SWEEPS = [sampled, strategies, simulated]


def drawn(deadly: str, chunk: tuple[int, np.random.Generator]) -> bytes:
    """Draw from a chunk's stream; the first process to reach chunk 3 dies after it has drawn."""
    number, rng = chunk
    numbers = rng.random(1000)
    if number == 3 and deadly and not Path(deadly).exists():
        Path(deadly).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers.tobytes()


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module")
def client(dask_cluster):
    with distributed.Client(dask_cluster, set_as_default=False) as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_pool_and_a_cluster_give_the_same_digits(sweep, pool, client):
    here = sweep(None)
    assert sweep(pool) == here
    assert sweep(client.get_executor()) == here
    assert sweep(client.get_executor(pure=False)) == here


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_digits(client, tmp_path):
    """The chunk is drawn again from the beginning of its stream, on another worker."""
    deadly = str(tmp_path / "died")

    def chunks():
        return list(enumerate(spawn_streams(np.random.default_rng(5), 8)))

    here = map_chunks(partial(drawn, ""), chunks())
    assert len(set(here)) == 8
    assert map_chunks(partial(drawn, deadly), chunks(), client.get_executor()) == here
    assert Path(deadly).exists()
