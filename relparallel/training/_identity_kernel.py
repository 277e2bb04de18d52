"""Simulation with identities: each node has its own life, groups fail together, replayed records.

Two heaps: ends of lives on the clock of running nodes, and ends of repairs on the wall clock. One
event costs O(log nodes).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from relparallel.training._job import ANYWHERE, SINGLE, JobRows
from relparallel.training._job_kernel import (
    BARE,
    CLOCK,
    LEFT,
    PLANNED,
    Course,
    advance,
    clear,
    slowest,
    speed_left,
    strike,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
DOWN, ACTIVE, FREE = 0, 1, 2
SPARE, BESIDE, INSIDE = 0, 1, 2  # a node that fails: no part, of a unit that has left, at work
# active nodes, pool, sizes of heaps, record, units that have left
UP, HEAD, READY, LIVES, REPAIRS, NEXT, BROKEN, COUNTERS = range(8)


class Nodes(NamedTuple):
    """State and distributions of the nodes of a job and its spares."""

    role: Integers  # [node] DOWN, ACTIVE or FREE
    # [node] end of life on the running clock; what is left of it for a node that does not run
    end: Floats
    pool: Integers  # spares in the order of use, a ring
    tally: Integers  # counters
    left: Integers  # [node] how often it has stopped running
    lives: Floats  # heap
    owner: Integers  # of each entry: left * nodes + node, outdated once the node has left again
    repairs: Floats  # heap
    part: Integers  # node of each entry, or -1 - row for a part that is no node
    deck: Integers  # nodes, shuffled again for each event of nodes that stand anywhere
    law: Floats  # kind, scale, exponent of lives; the same of repairs of mean 1
    observed: Floats  # lives where they are observed ones
    mends: Floats  # repairs of mean 1 where they are observed ones
    single: Floats  # [row + 1] cumulated share of rows that take one node
    # [works, row] rate of rows that take more nodes or none; less while it waits
    base: Floats
    group: Floats  # [works, row + 1] the same in this phase, cumulated
    begin: Floats  # [record]
    finish: Floats  # [record]
    node: Integers  # [record]
    seat: Integers  # [node] that it takes, or will when it is back; those of spares come last
    unit: Integers  # [seat] which leaves as a whole; empty where none does
    gone: Integers  # [unit] nodes that it lacks


@njit(**BARE)
def _push(keys: Floats, names: Integers, size: int, key: float, name: int) -> None:
    """Add an entry to a heap of ``size`` entries."""
    place = size
    while place > 0 and keys[(place - 1) >> 1] > key:
        keys[place], names[place] = keys[(place - 1) >> 1], names[(place - 1) >> 1]
        place = (place - 1) >> 1
    keys[place], names[place] = key, name


@njit(**BARE)
def _replace(keys: Floats, names: Integers, size: int, key: float, name: int) -> None:
    """Put an entry in the place of the first one."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place], names[place] = keys[child], names[child]
        place, child = child, 2 * child + 1
    keys[place], names[place] = key, name


@njit(**BARE)
def _drop(keys: Floats, names: Integers, size: int) -> None:
    """Remove the first entry; ``size`` counts what is left."""
    _replace(keys, names, size, keys[size], names[size])


@njit(**BARE)
def _draw(rng: Any, kind: float, scale: float, exponent: float, observed: Floats) -> float:
    """A life: Weibull, lognormal or an observed one."""
    if kind == 0.0:
        draw = rng.standard_exponential()
        return float(scale * (draw if exponent == 1.0 else draw**exponent))
    if kind == 1.0:
        return float(scale * np.exp(exponent * rng.standard_normal()))
    return float(scale * observed[min(int(rng.random() * observed.size), observed.size - 1)])


@njit(**BARE, inline="always")
def _tidy(nodes: Nodes) -> None:
    """Throw out entries of nodes that were taken out before their life ended."""
    count = nodes.tally
    size = nodes.role.size
    while count[LIVES] > 0:
        if nodes.owner[0] // size == nodes.left[nodes.owner[0] % size]:
            return
        count[LIVES] -= 1
        _drop(nodes.lives, nodes.owner, count[LIVES])


