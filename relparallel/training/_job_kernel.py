"""The job in a simulation: where it stands, what a failure does, which bucket each second goes to.

Both simulations drive it: ``advance`` lets time pass without events, ``strike`` lets a failure hit.
The one on counts stands below: exponential failures of all rows superposed, exponential repairs, no
identities; an event costs O(rows), however many nodes there are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from relparallel.training._job import JobRows

BARE: Final[dict[str, Any]] = {"cache": True, "error_model": "numpy", "_nrt": False}
"""Loops that make no array do without counts of references, which cost more than the loops here.

What has one caller is put into it (``inline``): a function of its own takes half a second to compile.
"""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BUCKETS = 8  # of time, as `report.BUCKETS`
PRODUCTIVE, CHECKPOINT, LOST, DETECTION, RESTART, WAITING, DEGRADED, PLANNED = range(BUCKETS)
# of the job: detection left, restart left, left of segment or checkpoint, work done, paid, clock
TIMES = 6
STILL, BACK, LEFT, DONE, PAID, CLOCK = range(TIMES)
# of the job: writing (or computing), place in the pattern, level it comes back from, last cause,
# whether a time-out is in the standstill
PLACES = 5
WRITING, PATTERN, LEVEL, CAUSE, LATE = range(PLACES)


class Course(NamedTuple):
    """How a job goes in a simulation: its calendar, what has been counted, where it stands."""

    pattern: Integers  # highest level that is written after each segment
    between: float  # planned stops [s]
    planned: float  # one of them [s]
    window: float  # s
    found: Floats  # [window, bucket] s
    counts: Integers  # [row, 3] failures, interruptions, returns to the last level
    blame: Floats  # [row] time lost [s]
    times: Floats  # STILL to CLOCK
    places: Integers  # WRITING to LATE
    # [level, 7] work, paid, place in the pattern of the durable checkpoint; the same of one on its
    # way, and when it was written
    marks: Floats
    spent: Floats  # [bucket] since the last window ended [s]
    under: Integers  # [row] parts under repair; nodes of events that come back each on its own
    factors: Floats  # of the rates of shared events, one phase after the other

    @staticmethod
    def of(
        job: JobRows,
        pattern: Integers,
        between: float,
        planned: float,
        window: float,
        windows: int,
        factors: Floats,
    ) -> Course:
        """At the beginning: nothing has happened, no checkpoint is on its way."""
        rows, marks = job.rate.size, np.zeros((job.restart.size, 7))
        marks[:, 6] = np.inf
        return Course(
            pattern=pattern,
            between=between,
            planned=planned,
            window=window,
            found=np.zeros((windows, BUCKETS)),
            counts=np.zeros((rows, 3), np.int64),
            blame=np.zeros(max(rows, 1)),
            times=np.zeros(TIMES),
            places=np.zeros(PLACES, np.int64),
            marks=marks,
            spent=np.zeros(BUCKETS),
            under=np.zeros(rows, np.int64),
            factors=factors,
        )


@njit(**BARE, inline="always")
def _settle(level: int, clock: float, job: JobRows, marks: Floats) -> None:
    """A checkpoint whose delay is over is durable."""
    if clock - marks[level, 6] >= job.delay[level]:
        for part in range(3):
            marks[level, part] = marks[level, 3 + part]
        marks[level, 6] = np.inf


@njit(**BARE, inline="always")
def _written(done: float, paid: float, clock: float, job: JobRows, course: Course) -> None:
    """A checkpoint is finished, a copy for all lower levels too; the next segment begins."""
    pattern, places, marks = course.pattern, course.places, course.marks
    highest, places[PATTERN] = pattern[places[PATTERN]], (places[PATTERN] + 1) % pattern.size
    for level in range(highest + 1):
        _settle(level, clock, job, marks)
        marks[level, 3], marks[level, 4], marks[level, 5] = done, paid, places[PATTERN]
        marks[level, 6] = clock
        _settle(level, clock, job, marks)


@njit(**BARE, inline="always")
def advance(time: float, share: float, job: JobRows, course: Course) -> None:
    """Let time pass: ``share`` of the full speed is left, 0 while the job waits."""
    times, places, spent, blame = course.times, course.places, course.spent, course.blame
    if share == 0.0:
        spent[WAITING] += time
        blame[places[CAUSE]] += time
        times[CLOCK] += time
        return
    for phase in range(2):  # STILL, BACK
        if times[phase] > 0.0 and time > 0.0:
            step = min(time, times[phase])
            times[phase] -= step
            times[CLOCK] += step
            spent[DETECTION + phase] += step
            blame[places[CAUSE]] += step
            time -= step
    if time > 0.0:
        _run(time, share, job, course)


@njit(**BARE)
def _run(time: float, share: float, job: JobRows, course: Course) -> None:
    """Compute and write checkpoints for a time without events."""
    pattern, times, places = course.pattern, course.times, course.places
    marks, spent = course.marks, course.spent
    left, done, paid, clock = times[LEFT], times[DONE], times[PAID], times[CLOCK]
    writing = places[WRITING] == 1
    gained, wrote, idled = 0.0, 0.0, 0.0  # small numbers beside those of the whole run
    plain = marks.shape[0] == 1 and job.delay[0] == 0.0
    while time > 0.0:
        full = left if writing else left / share
        step = min(full, time)
        work = 0.0 if writing else left if full <= time else time * share
        done += work
        gained += work
        idled += 0.0 if writing else step - work  # what the full speed would have done on top
        wrote += step if writing else 0.0
        paid += step if writing else 0.0
        left -= step if writing else work
        clock += step
        time -= step
        if full > step:
            break
        if not writing:
            writing, left = True, job.cost[pattern[places[PATTERN]]]
            continue
        writing, left = False, job.interval
        if plain:
            period = job.interval / share + job.cost[0]
            whole = np.floor(time / period)
            done += whole * job.interval
            gained += whole * job.interval
            wrote += whole * job.cost[0]
            idled += whole * (job.interval / share - job.interval)
            paid += whole * job.cost[0]
            time -= whole * period
            clock += whole * period
            marks[0, 0], marks[0, 1] = done, paid
        else:
            _written(done, paid, clock, job, course)
    spent[PRODUCTIVE] += gained
    spent[CHECKPOINT] += wrote
    spent[DEGRADED] += idled
    times[LEFT], times[DONE], times[PAID], times[CLOCK] = left, done, paid, clock
    places[WRITING] = 1 if writing else 0


@njit(**BARE, inline="always")
def _go_back(level: int, job: JobRows, course: Course) -> None:
    """Restore the newest durable checkpoint of a level or higher; what was done since is lost."""
    times, places, marks = course.times, course.places, course.marks
    spent, blame = course.spent, course.blame
    best = level
    for other in range(marks.shape[0]):
        _settle(other, times[CLOCK], job, marks)
        if other > level and marks[other, 0] > marks[best, 0]:
            best = other
    work, paid = times[DONE] - marks[best, 0], times[PAID] - marks[best, 1]
    spent[PRODUCTIVE] -= work
    spent[CHECKPOINT] -= paid
    spent[LOST] += work + paid
    blame[places[CAUSE]] += work + paid
    times[DONE], times[PAID], places[PATTERN] = marks[best, 0], marks[best, 1], int(marks[best, 2])
    for other in range(marks.shape[0]):
        if (
            marks[other, 6] != np.inf and marks[other, 3] <= times[DONE]
        ):  # arrives before the job goes on
            marks[other, 6] = -np.inf
            _settle(other, times[CLOCK], job, marks)
        marks[other, 6] = np.inf  # what else was on its way is gone
        if other < level:
            for part in range(3):
                marks[other, part] = marks[best, part]
    places[WRITING], times[LEFT] = 0, job.interval


@njit(**BARE)
def strike(rng: Any, row: int, last: bool, job: JobRows, course: Course) -> None:
    """A failure stops the job: it goes back to a checkpoint that survives, or pauses where it is.

    A failure during a standstill begins the standstill anew, from no cheaper level than before, and
    with a time-out where the others meet. ``last``: it leaves nothing in memory to go on with.
    """
    times, places, marks, counts = course.times, course.places, course.marks, course.counts
    places[CAUSE] = row
    counts[row, 1] += 1
    busy = times[STILL] > 0.0 or times[BACK] > 0.0
    returning = busy and places[LEVEL] >= 0
    meets = times[STILL] == 0.0 and times[BACK] > job.pause - job.meeting
    late = busy and not returning and (meets or places[LATE] == 1)
    level = marks.shape[0] - 1 if last else -1
    if job.back[row]:
        level = 0
        while level < marks.shape[0] - 1 and rng.random() >= job.survive[row, level]:
            level += 1
    counts[row, 2] += level == marks.shape[0] - 1
    level = max(level, places[LEVEL]) if returning else level
    if job.back[row] or last:
        _go_back(level, job, course)
    places[LATE] = 1 if late and level < 0 else 0
    times[STILL] = job.detection[row] + (job.timeout if places[LATE] else 0.0)
    times[BACK] = job.restart_fixed + job.restart[level] if level >= 0 else job.pause
    places[LEVEL] = level


@njit(**BARE, inline="always")
def count_missing(down: int, job: JobRows) -> int:
    """Nodes that the job lacks when so many are down."""
    return min(max(down - job.spares, 0), job.total)


@njit(**BARE, inline="always")
def slowest(under: Integers, job: JobRows) -> float:
    """Largest slowdown of the parts under repair."""
    factor = 1.0
    for row in range(under.size):
        if under[row] > 0 and job.slowdown[row] > factor:
            factor = job.slowdown[row]
    return factor


@njit(**BARE, inline="always")
def speed_left(missing: int, under: Integers, job: JobRows) -> float:
    """Share of full speed with nodes missing, parts degraded; the last speed is for more nodes."""
    speed, factor = float(job.speed[min(missing, job.speed.size - 1)]), slowest(under, job)
    return speed if factor == 1.0 else speed / factor


@njit(**BARE, inline="always")
def failure_rates(factor: float, job: JobRows) -> tuple[float, float, float]:
    """Failures per second with all up: of rows that take nodes, that slow the job, and others."""
    own, slow, other = 0.0, 0.0, 0.0
    for row in range(job.rate.size):
        if job.nodes[row] > 0:
            own += job.rate[row] * (factor if job.shared[row] > 0 else 1.0)
        elif job.slowdown[row] > 1.0:
            slow += job.rate[row]
        else:
            other += job.rate[row]
    return own, slow, other


@njit(**BARE, inline="always")
def pick_row(draw: float, up: float, waiting: bool, factor: float, job: JobRows) -> int:
    """Row of a failure; ``draw`` is uniform below the rate of those that can fail now."""
    last = 0
    for row in range(job.rate.size):
        able = up if job.nodes[row] > 0 else 0.0 if waiting and job.slowdown[row] == 1.0 else 1.0
        able *= factor if job.shared[row] > 0 else 1.0
        if able > 0.0:
            last = row
            draw -= job.rate[row] * able
            if draw < 0.0:
                break
    return last


@njit(**BARE, inline="always")
def at(table: Floats, missing: int) -> float:
    """Entry for a number of nodes missing; the last is for more."""
    return float(table[min(missing, table.size - 1)])


@njit(**BARE)
def _reaches(rng: Any, row: int, missing: int, job: JobRows) -> tuple[bool, bool]:
    """Whether nodes that fail beside those missing work for the job, and leave it no speed."""
    width = job.nodes[row]
    if width == 0 or job.back[row]:
        return True, False
    reached = 1.0 - (1.0 - at(job.hit, missing)) ** width
    last = at(job.none, missing + width) - at(job.none, missing)
    if (reached >= 1.0 and last <= 0.0) or last >= 1.0:
        return True, last >= 1.0
    draw = rng.random()
    return draw < reached, draw < last


@njit(**BARE)
def clear(row: Floats, spent: Floats) -> None:
    """Move what was spent into the row of its window."""
    for bucket in range(spent.size):
        row[bucket] += spent[bucket]
        spent[bucket] = 0.0


@njit(**BARE, inline="always")
def _repaired(draw: float, under: Integers, job: JobRows) -> int:
    """Which row's part is repaired; ``draw`` is uniform below the rate of all repairs."""
    last = 0
    for row in range(under.size):
        if under[row] > 0:
            last = row
            draw -= under[row] / job.repair[row]
            if draw < 0.0:
                break
    return last


