from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import comb

import pytest

from relparallel.reliability.lumped.pod_partitions import (
    agreement,
    count_layouts,
    integer_partitions,
    layouts,
    power_sum_weights,
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
            count = [
                [sum(labelled[i][0] == p for i in block) for p in range(planes)] for block in blocks
            ]
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
        assert all(
            sorted(x for block in blocks for x in block) == list(range(n)) for blocks in found
        )


def test_integer_partitions_are_all_of_them():
    assert [len(integer_partitions(n)) for n in range(11)] == [1, 1, 2, 3, 5, 7, 11, 15, 22, 30, 42]
    assert all(
        sum(parts) == 9 and list(parts) == sorted(parts)[::-1] for parts in integer_partitions(9)
    )


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


MISS, EDGE = Fraction(1, 3), Fraction(3, 5)


def by_enumeration(key, terminals, others):
    """Agreement by all states of all links and of the edge switches that are no terminals."""
    sizes, free, idle = key
    colour = (
        [c for c, size in enumerate(sizes) for _ in range(size)] + ["free"] * free + ["idle"] * idle
    )
    edges = terminals + others
    total = Fraction(0)
    for up in product((True, False), repeat=others):
        alive = [True] * terminals + list(up)
        for links in product((True, False), repeat=len(colour) * edges):
            joined = list(range(edges + len(colour)))
            for index, link in enumerate(links):
                e, s = divmod(index, len(colour))
                if link and alive[e]:
                    old, new = joined[e], joined[edges + s]
                    joined = [new if x == old else x for x in joined]
            seen = {}
            for s, own in enumerate(colour):
                seen.setdefault(joined[edges + s], set()).add(own)
            blocks = [seen.get(joined[e], set()) - {"free"} for e in range(terminals)]
            mixed = [own - {"free"} for own in seen.values()]
            if all(len(own) <= 1 for own in mixed) and all(
                own and "idle" not in own for own in blocks
            ):
                mass = Fraction(1)
                for link in links:
                    mass *= 1 - MISS if link else MISS
                for state in up:
                    mass *= EDGE if state else 1 - EDGE
                total += mass
    return total


@pytest.mark.parametrize(
    ("switches", "terminals", "others"),
    [(2, 2, 0), (3, 2, 0), (2, 1, 1), (3, 1, 1), (3, 0, 2), (1, 2, 1)],
)
def test_agreement_is_the_sum_over_all_states(switches, terminals, others):
    table = agreement(switches, terminals, others, EDGE, MISS, MISS)
    for key, chance in table.items():
        assert chance == by_enumeration(key, terminals, others), key


def test_perfect_links_join_all_switches_of_a_pod():
    table = agreement(4, 4, 0, Fraction(1), Fraction(0), Fraction(0))
    assert {key: chance for key, chance in table.items() if chance} == {
        ((coloured,), free, 0): 1 for coloured in range(1, 5) for free in range(5 - coloured)
    }


def test_power_sums_give_the_sum_over_distinct_colours():
    table = agreement(3, 2, 1, EDGE, MISS, MISS)
    weights = power_sum_weights(table)
    # of switch s for colour c
    chance = [[Fraction(1, 2 + s + 3 * c) for c in range(3)] for s in range(3)]
    direct = lumped = Fraction(0)
    for blocks in set_partitions(range(3)):
        sizes = tuple(sorted(map(len, blocks), reverse=True))
        power = Fraction(1)
        for block in blocks:
            power *= sum(
                chance[block[0]][c]
                * (chance[block[1]][c] if len(block) > 1 else 1)
                * (chance[block[2]][c] if len(block) > 2 else 1)
                for c in range(3)
            )
        lumped += weights[sizes, 0, 0] * power
    for colours in product(range(3), repeat=3):
        sizes = tuple(sorted((colours.count(c) for c in set(colours)), reverse=True))
        direct += (
            table[sizes, 0, 0]
            * chance[0][colours[0]]
            * chance[1][colours[1]]
            * chance[2][colours[2]]
        )
    assert lumped == direct
