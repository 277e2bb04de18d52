"""Compressors of gradients: what they send, how many bits that takes, and the exact error.

C(v) is what the receiver has of a vector v of n numbers. An unbiased compressor has E C(v) = v; one
that contracts by d > 0 has E |C(v) - v|**2 <= (1 - d) |v|**2 for every v. A number takes 32 bits as
it is.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import bare, require_number
from relparallel.parallel.algorithms import tree_edges
from relparallel.workload.precision import FORMATS, NumberFormat

Vector = NDArray[np.float64]
_FLOAT: Final = 32  # bits


class Message(NamedTuple):
    """What is sent of a vector: numbers at some of its positions, and the bits that they take."""

    size: int
    positions: NDArray[np.int64]
    values: Vector
    bits: float

    def decode(self) -> Vector:
        """What the receiver has: zero where nothing was sent."""
        vector = np.zeros(self.size)
        vector[self.positions] = self.values
        return vector


class Compressor(NamedTuple):
    """A way to send less of a vector: name, how it writes messages, bound and size of its error.

    ``contracts`` goes from n to a d that is proved for every vector, below 0 where the error can
    exceed the vector; ``error`` from a vector to E |C(v) - v|**2, and is None where nothing is
    random.
    """

    name: str
    write: Callable[[Vector, Any], Message]
    contracts: Callable[[int], float]
    error: Callable[[Vector], float] | None = None

    def encode(self, vector: ArrayLike, rng: np.random.Generator | None = None) -> Message:
        """What is sent; its ``decode()`` is C(v). A random compressor needs ``rng``."""
        return self.write(_vector(vector), rng)

    def variance(self, vector: ArrayLike) -> float:
        """E |C(v) - v|**2, exact: in closed form, or the squared error where nothing is random."""
        v = _vector(vector)
        return float(
            self.error(v) if self.error else np.sum((self.write(v, None).decode() - v) ** 2)
        )

    def contraction(self, size: int) -> float:
        """A proved d: E |C(v) - v|**2 <= (1 - d) |v|**2 for all v of this size; more may hold."""
        return float(self.contracts(size))


def qsgd(levels: int) -> Compressor:
    """QSGD.

    magnitudes rounded at random to multiples of the 2-norm over s levels, gaps and levels
    Elias-coded.

    Unbiased; the variance (|v|/s)**2 sum f (1 - f), f = frac(s |v_i|/|v|), is at most min(n/s**2,
    sqrt(n)/s) |v|**2. Alistarh et al., NeurIPS 2017, lemma 3.1.

    >>> round(qsgd(levels=1).variance(np.ones(10_000)) / 10_000, 9)  # of |v|**2
    99.0
    """
    s = levels

    def bits(positions: NDArray[np.int64], found: Vector, _: int) -> float:
        return float(
            (elias_lengths(np.diff(positions, prepend=-1)) + 1 + elias_lengths(found)).sum()
        )

    return _rounding(f"QSGD({s})", s, _norm, bits, lambda n: 1 - min(n / s**2, np.sqrt(n) / s))


def terngrad() -> Compressor:
    """TernGrad.

    a number becomes plus or minus the largest m with probability |v_i|/m, else 0; log2 3 bits each.

    Unbiased; the variance sum (m |v_i| - v_i**2) is at most (sqrt(n) - 1)/2 |v|**2. Wen et al.,
    NeurIPS 2017, equations 3 and 4.

    >>> terngrad().variance([1.0, -0.5])
    0.25
    """
    return _rounding(
        "TernGrad",
        1,
        scale=lambda v: np.abs(v).max(),
        bits=lambda positions, found, n: n * np.log2(3),
        contracts=lambda n: (3 - np.sqrt(n)) / 2,
    )


def one_bit() -> Compressor:
    """1-bit SGD's quantiser: the sign, read as the mean of the numbers that share it.

    Biased, with at most (1 - 1/n) |v|**2 of error: it needs `ErrorFeedback`. Seide et al.,
    Interspeech 2014, section 3.

    >>> one_bit().encode([1.0, 3.0, -4.0]).decode().tolist()
    [2.0, 2.0, -4.0]
    """

    def write(v: Vector, _: Any) -> Message:
        values, up = np.zeros(v.size), v >= 0
        for group in (up, ~up):
            values[group] = v[group].mean() if group.any() else 0.0
        return Message(v.size, np.arange(v.size), values, v.size + 2 * _FLOAT)

    return Compressor(name="1-bit SGD", write=write, contracts=lambda n: 1 / n)


def top_k(density: float) -> Compressor:
    """A share ``density`` = k/n in (0, 1] of the numbers, the largest, as they are, with positions.

    Biased, with at most (1 - k/n) |v|**2 of error. With `ErrorFeedback` it is gradient dropping
    (Aji and Heafield, EMNLP 2017: density 0.01) and Mem-SGD (Stich et al., NeurIPS 2018, definition
    2.1).

    >>> top_k(0.25).encode([1.0, -3.0, 2.0, 0.0]).decode().tolist()
    [0.0, -3.0, 0.0, 0.0]
    """
    p = density

    def write(v: Vector, _: Any) -> Message:
        positions = _largest(np.abs(v), _kept(p, v.size))
        bits = positions.size * (_FLOAT + (v.size - 1).bit_length())
        return Message(v.size, positions, v[positions], bits)

    return Compressor(name=f"top-k({p:g})", write=write, contracts=lambda n: _kept(p, n) / n)


def random_k(density: float) -> Compressor:
    """A share ``density`` = k/n of numbers at random positions, which both ends draw from one seed.

    Biased; E |C(v) - v|**2 = (1 - k/n) |v|**2. Stich et al., NeurIPS 2018, definition 2.1.

    >>> random_k(0.5).variance([1.0, 2.0])
    2.5
    """
    p = density

    def write(v: Vector, rng: np.random.Generator) -> Message:
        positions = np.sort(rng.choice(v.size, _kept(p, v.size), replace=False))
        return Message(v.size, positions, v[positions], _FLOAT * positions.size)

    return Compressor(
        name=f"random-k({p:g})",
        write=write,
        contracts=lambda n: _kept(p, n) / n,
        error=lambda v: (1 - _kept(p, v.size) / v.size) * float(v @ v),
    )


def sparse_binary(density: float) -> Compressor:
    """Sparse binary compression: one value at largest numbers of one sign, positions Golomb-coded.

    Of the k largest positive and the k smallest negative numbers (``density`` = k/n), those of the
    larger sum are sent, as their mean. Biased, with at most (1 - 1/(k n)) |v|**2 of error. Sattler
    et al., IJCNN 2019.

    >>> sparse_binary(0.5).encode([1.0, -3.0, 2.0, 0.0]).decode().tolist()
    [1.5, 0.0, 1.5, 0.0]
    """
    p = density
    b = int(golomb_parameter(p))

    def write(v: Vector, _: Any) -> Message:
        ends = [(sign, _largest(sign * v, _kept(p, v.size))) for sign in (1, -1)]
        up, down = (at[sign * v[at] > 0] for sign, at in ends)
        at = up if v[up].sum() >= -v[down].sum() else down
        bits = _FLOAT + float(golomb_lengths(np.diff(at, prepend=-1), b).sum())
        return Message(v.size, at, np.full(at.size, v[at].sum() / max(at.size, 1)), bits)

    return Compressor(name=f"SBC({p:g})", write=write, contracts=lambda n: 1 / (n * _kept(p, n)))


def reduced_precision(number: str = "fp16", scale: float = 1.0) -> Compressor:
    """Rounding to "fp16", "bf16", "fp8" or "fp32", after a multiplication that the receiver undoes.

    The loss ``scale`` keeps small numbers from becoming 0, and drives large ones to infinity. The
    nearest number, ties to even. Contracts by 1 - 4**-(m + 1), m being the bits of the mantissa, if
    no number under- or overflows. Micikevicius et al., ICLR 2018, section 3.

    >>> [reduced_precision("fp16", s).encode([1e-8, 1.0]).values.round(10).tolist() for s in (1, 1024)]
    [[0.0, 1.0], [1e-08, 1.0]]
    """
    form = FORMATS[number]

    def write(v: Vector, _: Any) -> Message:
        near = _rounded(scale * v, form) / scale
        return Message(v.size, np.arange(v.size), near, 8.0 * form.bytes * v.size)

    contracts = 1 - 4.0 ** -(form.mantissa_bits + 1)
    return Compressor(name=f"{number} x {scale:g}", write=write, contracts=lambda n: contracts)


def global_top_k(vectors: ArrayLike, kept: int) -> Vector:
    """The sum of all workers' vectors, over a tree that passes on only the k largest sums.

    ``vectors`` has the shape (workers, n). What gTop-k broadcasts, not always the largest of the
    whole sum. A message is k values and k positions; its rounds are those of
    ``relparallel.parallel.collective("all_reduce", "tree", workers, 2 * k)``. Shi et al., ICDCS
    2019.

    >>> global_top_k([[3.0, 0.0, 2.0], [-1.0, 4.0, 0.0]], kept=1).tolist()
    [0.0, 4.0, 0.0]
    """
    rows = np.asarray(vectors, dtype=float)
    keep = top_k(kept / rows.shape[1])
    held = [keep.write(row, None).decode() for row in rows]
    for children, parents in tree_edges(len(held), len(held)):
        for child, parent in zip(children, parents, strict=True):
            held[parent] = keep.write(held[parent] + held[child], None).decode()
    return held[0]


def _rounding(
    name: str,
    s: int,
    scale: Callable[[Vector], Any],
    bits: Callable[..., float],
    contracts: Callable[[int], float],
) -> Compressor:
    """Magnitudes over a scale, rounded at random to multiples of 1/s so that the mean is right."""

    def exact(v: Vector) -> tuple[float, Vector]:
        whole = float(scale(v)) or 1.0
        return whole / s, np.minimum(np.abs(v) / whole * s, s)  # never above s by a rounding

    def write(v: Vector, rng: np.random.Generator) -> Message:
        step, levels = exact(v)
        found = np.floor(levels) + (rng.random(v.size) < levels % 1)
        at = np.flatnonzero(found)
        sent = float(_FLOAT + bits(at, found[at], v.size))
        return Message(v.size, at, np.sign(v[at]) * found[at] * step, sent)

    def error(v: Vector) -> float:
        step, levels = exact(v)
        spread = step * float(np.sqrt((levels % 1) @ (1 - levels % 1)))
        return spread * spread

    return Compressor(name=name, write=write, contracts=contracts, error=error)


def _norm(v: Vector) -> float:
    """2-norm, of numbers whose squares are too large or too small too."""
    largest = float(np.abs(v).max(initial=0.0)) or 1.0
    return largest * float(np.linalg.norm(v / largest))


def _kept(density: float, size: int) -> int:
    """How many numbers are sent."""
    require_number(density=density, above=0, at_most=1)
    return max(1, round(density * size))


def _largest(keys: Vector, k: int) -> NDArray[np.int64]:
    """Positions of the k largest keys, in order."""
    return np.sort(np.argpartition(keys, keys.size - k)[keys.size - k :])


def _rounded(v: Vector, form: NumberFormat) -> Vector:
    """The nearest numbers of a format; infinity from half a step above its largest on."""
    exponent = np.maximum(np.frexp(v)[1] - 1.0, np.log2(form.smallest_normal))
    step = 2.0 ** (exponent - form.mantissa_bits)
    near = np.rint(v / step) * step
    return np.where(np.abs(near) > form.largest, np.copysign(np.inf, v), near)


def _vector(vector: ArrayLike) -> Vector:
    """A vector of numbers, not rows of them, whose sizes would count otherwise."""
    v = np.asarray(vector, dtype=float)
    if v.ndim != 1:
        raise ValueError(f"vector must have one dimension, got shape {v.shape}")
    return v


_GOLDEN: Final = (np.sqrt(5) + 1) / 2


def golomb_bits(density: ArrayLike) -> Any:
    """Mean bits of the position of a sent number, Golomb-coded by the gap before it.

    A share p in (0, 1) of the numbers is sent, each independently: b + 1/(1 - (1 - p)**2**b) with b
    = 1 + floor(log2(log(phi - 1)/log(1 - p))), at least 0, and the golden ratio phi. Sattler et
    al., "Sparse Binary Compression", IJCNN 2019, equation 5.

    >>> round(golomb_bits(density=0.001), 3)
    11.495
    """
    p = np.asarray(density)
    b = golomb_parameter(p)
    return bare(b - 1 / np.expm1(2.0**b * np.log1p(-p)))


def golomb_parameter(density: Any) -> NDArray[np.float64]:
    """Bits b of the remainder: gaps are counted in units of 2**b."""
    units = np.log(_GOLDEN - 1) / np.log1p(-np.asarray(density))
    return np.asarray(np.maximum(1 + np.floor(np.log2(units)), 0.0))


def golomb_lengths(gaps: NDArray[np.int64], b: int) -> NDArray[np.int64]:
    """Bits of every gap from 1 on: the whole units in ones, a zero, the rest in b bits."""
    return np.asarray((gaps - 1) // 2**b + 1 + b)


def elias_lengths(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Bits of every number from 1 on: binary digits, before them how many less one, ..., a zero."""
    left = np.asarray(numbers, dtype=np.float64)
    bits = np.ones(left.shape, dtype=np.int64)
    while np.any(left > 1):  # Elias, IEEE Trans. Inf. Theory 21(2), 1975
        digits = np.where(left > 1, np.frexp(left)[1], 0)
        bits += digits
        left = np.maximum(digits - 1.0, 1.0)
    return bits
