"""What every group of a placement sends over every link, all groups in one compiled loop."""

from __future__ import annotations

import numba
import numpy as np

from relparallel.metrics._paths import spread


@numba.njit(cache=True)
def group_flows(arcs, place, hosts, source, starts, sends):  # type: ignore[no-untyped-def]
    """Links that carry traffic of each group, ascending, and how much."""
    indptr, head, cables, transit = arcs
    total, weight, once = np.zeros(head.size), np.zeros(transit.size), np.ones(1)
    heads, arrived = np.zeros(len(hosts) + 1, np.int64), np.zeros(len(hosts))
    links, flow, found = np.empty(place.size, np.int64), np.empty(place.size), 0
    for g in range(len(hosts)):
        ranks = hosts[g]
        total[:] = 0.0
        for r in range(ranks.size):
            senders = source[starts[r] : starts[r + 1]]
            if senders.size == 0:
                continue
            for s in senders:
                weight[ranks[s]] = sends[ranks[s]]
            root, by_paths = ranks[r : r + 1], np.bool_(True)
            arrived[g] += spread(indptr, head, cables, transit, weight, root, once, by_paths, total)
            for s in senders:
                weight[ranks[s]] = 0.0
        if found + place.size > links.size:
            links = np.concatenate((links, np.empty(links.size + place.size, np.int64)))
            flow = np.concatenate((flow, np.empty(flow.size + place.size)))
        for link in range(place.size):
            if place[link] >= 0 and total[place[link]] != 0.0:
                links[found], flow[found] = link, total[place[link]]
                found += 1
        heads[g + 1] = found
    return links[:found], flow[:found], heads, arrived
