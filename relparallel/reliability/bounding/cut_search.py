"""The search that `cuts` describes: it colours nodes S, T or D and packs paths between S and T."""

from typing import Final

import numba
import numpy as np

_FREE, _S, _T, _D = 0, 1, 2, 3
FEW: Final = 8  # terminals that may be far apart
_AROUND: Final = 64  # nodes to look at around them


@numba.njit(cache=True)
def distances(network, sources, far, queue):  # type: ignore[no-untyped-def]
    """Fill in how many links each node is away from the nearest source."""
    indptr, near = network[0], network[1]
    far[:] = len(far)
    far[sources], head, end = 0, 0, len(sources)
    queue[:end] = sources
    while head < end:
        x = queue[head]
        head += 1
        for y in near[indptr[x] : indptr[x + 1]]:
            if far[y] == len(far):
                far[y] = far[x] + 1
                queue[end] = y
                end += 1


@numba.njit(cache=True)
def _next_path(network, colour, inside, marks, stamp, since, trail):  # type: ignore[no-untyped-def]
    """Short path from S to T whose parts are not used: its last node and link, or -1, -1.

    ``trail`` holds, per node, the node and the link by which it was reached, three queues, of nodes
    by how long a path through them may be at least, the number of links that were looked at, and,
    per node, how far away T was at first: all nodes as far where that is not known.
    """
    indptr, near, link = network[0], network[1], network[2]
    parent, via, queue, steps, far = trail
    used_link, used_node, seen, _ = marks
    head, end, at, nearest = np.zeros(3, np.int64), np.zeros(3, np.int64), 0, far[inside].min()
    for x in inside:
        to = min(far[x] - nearest, 2)
        queue[to, end[to]] = x
        end[to] += 1
    while True:
        if head[at] == end[at]:
            head[at] = end[at] = 0
            at = (at + 1) % 3
            if head[at] == end[at]:
                at = (at + 1) % 3
            if head[at] == end[at]:
                return -1, -1
        x = queue[at, head[at]]
        head[at] += 1
        steps[0] += indptr[x + 1] - indptr[x]
        for k in range(indptr[x], indptr[x + 1]):
            y, kind = near[k], colour[near[k]]
            if kind in (_S, _D) or used_link[link[k]] > since:
                continue
            if kind == _T:
                if colour[x] == _S:
                    continue
                return x, link[k]
            if seen[y] != stamp and used_node[y] <= since:
                seen[y], parent[y], via[y] = stamp, x, link[k]
                to = (at + 1 + far[y] - far[x]) % 3
                queue[to, end[to]] = y
                end[to] += 1


@numba.njit(cache=True)
def _closed(network, colour, outside, marks, stamp, since, trail):  # type: ignore[no-untyped-def]
    """Whether a look around T, which is small, shows that no path is left."""
    indptr, near, link = network[0], network[1], network[2]
    used_link, used_node, _, aim = marks
    queue, steps, head, end = trail[2][0], trail[3], 0, len(outside)
    queue[:end] = outside
    while head < end and end < len(outside) + _AROUND:
        x = queue[head]
        head += 1
        steps[0] += indptr[x + 1] - indptr[x]
        for k in range(indptr[x], indptr[x + 1]):
            y, kind = near[k], colour[near[k]]
            if (
                kind in (_T, _D)
                or used_link[link[k]] > since
                or used_node[y] > since
                or aim[y] == stamp
            ):
                continue
            if kind == _S:
                if colour[x] == _T:
                    continue
                return False
            aim[y] = stamp
            queue[end] = y
            end += 1
    return head == end


@numba.njit(cache=True)
def _pack(network, colour, sides, weight, floor, marks, stamp, trail):  # type: ignore[no-untyped-def]
    """Bound below a colouring, the number of disjoint paths packed, and the node to decide next."""
    up, down, node_up, node_down = network[3], network[4], network[5], network[6]
    used_link, used_node = marks[:2]
    parent, via = trail[:2]
    inside, outside = sides
    bound, paths, first, since = weight, 0, -1, stamp
    while True:
        stamp += 1
        if len(outside) > 0 and _closed(network, colour, outside, marks, stamp, since, trail):
            return bound, paths, first, stamp
        x, last = _next_path(network, colour, inside, marks, stamp, since, trail)
        if x < 0:
            return bound, paths, first, stamp
        works, broken = up[last], down[last]
        used_link[last] = stamp
        while colour[x] != _S:
            broken += works * node_down[x]
            works *= node_up[x]
            broken += works * down[via[x]]
            works *= up[via[x]]
            used_link[via[x]] = stamp
            if node_down[x] > 0.0:
                used_node[x] = stamp
            if paths == 0:
                first = x
            x = parent[x]
        paths += 1
        bound *= min(broken, 1.0)
        if bound < floor:
            return bound, paths, first, stamp


@numba.njit(cache=True)
def _is_minimal(network, colour, root, seen, stamp, trail):  # type: ignore[no-untyped-def]
    """Whether all of T, and a neighbour of each node of D, reach the root outside S and D."""
    indptr, near, queue, steps = network[0], network[1], trail[2][0], trail[3]
    queue[0], seen[root] = root, stamp
    head, end = 0, 1
    while head < end:
        x = queue[head]
        head += 1
        for k in range(indptr[x], indptr[x + 1]):
            y = near[k]
            if colour[y] != _S and colour[y] != _D and seen[y] != stamp:
                seen[y] = stamp
                queue[end] = y
                end += 1
    steps[0] += len(colour) + len(near)
    for x in range(len(colour)):
        if colour[x] == _T and seen[x] != stamp:
            return False
        if colour[x] == _D:
            touches = False
            for k in range(indptr[x], indptr[x + 1]):
                touches |= seen[near[k]] == stamp
            if not touches:
                return False
    return True


