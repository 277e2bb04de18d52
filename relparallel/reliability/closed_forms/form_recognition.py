"""The closed form for a question, found by the network's wiring and probabilities, not its name.

A form needs interchangeable parts: `match_fabric` sees whether there are tiers of them. Which form
applies then depends on the parts that fail and on the terminals; where none does, the reason is
said.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from relparallel.reliability.closed_forms.alike_pods import Fabric, Match, Pods, match_fabric
from relparallel.reliability.closed_forms.fat_tree_forms import pods_apart
from relparallel.reliability.closed_forms.random_graph_connectivity import (
    MOST_LINKS,
    sides_connected,
)
from relparallel.reliability.frontier.compiled_sweep import NotExactError
from relparallel.reliability.probability import CERTAIN, Chance, parallel, part, series
from relparallel.reliability.problem import Problem
from relparallel.reliability.result import Reliability, exactly
from relparallel.topology import Topology

_MOST_PODS: Final = 32  # whose partitions are all summed, so that the answer is exact


class AnyPath(NamedTuple):
    """What decides whether terminals are joined over any path, and pods with and without terminals.

    "one": nothing but their only switch; "pod": any aggregation switch; "planes" and "cores": a
    bipartite graph of pods and those; "partitions": all ways to split the pods of a fat-tree.
    """

    decides: Literal["one", "pod", "planes", "cores", "partitions"]
    near: Pods
    far: Pods
    name: str


def read_form(topology: Topology, problem: Problem) -> Reliability:
    """Answer a question by the closed form that applies."""
    if len(problem.terminals) == 1:
        up, down = problem.node[problem.terminals[0]].tolist()
        return exactly(up, down, "closed_form", reason="the one terminal")
    match = match_fabric(topology, problem)
    if match is None:
        raise NotExactError("its parts form no fabric of tiers that are alike")
    fabric, path = match.fabric, over_any_path(match)
    chances = [_connected(fabric, path), match.outside(problem)]
    if path.decides == "cores" or match.two_tiers:
        chances += [path.near.aggregation] * path.near.copies
    return exactly(*series(*chances), "closed_form", reason=path.name)


def over_any_path(match: Match) -> AnyPath:
    """What decides over any path."""
    fabric, planes, cores = match.fabric, match.fabric.planes, match.fabric.cores
    near, idle = _alike(fabric.terminal_pods), [pods for pods in fabric.pods if not pods.terminals]
    far = _alike(idle) if idle else near._replace(copies=0)
    if match.two_tiers:
        return AnyPath(
            "one" if near.copies == 1 else "cores",
            near,
            far,
            "the one leaf"
            if near.copies == 1
            else f"components among {near.copies + far.copies} leaves and {planes * cores} spines",
        )
    if sum(_terminals_of_pods(fabric)) == 1:
        return AnyPath("one", near, far, "the one edge switch")
    below = {chance for pods in fabric.pods for chance in (pods.edge_link, pods.other_link)}
    if below != {CERTAIN} or any(pods.edge != CERTAIN for pods in idle):
        raise NotExactError(
            "cables between edge and aggregation switches, and edge switches of pods without a "
            "terminal, "
            "must not fail for a closed form over any path"
        )
    if near.copies == 1:
        return AnyPath("pod", near, far, f"{planes} planes of one pod")
    text = f"{near.copies + far.copies} pods and {planes} planes"
    if near.core_link == far.core_link == CERTAIN:
        return AnyPath("planes", near, far, f"components among {text}")
    if fabric.aggregations > 1:
        raise NotExactError(
            "pods must have one aggregation switch per plane where cables to cores fail"
        )
    # pods and single cores are the sides
    if planes == 1 or near.aggregation == far.aggregation == CERTAIN:
        name = f"components among {near.copies + far.copies} pods and {planes * cores} cores"
        return AnyPath("cores", near, far, name)
    if planes != cores or near.copies + far.copies != 2 * cores or 2 * cores > _MOST_PODS:
        raise NotExactError(
            f"pods must be those of a k-ary fat-tree with k <= {_MOST_PODS} where cables to cores "
            "fail, "
            f"got {text} of {cores} cores"
        )
    return AnyPath("partitions", near, far, f"partitions of {text} of {cores} cores")


def _connected(fabric: Fabric, path: AnyPath) -> Chance:
    """Probability that the terminal pods are joined; leaves and hosts are left to the caller."""
    near, far = path.near, path.far
    if path.decides == "one":
        return CERTAIN
    if path.decides == "pod":
        return parallel(*[near.aggregation] * (fabric.planes * fabric.aggregations))
    if (near.aggregation, near.core_link) != (far.aggregation, far.core_link):
        raise NotExactError("pods with and without terminals must be alike for a closed form")
    if path.decides == "partitions":
        return _partitions(fabric, path)
    columns = fabric.planes if path.decides == "planes" else fabric.planes * fabric.cores
    if (near.copies + far.copies) * columns > MOST_LINKS:
        raise NotExactError(
            f"sides must have at most {MOST_LINKS} pairs of vertices for a closed form, "
            f"got {near.copies + far.copies} and {columns} vertices"
        )
    sides = (near.copies, far.copies), (0, columns)
    if path.decides == "cores":
        return sides_connected(*sides, near.core_link, far.aggregation, fabric.core)
    plane, link = (
        parallel(*[fabric.core] * fabric.cores),
        parallel(*[near.aggregation] * fabric.aggregations),
    )
    return sides_connected(*sides, link, CERTAIN, plane)


def _partitions(fabric: Fabric, path: AnyPath) -> Chance:
    """The same where the pods of a fat-tree are split in all ways."""
    chances = fabric.core, path.near.aggregation, path.near.core_link
    if any(chance != part(chance[0]) for chance in chances):
        raise NotExactError("chances of failure must not be smaller than the last digit of 1 - up")
    pods = path.near.copies + path.far.copies
    found = pods_apart(pods, chances[0][0], chances[1][0], chances[2][0], path.near.copies)
    if found.lower < found.upper:
        raise NotExactError(f"failures are too frequent for the partitions of {pods} pods")
    return found.together, found.upper


def _alike(kinds: Sequence[Pods]) -> Pods:
    """All these pods as one kind."""
    if len({(kind.aggregation, kind.core_link, kind.edge_link) for kind in kinds}) > 1:
        raise NotExactError("pods must be alike for a closed form")
    return kinds[0]._replace(copies=sum(kind.copies for kind in kinds))


def _terminals_of_pods(fabric: Fabric) -> list[int]:
    """Edge switches with terminals of each pod that has some."""
    return [pods.terminals for pods in fabric.terminal_pods for _ in range(pods.copies)]
