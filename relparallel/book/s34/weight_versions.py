"""What a timeline without a flush repeats, and how many versions of the weights it keeps."""

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_int
from relparallel.parallel.steady_state import every_stage
from relparallel.parallel.timeline import Timeline


def iteration_period(timeline: Timeline, micro_batches: int) -> float:
    """Return the seconds between the starts of iterations that follow each other.

    Parameters
    ----------
    timeline, micro_batches : Timeline, int
        A pipeline that ran at least three iterations of m micro-batches; it fills during the first half of
        them.

    Returns
    -------
    float
        Seconds per iteration, averaged over the second half.

    Examples
    --------
    >>> from relparallel.parallel import simulate_schedule
    >>> runs = [simulate_schedule(name, 4, 8, iterations=4) for name in ("1f1b", "zb_2p", "pipedream")]
    >>> [iteration_period(run, micro_batches=8) for run in runs]
    [33.0, 24.0, 24.0]
    """
    require_instance(Timeline, timeline=timeline)
    require_int(micro_batches=micro_batches, at_least=1)
    items = int(timeline.item.max()) + 1
    if items < 3 * micro_batches or items % micro_batches:
        raise ValueError(
            f"micro_batches must give three or more whole iterations of {items}, got {micro_batches}"
        )
    starts = np.full(items // micro_batches, np.inf)
    np.minimum.at(starts, timeline.item // micro_batches, timeline.start)
    first = starts.size // 2
    return float((starts[-1] - starts[first]) / (starts.size - 1 - first))


def weight_versions(timeline: Timeline, per_update: int) -> NDArray[np.int64]:
    """Return how many versions of its weights each stage needs at once.

    Parameters
    ----------
    timeline, per_update : Timeline, int
        A simulated pipeline, and micro-batches whose gradients make one update of the weights: 1 in PipeDream
        and PipeMare, m where an iteration makes one.

    Returns
    -------
    numpy.ndarray
        int64, shape (stages,); 1 for a schedule that flushes. Every backward pass uses the weights of its
        forward pass, and all micro-batches of one update read the newest version that is there when the first
        of them starts. PipeDream: p - i on stage i (Narayanan et al., SOSP 2019, section 3.3). PipeDream-2BW
        with m >= p: 2, on the last stage 1 (ICML 2021, section 3.1). PipeMare keeps 1 all the same, and lets
        the versions differ by `weight_delay`. O(k^2) for k updates.

    Examples
    --------
    >>> from relparallel.parallel import simulate_schedule
    >>> weight_versions(simulate_schedule("pipedream", 4, 12), per_update=1).tolist()
    [4, 3, 2, 1]
    """
    return np.array([_most_alive(*uses) for uses in every_stage(timeline, per_update)])


def _most_alive(updates: NDArray[np.float64], read: NDArray[np.int64]) -> int:
    """Most versions alive at the birth of one; ``read[k]`` is the version of the k-th update's passes."""
    born = np.r_[0.0, updates[:-1]]
    dies = updates.copy()
    np.maximum.at(dies, read, updates)
    return int(((born <= born[:, None]) & (dies > born[:, None])).sum(axis=1).max())
