"""How the reliability of a two-level BCube answers to the chances of its four classes of parts.

The sum of `relparallel.reliability.lumped.symmetry.bcube_connected` is differentiated term by term. Its terms
are polynomials in fractions, whose derivatives are quotients of differences with a step that is far below the
last digit that is kept.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from relparallel.reliability.chances import Chance
from relparallel.reliability.lumped.arithmetic import Numbers, Scale, exact_up, to_power
from relparallel.reliability.lumped.pod_partitions import layouts
from relparallel.reliability.lumped.pod_sums import signed_ways
from relparallel.reliability.lumped.symmetry import RowTerms, least, row_agrees, row_terms

_STEP: Final = Fraction(1, 2**80)  # of a chance, up or down, whichever is smaller
_SPARE: Final = 64  # bits more than the sum itself needs


def bcube_slopes(
    rows: int, columns: int, row: Chance, column: Chance, row_link: Chance, column_link: Chance
) -> tuple[Chance, tuple[float, float, float, float]] | None:
    """Chance that all servers are joined, and by how much it falls when one part of each class is down.

    Notes
    -----
    Time: two to three times that of the sum.
    """
    r, c, l, m = ups = [exact_up(chance) for chance in (row, column, row_link, column_link)]  # noqa: E741
    tree, cut = least(rows, columns, r, c, l, m)
    if tree == 0 or cut == 0:
        return None
    scale = Scale(Scale.of(columns, rows, min(tree, cut)).bits + _SPARE)
    total, falls = 0, [0, 0, 0, 0]
    for group in layouts(1, columns):
        (inside,) = group.sizes
        blocks, ways, missing = group.blocks[:, :, 0], signed_ways(group), columns - inside
        terms = row_terms(inside, columns, r, l, m)
        one = row_agrees(blocks, terms, scale)
        coloured = scale.array(terms.coloured)[blocks].sum(axis=1)
        others = to_power(one, rows - 1, scale) if rows > 1 else None
        seen = ways @ (one if others is None else scale.times(others, one))
        columns_up = _columns_up(inside, missing, c)
        up = scale.array(columns_up)
        total += int((seen @ up) >> scale.bits)
        if column[1] > 0:
            step = _STEP * min(c, 1 - c)
            there = _quotients(_columns_up(inside, missing, c + step), columns_up, step, scale)
            falls[1] += int((seen @ there) >> scale.bits)
        for kind, x in ((0, row), (2, row_link), (3, column_link)):
            if x[1] == 0:
                continue
            step = _STEP * min(ups[kind], 1 - ups[kind]) if kind else 1 - r  # of r they are linear functions
            moved_ups = [y + step if i == kind else y for i, y in enumerate(ups)]
            after = row_terms(inside, columns, moved_ups[0], moved_ups[2], moved_ups[3])
            change = _change(blocks, coloured, terms, after, step, scale)
            share = change if others is None else scale.times(others, change)
            falls[kind] += rows * int(((ways @ share) @ up) >> scale.bits)
    counts = rows, columns, rows * columns, rows * columns
    slopes = [fall / (count << scale.bits) for fall, count in zip(falls, counts, strict=True)]
    return scale.chance(total), (slopes[0], slopes[1], slopes[2], slopes[3])


def _columns_up(inside: int, missing: int, up: Fraction) -> list[Fraction]:
    """Chances that all columns in blocks are up, and so many of the others."""
    return [
        math.comb(missing, s) * up ** (inside + s) * (1 - up) ** (missing - s) for s in range(missing + 1)
    ]


def _change(  # type: ignore[no-untyped-def]
    blocks, coloured: Numbers, terms: RowTerms, after: RowTerms, step: Fraction, scale: Scale
) -> Numbers:
    """Derivative of how likely a row agrees, by the product rule; ``coloured``: the first factor."""
    faster = _quotients(after.coloured, terms.coloured, step, scale)
    (apart,) = _quotients([after.apart], [terms.apart], step, scale)
    found = np.asarray(scale.times(faster[blocks].sum(axis=1)[:, None], scale.array(terms.rest)) + apart)
    if after.rest == terms.rest:
        return found
    return np.asarray(found + scale.times(coloured[:, None], _quotients(after.rest, terms.rest, step, scale)))


def _quotients(after: list[Fraction], before: list[Fraction], step: Fraction, scale: Scale) -> Numbers:
    """(after - before) / step, from as many more digits as the step takes away."""
    n, d = step.numerator, step.denominator
    wide = Scale(scale.bits + d.bit_length() - n.bit_length() + 2)
    spare = wide.bits - scale.bits
    gaps = (wide.integer(x) - wide.integer(y) for x, y in zip(after, before, strict=True))
    return np.array([(gap * d // n) >> spare for gap in gaps], dtype=object)
