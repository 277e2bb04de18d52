"""List scheduling, compiled: an event after the other."""

import heapq
from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)  # type: ignore[misc]
def list_schedule(
    resource: Any,
    duration: Any,
    queue: Any,
    queue_heads: Any,
    heads: Any,
    after: Any,
    lag: Any,
    missing: Any,
    delay: Any,
    credit: Any,
    in_order: bool,
) -> Any:
    """Start times by list scheduling; NaN for tasks that never start."""
    start = np.full(resource.size, np.nan)
    ready = np.zeros(resource.size)  # earliest start by the dependencies met so far
    free = np.zeros(queue_heads.size - 1)  # when each resource has done what it took
    taken = np.zeros(free.size, dtype=np.int64)  # tasks of each resource that have not ended
    next_in_queue = queue_heads[:-1].copy()
    # (time, 0, task): the task ends; (time, 1, resource): the resource looks for work. Ends come
    # first.
    events = [(0.0, 1, r) for r in range(free.size)]
    while len(events) > 0:
        now, looks, which = heapq.heappop(events)
        if looks == 0:
            for edge in range(heads[which], heads[which + 1]):
                task = after[edge]
                missing[task] -= 1
                ready[task] = max(ready[task], now + lag[edge])
                if missing[task] == 0:
                    heapq.heappush(events, (ready[task], 1, resource[task]))
            taken[resource[which]] -= 1
            heapq.heappush(events, (now, 1, resource[which]))
        elif taken[which] < credit[which]:
            end = queue_heads[which + 1]
            position = next_in_queue[which]
            while position < end and not np.isnan(start[queue[position]]):
                position += 1
            next_in_queue[which] = position
            if in_order:
                end = min(end, position + 1)
            for slot in range(position, end):
                task = queue[slot]
                if np.isnan(start[task]) and missing[task] == 0 and ready[task] <= now:
                    start[task] = max(now, free[which])
                    free[which] = start[task] + duration[task]
                    taken[which] += 1
                    heapq.heappush(events, (free[which] + delay[task], 0, task))
                    if taken[which] < credit[which]:
                        heapq.heappush(events, (now, 1, which))
                    break
    return start
