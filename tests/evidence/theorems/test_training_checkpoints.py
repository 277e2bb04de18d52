"""Theorems on checkpoints in memory, on several levels and against silent errors."""

import numpy as np
from numpy.typing import NDArray
from theorem_table import theorem

from relparallel import hardware, training, units
from relparallel.published import facts
from relparallel.training.redundancy import replica_holders


@theorem("THM-two-levels-chain", system="Checkpointing (Young/Daly)")
def test_two_levels_are_a_chain():
    """Nested blocks of two levels of checkpoints equal the absorbing Markov chain of segments."""
    # Share with the rates and costs of ML2-001, from blocks and from the chain of 17 segments.
    row = facts("training-reliability")["ML2-001"].inputs
    rates = np.array([float(row["rate"]), float(row["higher_rate"])])
    costs = np.array([float(row["checkpoint"]), float(row["higher_checkpoint"])])
    work, count = float(row["w"]), int(row["n"])
    levels = (
        training.CheckpointLevel(name="near", cost=costs[0], restart=0.0, survives={"node": 0.0}),
        training.CheckpointLevel(name="far", cost=costs[1], restart=0.0),
    )
    causes = [
        training.Cause(level="job", rate=rates[0]),
        training.Cause(level="node", rate=rates[1]),
    ]
    blocks = training.rollback(
        training.Checkpointing(levels=levels, interval=work, every=(count,)), causes
    )
    passing = np.exp(
        -rates.sum() * (work + costs[0] + np.append(np.zeros(count - 1), np.diff(costs)))
    )
    step = np.diag(passing[:-1], 1) + np.diag((1 - passing) * rates[0] / rates.sum())
    step[:, 0] += (1 - passing) * rates[1] / rates.sum()
    times = np.linalg.solve(np.eye(count) - step, (1 - passing) / rates.sum())
    return blocks.share, float(count * work / times[0])


@theorem("THM-causes-share-an-interval", system="Checkpointing (Young/Daly)")
def test_causes_share_an_interval():
    """With one level the best interval depends on neither causes, restarts nor delay."""
    # Best share by the closed form of the interval, and the best of a fine grid, for two causes.
    level = training.CheckpointLevel(name="storage", cost=60.0, restart=600.0, delay=200.0)
    causes = [
        training.Cause(level="gpu", rate=4 / units.DAY, detection=600.0),
        training.Cause(level="rack", rate=1 / units.DAY, restart=3600.0),
    ]
    best = training.rollback(training.Checkpointing(levels=(level,)), causes)
    grid = [
        training.rollback(
            training.Checkpointing(levels=(level,), interval=best.interval * (0.9 + i / 1000)),
            causes,
        )
        for i in range(200)
    ]
    return best.share, max(entry.share for entry in grid)


@theorem("THM-parity-rebuilds", system="REFT in-memory checkpointing")
def test_parity_rebuilds():
    """Nodes of a lost rack are rebuilt by exclusive or wherever parity is said to survive."""
    # Share of racks after whose loss every snapshot is there again, by the policy and on real
    # bytes.
    said, found = [], []
    cluster = hardware.Cluster(nodes=64, nodes_per_rack=4)
    for stride in (1, 2, 4, 8):
        policy = training.parity(1e12, 1e12, cluster, group=8, stride=stride)
        said.append(policy.survival("rack"))
        holders = replica_holders(64, 8, "group", stride)
        data = np.random.default_rng(stride).integers(0, 256, (64, 56), dtype=np.uint8)
        racks = np.arange(64).reshape(16, 4)
        found.append(np.mean([_rebuilt(data, holders, rack) for rack in racks]))
    return sum(said), float(sum(found))


def _rebuilt(data: NDArray[np.uint8], holders: NDArray[np.int64], lost: NDArray[np.int64]) -> bool:
    """Whether the snapshots of all lost nodes come back from the parity of their groups."""
    back = data.copy()
    back[lost] = 0
    for group in np.unique(np.sort(holders, axis=1), axis=0):
        parity = np.bitwise_xor.reduce(data[group], axis=0)  # kept in shares by the other nodes
        gone = np.intersect1d(group, lost)
        if gone.size == 1:
            back[gone[0]] = parity ^ np.bitwise_xor.reduce(back[group], axis=0)
    return bool((back == data).all())
