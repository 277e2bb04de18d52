"""Matrix products on a mesh of devices, written operator by operator: strategies and their costs.

A layout says for each axis of the mesh which dimension of a matrix is split along it, -1 for none.
"""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from chapters.s35.operator_strategies import OperatorProblem

FloatArray = NDArray[np.float64]
Layout = tuple[int, ...]
_ROWS, _COLUMNS, _SUMMED = 0, 1, 2


class MeshProgram:
    """Program of matrix products whose strategies `problem` has; methods return operator numbers.

    ``mesh`` has the devices along each axis. A collective of M bytes along an axis of n devices
    costs ``latency + f (n - 1)/n M per_byte``, f being 2 for a sum that every device gets and 1 for
    gathering, or ``gather`` where it is given (Zheng et al., "Alpa", OSDI 2022, section 4.1 and
    tables 1-3).

    A product whose second matrix is too large to move, with the result needed by all:

    A product whose second matrix is too large to move, with the result needed by all:

    >>> program = MeshProgram((4,), latency=[0.0], per_byte=[1.0])
    >>> _ = program.whole(program.product(program.matrix(2, 512), program.matrix(512, 4)))
    >>> from chapters.s35.operator_strategies import operator_plan
    >>> operator_plan(program.problem())[1]  # a gathering of the result: 3/4 of 2 x 4 x 4 bytes
    24.0
    """

    def __init__(
        self,
        mesh: Sequence[int],
        latency: Sequence[float],
        per_byte: Sequence[float],
        gather: float | None = None,
    ) -> None:
        self.mesh, self.latency, self.per_byte, self.gather = mesh, latency, per_byte, gather
        self.shapes: list[tuple[int, int]] = []
        self.layouts: list[list[Layout]] = []
        self.costs: list[FloatArray] = []
        self.edges: dict[tuple[int, int], FloatArray] = {}

    def matrix(self, rows: int, columns: int) -> int:
        """A matrix that is there: split along one axis, or whole everywhere."""
        return self._add((rows, columns), self._simple())

    def product(self, left: int, right: int, *, left_sum: int = 1, right_sum: int = 0) -> int:
        """Product of two matrices summed over a dimension each; axes split rows, columns or sum."""
        shape = (self.shapes[left][1 - left_sum], self.shapes[right][1 - right_sum])
        active = [axis for axis, n in enumerate(self.mesh) if n > 1]
        splits = [
            dict(zip(active, split, strict=True)) for split in permutations(range(3), len(active))
        ]

        def layouts(dimension: dict[int, int]) -> list[Layout]:
            return [
                tuple(dimension.get(split.get(axis, -1), -1) for axis in range(len(self.mesh)))
                for split in splits
            ]

        out = layouts({_ROWS: 0, _COLUMNS: 1})
        summing = [
            sum(self._cost(2, shape, axis, layout) for axis, d in split.items() if d == _SUMMED)
            for split, layout in zip(splits, out, strict=True)
        ]
        number = self._add(shape, out, summing)
        self._join(left, number, layouts({_ROWS: 1 - left_sum, _SUMMED: left_sum}))
        self._join(right, number, layouts({_COLUMNS: 1 - right_sum, _SUMMED: right_sum}))
        return number

    def together(self, *inputs: int) -> int:
        """Operator on entries of matrices lying alike: split along one axis or whole everywhere."""
        number = self._add(self.shapes[inputs[0]], self._simple())
        for one in inputs:
            self._join(one, number, self.layouts[number])
        return number

    def whole(self, matrix: int) -> int:
        """The matrix on every device."""
        number = self._add(self.shapes[matrix], [(-1,) * len(self.mesh)])
        self._join(matrix, number, self.layouts[number])
        return number

    def stored(self, new: int, old: int) -> None:
        """The new matrix takes the place and the layout of the old one."""
        self._join(new, old, self.layouts[old])

    def problem(self) -> OperatorProblem:
        """Strategies and costs so far."""
        return OperatorProblem(nodes=tuple(self.costs), edges=dict(self.edges))

    def _simple(self) -> list[Layout]:
        nowhere = (-1,) * len(self.mesh)
        found = [nowhere]
        for axis, n in enumerate(self.mesh):
            found += [(*nowhere[:axis], d, *nowhere[axis + 1 :]) for d in (0, 1) if n > 1]
        return found

    def _add(
        self, shape: tuple[int, int], layouts: list[Layout], costs: Sequence[float] | None = None
    ) -> int:
        self.shapes.append(shape)
        self.layouts.append(layouts)
        self.costs.append(np.zeros(len(layouts)) if costs is None else np.array(costs, dtype=float))
        return len(self.shapes) - 1

    def _join(self, source: int, target: int, needs: list[Layout]) -> None:
        """Costs of bringing a matrix from each of its layouts to each that is needed."""
        pair = np.array(
            [[self._moving(source, has, need) for need in needs] for has in self.layouts[source]]
        )
        key, pair = ((source, target), pair) if source < target else ((target, source), pair.T)
        self.edges[key] = self.edges.get(key, 0.0) + pair

    def _moving(self, source: int, has: Layout, need: Layout) -> float:
        """Gather along each axis that splits the matrix and must not, or must do so otherwise."""
        axes = [axis for axis, d in enumerate(has) if d not in (-1, need[axis])]
        return float(sum(self._cost(1, self.shapes[source], axis, ()) for axis in axes))

    def _cost(self, factor: int, shape: tuple[int, int], axis: int, layout: Layout) -> float:
        """Cost of a collective along an axis on a matrix of 4-byte numbers with this layout."""
        if factor == 1 and self.gather is not None:
            return self.gather
        n, others = self.mesh[axis], [self.mesh[a] for a, d in enumerate(layout) if d >= 0]
        size = 4 * shape[0] * shape[1] / np.prod(others, initial=1)
        return float(self.latency[axis] + factor * (n - 1) / n * size * self.per_byte[axis])