@numba.njit(cache=True)
def _flat(parts):  # type: ignore[no-untyped-def]
    """A list as an array."""
    flat = np.empty(len(parts), np.int64)
    for i in range(len(parts)):
        flat[i] = parts[i]
    return flat


@numba.njit(cache=True)
def _forced(network, colour, inside, failed):  # type: ignore[no-untyped-def]
    """The links between S and T and the nodes of D, of which there are ``failed``."""
    indptr, near, link, up = network[0], network[1], network[2], network[3]
    found = numba.typed.List.empty_list(numba.int64)
    for x in inside:
        for k in range(indptr[x], indptr[x + 1]):
            if colour[near[k]] == _T:
                found.append(link[k])
    for x in range(len(colour) if failed > 0 else 0):
        if colour[x] == _D:
            found.append(len(up) + x)
    return found


@numba.njit(cache=True)
def _paint(network, colour, node, kind, weight, size):  # type: ignore[no-untyped-def]
    """Give a node its colour; return the probability and the number of the forced parts with it."""
    indptr, near, link, down, node_down = network[0], network[1], network[2], network[4], network[6]
    colour[node] = kind
    if kind == _D:
        return weight * node_down[node], size + 1
    other = _T if kind == _S else _S
    for k in range(indptr[node], indptr[node + 1]):
        if colour[near[k]] == other:
            weight *= down[link[k]]
            size += 1
    return weight, size


@numba.njit(cache=True)
def search(network, terminals, floors, limits):  # type: ignore[no-untyped-def]
    """List cuts, depth first; the stack holds one row per decided node."""
    n, m, (floor, tiny), (limit, max_steps, max_cuts) = (
        len(network[0]) - 1,
        len(network[3]),
        floors,
        limits,
    )
    colour, inside, outside = np.zeros(n, np.int8), np.empty(n, np.int64), np.empty(n, np.int64)
    marks = (
        np.zeros(m, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )
    trail = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty((3, n), np.int64),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
    )
    node, kind = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    weight, size = np.empty(n + 1), np.empty(n + 1, np.int64)
    parts = numba.typed.List.empty_list(numba.int64)
    starts, chances = [0], [0.0]
    rest, visited, stopped = 0.0, 0, False
    stamp, failed = np.int64(0), np.int64(0)  # literals would compile all that is called once more
    for i in range(1, len(terminals)):  # every search leaves all nodes but these without a colour
        colour[terminals[i - 1]] = _T
        inside[0], depth, count, outer = terminals[i], 0, 1, 0
        if len(terminals) <= FEW:  # else some of T is always close
            outside[:i], outer = terminals[:i], i
            distances(network, outside[:i], trail[4], trail[2][0])
        weight[0], size[0] = _paint(network, colour, terminals[i], np.int64(_S), 1.0, np.int64(0))
        entering = True
        while entering or depth > 0:
            if entering:
                visited += 1
                stopped |= trail[3][0] >= max_steps or len(chances) > max_cuts
                bar = np.inf if stopped else floor
                bound, paths, first, entering = weight[depth], 1, -1, False
                # later on it costs too much
                if depth == 0 or trail[3][0] < max_steps + max_steps // 4:
                    sides = inside[:count], outside[:outer]
                    bound, paths, first, stamp = _pack(
                        network, colour, sides, weight[depth], min(bar, floor), marks, stamp, trail
                    )
                if paths == 0 and not stopped:
                    stamp += 1
                    if _is_minimal(network, colour, terminals[0], marks[2], stamp, trail):
                        parts.extend(_forced(network, colour, inside[:count], failed))
                        starts.append(len(parts))
                        chances.append(weight[depth])
                elif bound < bar or bound == 0.0 or size[depth] + paths > limit:
                    rest += max(bound, tiny) if weight[depth] > 0.0 else 0.0
                else:
                    node[depth], kind[depth] = first, _FREE
                    depth += 1
            v = node[depth - 1]
            if depth > 0:  # the next colour of the last decided node
                count -= kind[depth - 1] == _S
                outer -= kind[depth - 1] == _T and len(terminals) <= FEW
                failed -= kind[depth - 1] == _D
                colour[v] = _FREE
                kind[depth - 1] += 1
                if kind[depth - 1] > (_D if network[6][v] > 0.0 else _T):
                    depth -= 1
                    continue
                weight[depth], size[depth] = _paint(
                    network, colour, v, kind[depth - 1], weight[depth - 1], size[depth - 1]
                )
                failed += kind[depth - 1] == _D
                if kind[depth - 1] == _S:
                    inside[count] = v
                    count += 1
                elif kind[depth - 1] == _T and len(terminals) <= FEW:
                    outside[outer] = v
                    outer += 1
                entering = True
    return (
        np.array(starts),
        _flat(parts),
        np.array(chances)[1:],
        rest,
        visited,
        trail[3][0],
        stopped,
    )
