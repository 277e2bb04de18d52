"""What a timeline without a flush repeats, and how many versions of the weights it keeps."""

import numpy as np
from numpy.typing import NDArray

from relparallel.parallel.steady_state import every_stage
from relparallel.parallel.timeline import Timeline


def iteration_period(timeline: Timeline, micro_batches: int) -> float:
    """Seconds between the starts of consecutive iterations, a mean over their second half.

    The pipeline ran at least three iterations of ``micro_batches`` each, and fills during the first
    half.
    """
    items = int(timeline.item.max()) + 1
    if items < 3 * micro_batches or items % micro_batches:
        needed = "micro_batches must give three or more whole iterations"
        raise ValueError(f"{needed} of {items}, got {micro_batches}")
    starts = np.full(items // micro_batches, np.inf)
    np.minimum.at(starts, timeline.item // micro_batches, timeline.start)
    first = starts.size // 2
    return float((starts[-1] - starts[first]) / (starts.size - 1 - first))


def weight_versions(timeline: Timeline, per_update: int) -> NDArray[np.int64]:
    """How many weight versions each stage needs at once, (stages,); 1 for a schedule that flushes.

    ``per_update`` are the micro-batches whose gradients make one update of the weights: 1 in
    PipeDream and PipeMare, m where an iteration makes one. Every backward pass uses the weights of
    its forward pass, and all micro-batches of one update read the newest version that is there when
    the first of them starts. PipeDream: p - i on stage i (Narayanan et al., SOSP 2019, section
    3.3). PipeDream-2BW with m >= p: 2, on the last stage 1 (ICML 2021, section 3.1). PipeMare keeps
    1 all the same, and lets the versions differ by `weight_delay`. O(k^2) for k updates.

    >>> from relparallel.parallel import simulate_schedule
    >>> weight_versions(simulate_schedule("pipedream", 4, 12), per_update=1).tolist()
    [4, 3, 2, 1]
    """
    return np.array([_most_alive(*uses) for uses in every_stage(timeline, per_update)])


def _most_alive(updates: NDArray[np.float64], read: NDArray[np.int64]) -> int:
    """Most versions alive at the birth of one; ``read[k]`` is that of the k-th update's passes."""
    born = np.r_[0.0, updates[:-1]]
    dies = updates.copy()
    np.maximum.at(dies, read, updates)
    return int(((born <= born[:, None]) & (dies > born[:, None])).sum(axis=1).max())