@njit(**BARE)
def _enter(name: int, running: float, nodes: Nodes) -> None:
    """A node begins to run: what is left of its life becomes its end."""
    count = nodes.tally
    size = nodes.role.size
    if count[LIVES] == nodes.lives.size:  # full of entries of nodes that have left
        kept, count[LIVES] = count[LIVES], 0
        for place in range(kept):
            entry, key = nodes.owner[place], nodes.lives[place]
            if entry // size == nodes.left[entry % size]:
                _push(nodes.lives, nodes.owner, count[LIVES], key, entry)
                count[LIVES] += 1
    nodes.end[name] += running
    entry = nodes.left[name] * size + name
    _push(nodes.lives, nodes.owner, count[LIVES], nodes.end[name], entry)
    count[LIVES] += 1


@njit(**BARE)
def _return(name: int, running: float, job: JobRows, nodes: Nodes) -> None:
    """A node is back: it runs if one is missing, else it is a spare."""
    count = nodes.tally
    if count[UP] < job.total:
        count[UP] += 1
        nodes.role[name] = ACTIVE
        if nodes.unit.size > 0:
            _take_seat(name, job, nodes)
    else:
        nodes.role[name] = FREE
        nodes.pool[(count[HEAD] + count[READY]) % nodes.pool.size] = name
        count[READY] += 1
    if nodes.role[name] == ACTIVE or job.hot:
        _enter(name, running, nodes)


@njit(**BARE)
def _take_seat(name: int, job: JobRows, nodes: Nodes) -> None:
    """A node that is back takes its own seat, or where a spare has that, one of the next nodes."""
    other = name
    while (nodes.role[other] != DOWN and other != name) or nodes.seat[other] >= job.total:
        other = (other + 1) % nodes.role.size
    nodes.seat[name], nodes.seat[other] = nodes.seat[other], nodes.seat[name]
    unit = nodes.unit[nodes.seat[name]]
    nodes.gone[unit] -= 1
    nodes.tally[BROKEN] -= nodes.gone[unit] == 0


@njit(**BARE)
def _leave(name: int, running: float, nodes: Nodes, job: JobRows) -> int:
    """A node goes down; a spare takes its place. SPARE, BESIDE or INSIDE."""
    count, hit = nodes.tally, nodes.role[name] == ACTIVE
    if hit or job.hot:
        nodes.end[name] -= running
    nodes.role[name] = DOWN
    nodes.left[name] += 1
    if not hit:  # out of the ring
        place = 0
        while nodes.pool[(count[HEAD] + place) % nodes.pool.size] != name:
            place += 1
        count[READY] -= 1
        for later in range(place, count[READY]):
            after = nodes.pool[(count[HEAD] + later + 1) % nodes.pool.size]
            nodes.pool[(count[HEAD] + later) % nodes.pool.size] = after
        return SPARE
    unit = nodes.unit[nodes.seat[name]] if nodes.unit.size > 0 else -1
    whole = unit < 0 or nodes.gone[unit] == 0
    count[UP] -= 1
    if count[READY] > 0:
        other = nodes.pool[count[HEAD]]
        count[HEAD] = (count[HEAD] + 1) % nodes.pool.size
        count[READY] -= 1
        count[UP] += 1
        nodes.role[other] = ACTIVE
        nodes.seat[name], nodes.seat[other] = nodes.seat[other], nodes.seat[name]
        if not job.hot:
            _enter(other, running, nodes)
    elif unit >= 0:
        nodes.gone[unit] += 1
        count[BROKEN] += whole
    return INSIDE if whole else BESIDE


@njit(**BARE, inline="always")
def _felt(hit: int, row: int, job: JobRows) -> bool:
    """Whether the job notices a failure there."""
    return bool(hit == INSIDE or (hit == BESIDE and job.back[row]))


@njit(**BARE)
def _end_of_life(rng: Any, now: float, running: float, nodes: Nodes, job: JobRows) -> int:
    """The first life ends; the node is new after its repair. Its row, or -1 - row for a spare."""
    name = nodes.owner[0] % nodes.role.size
    row = _which(nodes.single, rng.random()) if nodes.single.size > 2 else 0
    nodes.tally[LIVES] -= 1
    _drop(nodes.lives, nodes.owner, nodes.tally[LIVES])
    hit = _leave(name, running, nodes, job)
    nodes.end[name] = _draw(rng, nodes.law[0], nodes.law[1], nodes.law[2], nodes.observed)
    wait = _draw(rng, nodes.law[3], nodes.law[4], nodes.law[5], nodes.mends) * job.repair[row]
    _push(nodes.repairs, nodes.part, nodes.tally[REPAIRS], now + wait, name)
    nodes.tally[REPAIRS] += 1
    return row if _felt(hit, row, job) else -1 - row


