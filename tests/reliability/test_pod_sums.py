"""Weights of power sums against the states of the switches, one by one."""

from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings, strategies as st

from relparallel.reliability.lumped.arithmetic import Scale
from relparallel.reliability.lumped.pod_partitions import integer_partitions
from relparallel.reliability.lumped.pod_sums import Uplinks

SCALE = Scale(400)
CHANCES = st.sampled_from([Fraction(x) for x in (0, 2.0**-70, 0.125, 0.75, 1 - 2.0**-40, 1)])


def one_by_one(planes, switches, up, miss, sizes, seats, table):
    """Weights by sets of coloured switches and their colour sizes, others down, free or idle."""
    width = range(planes * switches)
    for size in range(len(width) + 1):
        for coloured in combinations(width, size):
            for shape in integer_partitions(size):
                total = 0
                for states in product(["down", "free", "idle"], repeat=len(width) - size):
                    others = iter(states)
                    chance = Fraction(1)
                    for switch in width:
                        inside, outside = sizes[switch // switches], seats[switch // switches]
                        chance *= {
                            "coloured": up * miss**outside,
                            "down": 1 - up,
                            "free": up * miss ** (inside + outside),
                            "idle": up * miss**inside * (1 - miss**outside),
                        }["coloured" if switch in coloured else next(others)]
                    total += chance * table[shape, states.count("free"), states.count("idle")]
                yield total


@st.composite
def cases(draw):
    planes, switches = draw(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)]))
    sizes = draw(st.lists(st.integers(0, 3), min_size=planes, max_size=planes))
    seats = [[draw(st.integers(0, 3 - n)) for n in sizes] for _ in range(2)]
    width = planes * switches
    keys = [
        (shape, free, idle)
        for size in range(width + 1)
        for shape in integer_partitions(size)
        for free in range(width - size + 1)
        for idle in range(width - size - free + 1)
    ]
    entries = st.integers(-8, 8).map(lambda n: Fraction(n, 8))
    table = {key: draw(entries) for key in keys}
    return planes, switches, draw(CHANCES), draw(CHANCES), tuple(sizes), seats, table


@settings(max_examples=80, deadline=None)
@given(case=cases())
def test_weights_are_sums_over_all_states_of_the_switches(case):
    planes, switches, up, miss, sizes, seats, table = case
    some = Uplinks(planes, 3, switches, up, 1 - miss, SCALE)
    found = some.weights(some.uncoloured(sizes, seats), some.entries(table))
    for column, choice in zip(found.T, seats, strict=True):
        assert in_floats(column) == close(
            one_by_one(planes, switches, up, miss, sizes, choice, table)
        )


def in_floats(units):
    return [float(x) / SCALE.one for x in units]


def close(exact):
    return pytest.approx(list(map(float, exact)), rel=1e-13, abs=1e-100)
