"""Every joint choice one by one: a linear system and the exact formula of one checkpoint level."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from relparallel.hardware import cluster
from relparallel.parallel import Placement, StrategyGrid, price_strategies
from relparallel.training import (
    Checkpointing,
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    JobShape,
    Recovery,
    goodput,
    optimal_training_time_ratio,
)
from relparallel.training._random_failures import units_hit
from relparallel.training.failure_sources import SharedEvents
from relparallel.training.goodput_forms import steady_state
from relparallel.workload import Transformer

GPT = Transformer(layers=12, hidden=4096, heads=16, vocabulary=51200, sequence=1024)
BATCH = 12
PLAIN = {
    "schedule": ("1f1b", "interleaved_1f1b"),
    "micro_batch": (1, 2),
    "recompute": ("none", "full"),
    "zero_stage": (0, 1),
}
SELENE = cluster("a100-80gb-selene", gpus=8)
SIZES = [(4, 2, 1), (6, 2, 1), (8, 1, 1), (6, 2, 2), (8, 2, 2), (12, 1, 3)]
BOUND = 1e-12


def hall(nodes, per_node, per_rack):
    return replace(SELENE, nodes=nodes, gpus_per_node=per_node, nodes_per_rack=per_rack)


@cache
def table(size, held):
    """Every feasible row of every grid, one by one: least time among equal degrees and copies."""
    machine = replace(hall(*size), nodes=size[0] - held)
    found = price_strategies(
        GPT, StrategyGrid.all(machine.gpus, GPT, BATCH, **PLAIN), machine, BATCH
    )
    least = {}
    for row in np.flatnonzero(found.feasible).tolist():
        s, time = found.grid[row], float(found.time[row])
        key = (s.tensor, s.pipeline, s.data, s.context, s.state_copies)
        least[key] = min(least.get(key, (s, time)), (s, time), key=lambda pair: pair[1])
    return list(least.values())


def unit_hits(placement, machine, more=()):
    """What a failure per second of each kind of part hits in a placement, and how its job lies."""
    kinds = [
        ("node", "stop"),
        ("job", "stop"),
        ("gpu", "stop"),
        ("rack", "stop"),
        ("gpu", "corrupt"),
    ]
    classes = tuple(ComponentClass(name=f"{a} {b}", level=a, rate=1.0, effect=b) for a, b in kinds)
    domains = FailureModel(classes=classes + more, cluster=machine, placement=placement).domains
    try:
        return domains, JobShape.of(placement, machine)
    except ValueError:
        return domains, None


@cache
def hits(size, held, number):
    machine = replace(hall(*size), nodes=size[0] - held, accelerator=None)
    return unit_hits(Placement(strategy=table(size, held)[number][0]), machine)


def drawn(rng, racks=False):
    """A question; with racks parts of several sizes fail, which only mean balances describe."""
    size = SIZES[rng.integers(3 * racks, len(SIZES))]
    rate = 10 ** rng.uniform(-7, -4)
    classes = [
        ComponentClass(name="node", level="node", rate=rate),
        ComponentClass(name="job", level="job", rate=rate * rng.uniform(0.1, 3)),
    ]
    if rng.random() < 0.5:
        classes.append(ComponentClass(name="gpu", level="gpu", rate=rate * rng.uniform(0, 1)))
    if racks:
        classes.append(ComponentClass(name="rack", level="rack", rate=rate * rng.uniform(0, 2)))
    if rng.random() < 0.3:
        classes.append(ComponentClass(name="data", level="gpu", rate=rate * 0.1, effect="corrupt"))
    save = rng.uniform(1, 200)
    kinds = {
        "storage": Checkpointing(
            levels=(CheckpointLevel(name="storage", cost=save, restart=4 * save),)
        ),
        "memory": Checkpointing(
            levels=(CheckpointLevel(name="memory", cost=save / 2, restart=9 * save),)
        ),
    }
    return {
        "size": size,
        "rates": tuple(classes),
        "checkpoints": kinds,
        "repair": 10 ** rng.uniform(2, 6),
        "restart": rng.uniform(0, 900),
        "pause": rng.uniform(0, 120),
        "spares": [s for s in (0, size[2], 2 * size[2]) if table(size, s)],
    }


def eventful(rng):
    """A question whose nodes share events, at rates that drift, perhaps with racks besides."""
    instance = drawn(rng, racks=bool(rng.random() < 0.3))
    widest = instance["size"][0] - max(instance["spares"])
    sizes = rng.dirichlet(np.ones(rng.integers(1, widest + 1)))
    sizes[:-1] *= rng.random(sizes.size - 1) < 0.7
    sizes /= sizes.sum()
    calm = rng.uniform(0, 1)
    drift = (((1.0, 1.0),), ((0.8, calm), (0.2, 5 - 4 * calm)), SharedEvents.drifting(0.5))
    return instance | {
        "source": SharedEvents(
            sizes=sizes,
            together=bool(rng.integers(2)),
            neighbours=bool(rng.integers(2)),
            phases=drift[rng.integers(3)],
        )
    }


def priced(instance):
    """Throughput and relative goodput of every strategy, number of spares, recovery and checkpoint."""
    known = {}
    for held in instance["spares"]:
        nodes = instance["size"][0] - held
        machine = replace(hall(*instance["size"]), nodes=nodes, accelerator=None)
        for strategy, time in table(instance["size"], held):
            model = FailureModel(
                classes=instance["rates"],
                cluster=machine,
                placement=Placement(strategy=strategy),
                source=instance["source"],
            )
            lies = unit_hits(model.placement, machine)[1]
            for way, name in product(recoveries(instance), instance["checkpoints"]):
                if way.waits or lies is not None:
                    free = 0 if way.policy == "restart" else held
                    key = (model.domains, lies, way.policy, name, free)  # all that a share is of
                    if key not in known:
                        kept = instance["checkpoints"][name]
                        known[key] = goodput(model, time, kept, way, free).mean
                    yield BATCH * GPT.sequence / time, known[key]


def reported(instance):
    """Throughput and share of each row, policy, checkpoint and spare count by `steady_state`."""
    known = {}
    for held in instance["spares"]:
        machine = replace(
            hall(*instance["size"]), nodes=instance["size"][0] - held, accelerator=None
        )
        for strategy, time in table(instance["size"], held):
            placement = Placement(strategy=strategy)
            model = FailureModel(classes=instance["rates"], cluster=machine, placement=placement)
            for share in steady_shares(model, instance, held, known):
                yield BATCH * GPT.sequence / time, share


def steady_shares(model, instance, held, known):
    """Shares by policy and checkpoint of `steady_state`, once for jobs that lie and fail alike."""
    shape = unit_hits(model.placement, model.cluster)[1]
    key = (held, shape, model.domains)
    if key not in known:
        ways = product(recoveries(instance), instance["checkpoints"].values())
        every = [
            steady_state(model, kept, r, 0 if r.policy == "restart" else held) for r, kept in ways
        ]
        known[key] = [found.share for found in every if found is not None]
    return known[key]


def balanced(flow):
    """Stationary distribution by linear algebra."""
    flow = flow - np.diag(flow.sum(axis=1))
    return np.linalg.lstsq(
        np.vstack([flow.T, np.ones(len(flow))]), np.eye(len(flow) + 1)[-1], rcond=None
    )[0]


def shares(hit, shape, nodes, held, recovery, instance, known):
    """What failures leave by checkpoints, from a linear system and the exact formula of one level.

    ``hit`` lists failures per second, nodes that they take, and whether the job goes back.
    """
    held = 0 if recovery.policy == "restart" else held
    most = held + (max(taken for _, taken, _ in hit) if recovery.waits else nodes)
    births = np.bincount([taken for _, taken, _ in hit], [rate for rate, _, _ in hit], minlength=1)
    back = sum(rate for rate, _, goes_back in hit if goes_back)
    on = sum(rate for rate, _, goes_back in hit if not goes_back)
    missing = np.minimum(np.maximum(np.arange(most + 1) - held, 0), nodes)
    speed = recovery.speed(shape, int(missing[-1]))[missing]
    key = (recovery.policy, held, nodes, births[1:].tobytes(), back, on, speed.tobytes())
    if key not in known:
        up = np.where(missing == 0, 1.0, 0.0) if recovery.waits else (nodes - missing) / nodes
        repair, pause = instance["repair"], recovery.pause

        def spread(faster):
            flow = np.diag(np.arange(1, most + 1) * faster / repair, -1)
            for width in np.flatnonzero(births[1:]) + 1:
                to = np.minimum(np.arange(most + 1) + width, most)
                np.add.at(flow, (np.arange(most + 1), to), births[width] * up)
            np.fill_diagonal(flow, 0)
            return balanced(flow)

        # A replica is whole or broken; outside a pause it has not become broken for so long. A
        # failure in a broken one begins no pause, and that of the last one leaves no state.
        before, size, gone_on, paused = spread(1.0), shape.nodes_per_replica, 1.0, pause
        if not recovery.waits:
            fails, whole = births @ np.arange(births.size) / nodes, before @ speed
            away = ((1 + fails * repair) ** size - 1) / (size * fails) if fails else repair
            struck, odds = size * on / nodes, (1 - whole) / whole
            clean, gone = np.exp(-struck * pause), np.exp(-pause / away)
            back_again = (clean - gone) / (1 - struck * away)
            kept = whole * clean + (1 - whole) * back_again
            if on and pause and whole < 1 - 1e-12:
                both = (1 + (1 - whole) * gone / kept) ** (1 / size) - 1
                gone_on = both / ((1 + odds) ** (1 / size) - 1)
            if on and pause:
                paused = -np.log(kept + (1 - whole) * gone) / struck
            none = units_hit(shape.units, size, int(missing[-1]))
            none = np.pad(none, ((0, 0), (0, shape.units)))[:, shape.units]
            later = none[np.append(missing[1:], missing[-1])]
            last = on * float(before * up @ (later - none[missing]))
            back += last if last > 1e-15 else 0.0
        left = [rate * n * (1 if goes_back else gone_on) for rate, n, goes_back in hit]
        clear = spread(births @ np.arange(births.size) / sum(left) if sum(left) else 1.0)
        outside = np.exp(-on * paused)
        with_nodes, without = (chance[speed > 0].sum() for chance in (before, clear))
        if outside * without > with_nodes > 1e-9:  # no more time than there are nodes for
            outside = with_nodes / without
        running = clear @ speed * outside
        levels = {name: one.levels[0] for name, one in instance["checkpoints"].items()}
        known[key] = [
            running * optimal_training_time_ratio(x.cost, 1 / back, recovery.restart + x.restart)
            for x in levels.values()
        ]
    return known[key]


def recoveries(instance):
    return [
        Recovery(policy, **{name: instance[name] for name in ("repair", "restart", "pause")})
        for policy in ("restart", "spares", "elastic")
    ]


def one_piece(nodes):
    return JobShape(nodes=nodes, replicas=1, stages=1, tensor=1, nodes_per_replica=nodes)


def choices(instance):
    """Throughput and shares of every row, policy and number of spares."""
    known, rates = {}, {f"{c.level} {c.effect}": c.rate for c in instance["rates"]}
    ways = recoveries(instance)
    for held in instance["spares"]:
        nodes = instance["size"][0] - held
        for number, (_, time) in enumerate(table(instance["size"], held)):
            domains, shape = hits(instance["size"], held, number)
            seen = [(rates.get(d.component.name, 0.0) * d.rate, d) for d in domains]
            for recovery in ways:
                lies = one_piece(nodes) if recovery.waits else shape
                if lies is not None:
                    hit = [(rate, d.nodes, recovery.goes_back(d, lies)) for rate, d in seen]
                    for share in shares(hit, lies, nodes, held, recovery, instance, known):
                        yield BATCH * GPT.sequence / time, share