@njit(**BARE)
def _outage(rng: Any, row: int, now: float, running: float, nodes: Nodes, job: JobRows) -> bool:
    """A part that is no node fails; its group of nodes is down until one repair is over."""
    width, hit, size = job.nodes[row], SPARE, nodes.role.size
    wait = now + _draw(rng, nodes.law[3], nodes.law[4], nodes.law[5], nodes.mends) * job.repair[row]
    if width == 0:
        _push(nodes.repairs, nodes.part, nodes.tally[REPAIRS], wait, -1 - row)
        nodes.tally[REPAIRS] += 1
        return True
    anywhere = job.shared[row] == ANYWHERE
    first = int(rng.random() * -(-size // width)) * width
    for place in range(width):
        name = first + place
        if anywhere:  # any set of so many is as likely: a shuffle that stops early
            other = place + int(rng.random() * (size - place))
            nodes.deck[place], nodes.deck[other] = nodes.deck[other], nodes.deck[place]
            name = nodes.deck[place]
        if name >= size:
            break
        if job.apart and place > 0:
            mend = _draw(rng, nodes.law[3], nodes.law[4], nodes.law[5], nodes.mends)
            wait = now + mend * job.repair[row]
        if nodes.role[name] != DOWN:
            hit = max(_leave(name, running, nodes, job), hit)
            _push(nodes.repairs, nodes.part, nodes.tally[REPAIRS], wait, name)
            nodes.tally[REPAIRS] += 1
    return bool(_felt(hit, row, job))


@njit(**BARE, inline="always")
def _record(running: float, nodes: Nodes, job: JobRows) -> bool:
    """The next recorded failure: the node is down until its recorded end."""
    record = nodes.tally[NEXT]
    nodes.tally[NEXT] += 1
    name = nodes.node[record]
    if nodes.role[name] == DOWN:  # under repair for another reason, which ends as it would have
        return False
    _push(nodes.repairs, nodes.part, nodes.tally[REPAIRS], nodes.finish[record], name)
    nodes.tally[REPAIRS] += 1
    return bool(_felt(_leave(name, running, nodes, job), job.rate.size - 1, job))


@njit(**BARE, inline="always")
def _repaired(running: float, nodes: Nodes, job: JobRows, under: Integers) -> None:
    """The first repair ends."""
    name = nodes.part[0]
    nodes.tally[REPAIRS] -= 1
    _drop(nodes.repairs, nodes.part, nodes.tally[REPAIRS])
    if name < 0:
        under[-1 - name] -= 1
    else:
        _return(name, running, job, nodes)


@njit(**BARE)
def _which(cumulated: Floats, draw: float) -> int:
    """The row that a draw below the last cumulated rate falls on."""
    row = 0
    while row < cumulated.size - 2 and cumulated[row + 1] <= draw:
        row += 1
    return row


@njit(**BARE)
def _enter_phase(factor: float, job: JobRows, nodes: Nodes) -> None:
    """Cumulate the rates of the rows with those of shared events times a factor."""
    for works in range(2):
        for row in range(job.rate.size):
            rate = nodes.base[works, row] * (factor if job.shared[row] > 0 else 1.0)
            nodes.group[works, row + 1] = nodes.group[works, row] + rate


@njit(**BARE)
def run_identities(rng: Any, job: JobRows, course: Course, nodes: Nodes) -> None:
    """As `run_counts`; the last row is that of recorded failures where there are any."""
    between, planned, window = course.between, course.planned, course.window
    found, counts, under = course.found, course.counts, course.under
    times, spent = course.times, course.spent
    times[LEFT], count, now, running, place, stopped = job.interval, nodes.tally, 0.0, 0.0, 0, False
    share, toggle, phase = job.speed[0], between, 0
    change = job.lasting if course.factors.size > 1 else np.inf
    _enter_phase(course.factors[0], job, nodes)
    waiting, working = nodes.group[0, -1], nodes.group[1, -1]
    hazard = rng.standard_exponential()
    while place < found.shape[0]:
        alive = not stopped and (job.hot or share > 0.0 or nodes.unit.size > 0)
        works = not stopped and share > 0.0
        others = 0.0 if stopped else working if works else waiting
        _tidy(nodes)
        life = now + (nodes.lives[0] - running) if alive and count[LIVES] > 0 else np.inf
        other = now + hazard / others if others > 0.0 else np.inf
        repaired = nodes.repairs[0] if count[REPAIRS] > 0 else np.inf
        recorded = nodes.begin[count[NEXT]] if count[NEXT] < nodes.begin.size else np.inf
        border = min(min((place + 1) * window, toggle), change)
        end = min(min(life, other), min(min(repaired, recorded), border))
        step = end - now
        if stopped:
            spent[PLANNED] += step
            times[CLOCK] += step
        else:
            advance(step, share, job, course)
        hazard -= step * others
        running = nodes.lives[0] if end == life else running + (step if alive else 0.0)
        now = end
        if end == border:
            if now >= toggle:
                stopped = not stopped
                toggle = now + (planned if stopped else between)
            if now >= change:
                phase, change = phase + 1, change + job.lasting
                _enter_phase(course.factors[phase], job, nodes)
                waiting, working = nodes.group[0, -1], nodes.group[1, -1]
            if now >= (place + 1) * window:
                clear(found[place], spent)
                place += 1
            continue
        cause = -1
        if end == repaired:
            _repaired(running, nodes, job, under)
        elif end == life:
            row = _end_of_life(rng, now, running, nodes, job)
            cause, row = row, row if row >= 0 else -1 - row
            counts[row, 0] += 1
        elif end == recorded:
            counts[job.rate.size - 1, 0] += 1
            cause = job.rate.size - 1 if _record(running, nodes, job) else -1
        else:
            hazard, row = (
                rng.standard_exponential(),
                _which(nodes.group[int(works)], rng.random() * others),
            )
            counts[row, 0] += 1
            under[row] += job.nodes[row] == 0
            cause = row if _outage(rng, row, now, running, nodes, job) else -1
        if nodes.unit.size > 0:
            share = job.units[count[BROKEN]] / slowest(under, job)
        else:
            share = speed_left(job.total - count[UP], under, job)
        if cause >= 0 and works and job.stops[cause]:
            last = share == 0.0 and not job.back[cause]
            strike(rng, cause, last, job, course)


def new_nodes(
    total: int,
    job: JobRows,
    life: tuple[Floats, Floats],
    repair: tuple[Floats, Floats],
    remaining: Floats,
    record: tuple[Floats, Floats, Integers],
    unit: Integers,
) -> Nodes:
    """Nodes with the lives that remain to them: those of the job first, then the spares."""
    size, load = job.total, float((job.rate * job.repair).sum())
    single = (job.nodes == 1) & (job.shared == SINGLE)
    own = np.where(single, job.rate, 0.0)
    role, end, count = np.full(total, FREE), remaining.copy(), np.zeros(COUNTERS, np.int64)
    role[:size] = ACTIVE
    running = np.argsort(
        end[: total if job.hot else size], kind="stable"
    )  # a sorted array is a heap
    count[[UP, READY, LIVES]] = size, total - size, running.size
    lives, owner = np.full(2 * total + 64, np.inf), np.zeros(2 * total + 64, np.int64)
    lives[: running.size], owner[: running.size] = end[running], running
    pool = np.zeros(max(total, 1), np.int64)
    pool[: total - size] = np.arange(size, total)
    space = total + int(load + 20 * load**0.5) + 1000
    groups = np.where(single, 0.0, job.rate) * np.where(job.nodes > 0, total / size, 1.0)
    awake = np.where(job.nodes > 0, job.hot or unit.size > 0, job.slowdown > 1.0)
    base = np.vstack([groups * awake, groups])
    return Nodes(
        role=role,
        end=end,
        pool=pool,
        tally=count,
        left=np.zeros(total, np.int64),
        lives=lives,
        owner=owner,
        repairs=np.full(space, np.inf),
        part=np.zeros(space, np.int64),
        law=np.concatenate([life[0], repair[0]]),
        observed=life[1],
        mends=repair[1],
        deck=np.arange(total),
        single=np.cumsum(np.append(0.0, own / max(own.sum(), 1e-300))),
        base=base,
        group=np.zeros((2, job.rate.size + 1)),
        begin=record[0],
        finish=record[1],
        node=record[2],
        seat=np.arange(total),
        unit=unit,
        gone=np.zeros(unit.max(initial=-1) + 1, np.int64),
    )