@njit(**BARE, inline="always")
def _repairs(under: Integers, crews: float, job: JobRows) -> tuple[float, float]:
    """Repairs that end per second with a crew for each, and the share of parts that have one."""
    total, parts = 0.0, 0
    for row in range(under.size):
        total += under[row] / job.repair[row]
        parts += under[row]
    return total, crews / parts if parts > crews else 1.0


@njit(**BARE, inline="always")
def _can_fail(down: int, waiting: bool, job: JobRows) -> float:
    """Nodes that can fail, as a share of those of the job."""
    if job.hot:
        return max(job.total + job.spares - down, 0) / job.total
    return 0.0 if waiting else 1.0 - count_missing(down, job) / job.total


@njit(**BARE)
def run_counts(rng: Any, job: JobRows, course: Course, crews: float) -> None:
    """Go through all windows with so many repairs at once, on counts."""
    between, planned, window = course.between, course.planned, course.window
    found, counts, under = course.found, course.counts, course.under
    times, spent = course.times, course.spent
    times[LEFT] = job.interval
    down, now, place, stopped, share, mending = 0, 0.0, 0, False, job.speed[0], 0.0
    crewed, up, toggle = 1.0, _can_fail(0, share == 0.0, job), between
    factors, phase = course.factors, 0
    change = job.lasting if factors.size > 1 else np.inf
    own, slow, other = failure_rates(factors[0], job)
    failing = own * up + slow + (other if share > 0.0 else 0.0)
    while place < found.shape[0]:
        rate = (0.0 if stopped else failing) + mending * crewed
        step = rng.standard_exponential() / rate if rate > 0.0 else np.inf
        end = min(min(window, toggle), change)
        event = now + step < end
        step = step if event else end - now
        if stopped:
            spent[PLANNED] += step
            times[CLOCK] += step
        else:
            advance(step, share, job, course)
        now = now + step if event else end
        if not event:
            if now >= toggle:
                stopped = not stopped
                toggle = now + (planned if stopped else between)
            if now >= change:
                phase, change = phase + 1, change + job.lasting
                own, slow, other = failure_rates(factors[phase], job)
                failing = own * up + slow + (other if share > 0.0 else 0.0)
            if now >= window:
                clear(found[place], spent)
                place, now, toggle, change = place + 1, 0.0, toggle - window, change - window
            continue
        draw = rng.random() * rate - mending * crewed
        if draw < 0.0:
            row = _repaired((draw + mending * crewed) / crewed, under, job)
            under[row] -= 1
            down -= min(job.nodes[row], 1) if job.apart else job.nodes[row]
        else:
            row = pick_row(draw, up, share == 0.0, factors[phase], job)
            if job.apart and job.nodes[row] > 0:
                under[row] += job.nodes[row]
            else:
                under[row] += job.nodes[row] > 0 or job.slowdown[row] > 1.0
            counts[row, 0] += 1
            missing = count_missing(down, job)
            down += job.nodes[row]
            inside = not job.hot or job.nodes[row] == 0 or rng.random() * up < 1.0
            if inside and share > 0.0 and job.stops[row]:
                stops, last = _reaches(rng, row, missing, job)
                if stops:
                    strike(rng, row, last, job, course)
        share = speed_left(count_missing(down, job), under, job)
        up = _can_fail(down, share == 0.0, job)
        failing = own * up + slow + (other if share > 0.0 else 0.0)
        mending, crewed = _repairs(under, crews, job)
