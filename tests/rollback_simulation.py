"""A job that falls back to checkpoints, event by event and by the letter of the rules."""

import numpy as np
from numba import njit


@njit(cache=True)
def simulate(
    rng, batches, failures, interval, spacing, cost, delay, read, detection, fixed, restart, out
):
    """Fill out[b] = (work, checkpoints kept, detection, restart, time) of batches of ``failures``.

    read[j, k] is the cumulative chance, over causes and then levels, of cause j and reading level
    k; spacing[k] is the number of segments between checkpoints of level k.
    """
    levels, causes = len(cost), len(detection)
    place, reading, cause = 0, -1, 0  # position in segments; the level being read, -1 while running
    for b in range(batches):
        begin = place
        for _ in range(failures):
            life = rng.exponential(1.0)
            out[b, 4] += life
            reach, durable = place, np.empty(levels, np.int64)
            for k in range(levels):
                durable[k] = place - place % spacing[k]
            running = life
            if reading >= 0:
                noticed, back = detection[cause], detection[cause] + fixed[cause] + restart[reading]
                out[b, 2] += min(life, noticed)
                out[b, 3] += max(min(life, back) - noticed, 0.0)
                running = life - back
            draw = rng.random()
            chosen = 0
            while draw >= read[chosen] and chosen < causes * levels - 1:
                chosen += 1
            cause, level = chosen // levels, chosen % levels
            if running < 0:  # struck during the restart
                reading = max(reading, level)
                place -= place % spacing[reading]
                continue
            clock = 0.0
            while True:
                reach += 1
                top = 0
                while top + 1 < levels and reach % spacing[top + 1] == 0:
                    top += 1
                clock += interval + cost[top]
                if clock > running:
                    break
                for k in range(top + 1):
                    if clock + delay[k] <= running:
                        durable[k] = max(durable[k], reach)
            place = durable[level]
            reading = level
        out[b, 0] = (place - begin) * interval
        for k in range(levels):
            own = place // spacing[k] - begin // spacing[k]
            if k + 1 < levels:
                own -= place // spacing[k + 1] - begin // spacing[k + 1]
            out[b, 1] += own * cost[k]


def simulated(rng, checkpointing, causes, interval, every, batches=400, failures=200):
    """Batches of (work, checkpoints kept, detection, restart, time) [s]."""
    rates = np.array([cause.rate for cause in causes])
    levels = checkpointing.levels
    read = np.empty((len(causes), len(levels)))
    for j, cause in enumerate(causes):
        left = rates[j] / rates.sum()
        for k, level in enumerate(levels):
            read[j, k] = left * level.survives.get(cause.level, 1.0)
            left -= read[j, k]
    mean = 1 / rates.sum()

    def scaled(parts, name):
        return np.array([getattr(part, name) for part in parts]) / mean

    out = np.zeros((batches, 5))
    simulate(
        rng,
        batches,
        failures,
        interval / mean,
        np.cumprod(np.array([1, *every])),
        scaled(levels, "cost"),
        scaled(levels, "delay"),
        np.cumsum(read.ravel()),
        scaled(causes, "detection"),
        scaled(causes, "restart"),
        scaled(levels, "restart"),
        out,
    )
    return out * mean


def truncated(u):
    """Mean, variance and third cumulant of an exponential time of mean 1 that is shorter than u."""
    one = 1 - u / np.expm1(u)
    two = 2 * one - u**2 / np.expm1(u)  # moments, by parts
    three = 3 * two - u**3 / np.expm1(u)
    return one, two - one**2, three - 3 * one * two + 2 * one**3


def renewal_cumulants(share, interval, checkpoint, restart):
    """Second and third cumulant of work saved per time, of a cycle between two passed restarts.

    In units of the mean time between failures. A cycle of length X = K period + remainder +
    recovery saves Y = K interval, K geometric: with Z = Y - share X, E[Z^2]/E[X] and (E[Z^3] - 3
    E[Z^2] E[Z X]/E[X])/E[X].
    """
    x = interval + checkpoint
    segments, gain, (_, left2, left3) = (
        np.exp(-x) / np.expm1(-x) ** 2,
        interval - share * x,
        truncated(x),
    )
    tries, again, (mean, variance, third) = np.expm1(restart), np.exp(restart), truncated(restart)
    back2 = tries * variance + tries * again * mean**2
    back3 = tries * (third + 3 * again * mean * variance + again * (2 * again - 1) * mean**3)
    second = (gain**2 * segments + share**2 * (left2 + back2)) / again
    both = gain * x * segments - share * (left2 + back2)
    cubes = gain**3 * segments / np.tanh(x / 2) - share**3 * (left3 + back3)
    return second, (cubes - 3 * second * both) / again
