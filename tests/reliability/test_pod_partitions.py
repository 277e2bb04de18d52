from collections import Counter
from itertools import permutations, product
from math import comb

import pytest

from relparallel.reliability.lumped.pod_partitions import (
    count_layouts,
    integer_partitions,
    layouts,
    set_partitions,
)


def bell(n):
    """Number of partitions of n labelled items, by the triangle of Peirce."""
    row = [1]
    for _ in range(n):
        row = [row[-1], *row]
        for i in range(1, len(row)):
            row[i] += row[i - 1]
    return row[0]


def orbit_sizes(planes, cores):
    """Labelled partitions of every non-empty choice of cores, by their profiles up to order."""
    labelled = list(product(range(planes), range(cores)))
    sizes = Counter()
    for mask in range(1, 1 << len(labelled)):
        chosen = [i for i in range(len(labelled)) if mask >> i & 1]
        for blocks in set_partitions(chosen):
            count = [[sum(labelled[i][0] == p for i in block) for p in range(planes)] for block in blocks]
            images = (
                tuple(sorted(tuple(row[p] for p in order) for row in count))
                for order in permutations(range(planes))
            )
            sizes[min(images)] += 1
    return sizes


def test_set_partitions_are_bell_many_and_distinct():
    for n in range(7):
        found = [frozenset(map(frozenset, blocks)) for blocks in set_partitions(range(n))]
        assert len(found) == len(set(found)) == bell(n)
        assert all(sorted(x for block in blocks for x in block) == list(range(n)) for blocks in found)


def test_integer_partitions_are_all_of_them():
    assert [len(integer_partitions(n)) for n in range(11)] == [1, 1, 2, 3, 5, 7, 11, 15, 22, 30, 42]
    assert all(sum(parts) == 9 and list(parts) == sorted(parts)[::-1] for parts in integer_partitions(9))


@pytest.mark.parametrize(("planes", "cores"), [(1, 1), (1, 6), (2, 2), (3, 2), (2, 3)])
def test_layouts_are_the_orbits_of_labelled_partitions(planes, cores):
    found = Counter()
    for some in layouts(planes, cores):
        for blocks, ways in zip(some.blocks.tolist(), some.ways, strict=True):
            assert [sum(block[p] for block in blocks) for p in range(planes)] == list(some.sizes)
            images = (
                tuple(sorted(tuple(block[p] for p in order) for block in blocks if any(block)))
                for order in permutations(range(planes))
            )
            found[min(images)] += ways
    assert found == orbit_sizes(planes, cores)


@pytest.mark.parametrize(("planes", "cores"), [(1, 20), (2, 4), (3, 3), (5, 2), (4, 3)])
def test_layouts_count_every_labelled_partition_once(planes, cores):
    n = planes * cores
    total = sum(int(some.ways.sum()) for some in layouts(planes, cores))
    assert total == sum(comb(n, m) * bell(m) for m in range(1, n + 1)) == bell(n + 1) - 1


def test_counting_needs_no_list():
    assert [count_layouts(1, n) for n in range(4)] == [1, 2, 4, 7]
    assert count_layouts(4, 4) == 6_074_780
    assert count_layouts(1, 5) == len(orbit_sizes(1, 5)) + 1
