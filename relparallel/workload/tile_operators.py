"""Loop nests over tensors whose indices are axes, or sums of axes with factors.

A tensor is written ``C[m,n]``; sums slide: a convolution reads ``X[c,2y+r,2x+s]``.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from relparallel._checks import each, instance, real, record, require_int

_TENSOR: Final = re.compile(r"(\w+)\[([^\[\]]*)\]")
_TERM: Final = re.compile(r"(\d*)([a-z]\w*)")
Dimension = tuple[tuple[int, str], ...]


class _Tensor(NamedTuple):
    name: str
    dimensions: tuple[Dimension, ...]


def _tensor(name: str, text: str, sizes: Mapping[str, int]) -> _Tensor:
    """Read ``X[c,2y+r]``."""
    outside = _TENSOR.fullmatch(text)
    terms = (
        [[_TERM.fullmatch(term) for term in entry.split("+")] for entry in outside[2].split(",")]
        if outside
        else []
    )
    if outside is None or not all(term and term[2] in sizes for entry in terms for term in entry):
        raise ValueError(f"{name} must be written as X[c,2y+r] with axes of {sorted(sizes)}, got {text!r}")
    read = tuple(tuple((int(t[1] or 1), t[2]) for t in entry if t) for entry in terms)
    return _Tensor(outside[1], read)


@record(eq=False, slots=False)
class TileOperator:
    """A loop nest that writes one tensor.

    Parameters
    ----------
    name : str
    writes : str
        The tensor it makes, ``"C[m,n]"``; its axes are the ones that are tiled.
    reads : tuple of str
        The tensors it needs, ``("A[m,k]", "B[k,n]")``.
    sizes : mapping of str to int
        Extent of every axis.
    flops : float
        Operations of a point of the nest.

    Examples
    --------
    >>> TileOperator(name="row sums", writes="S[m]", reads=("A[m,k]",), sizes={"m": 64, "k": 32}).axes
    ('m',)
    """

    name: str = instance(str)
    writes: str = instance(str)
    reads: tuple[str, ...] = each(str)
    sizes: Mapping[str, int] = instance(Mapping)
    flops: float = real(at_least=0, default=2.0)

    def __post_init__(self) -> None:
        for axis, size in self.sizes.items():
            require_int(**{f"sizes[{axis!r}]": size}, at_least=1)
        if self.inputs and any(len(entry) > 1 or entry[0][0] > 1 for entry in self.output.dimensions):
            raise ValueError(f"writes must have single axes, got {self.writes!r}")

    @property
    def output(self) -> _Tensor:
        """What it writes."""
        return _tensor("writes", self.writes, self.sizes)

    @property
    def inputs(self) -> tuple[_Tensor, ...]:
        """What it reads, read from its text."""
        return tuple(_tensor("reads", text, self.sizes) for text in self.reads)

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes of the output."""
        return tuple(entry[0][1] for entry in self.output.dimensions)


def span(entry: Dimension, sizes: Mapping[str, int]) -> int:
    """Entries that a sliding index runs over."""
    return 1 + sum(factor * (sizes[axis] - 1) for factor, axis in entry)
