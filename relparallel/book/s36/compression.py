"""Compressors of gradients: what they send, how many bits that takes, and the exact error.

C(v) is what the receiver has of a vector v of n numbers. An unbiased compressor has E C(v) = v; one that
contracts by d > 0 has E |C(v) - v|**2 <= (1 - d) |v|**2 for every v. A number takes 32 bits as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relparallel._checks import bare, require_choice, require_int, require_number, require_real, require_rng
from relparallel.parallel.algorithms import tree_edges
from relparallel.workload.precision import FORMATS, NumberFormat

Vector = NDArray[np.float64]
_FLOAT: Final = 32  # bits


@dataclass(frozen=True, slots=True, eq=False)
class Message:
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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Compressor:
    """A way to send less of a vector: its name, how it writes a message, and the bound and size of its error.

    ``contracts`` goes from n to a d that is proved for every vector, below 0 where the error can exceed the
    vector; ``error`` from a vector to E |C(v) - v|**2, and is None where nothing is random.
    """

    name: str
    write: Callable[[Vector, Any], Message]
    contracts: Callable[[int], float]
    error: Callable[[Vector], float] | None = None

    def encode(self, vector: ArrayLike, rng: np.random.Generator | None = None) -> Message:
        """What is sent; its ``decode()`` is C(v). A random compressor needs ``rng``."""
        return self.write(_vector(vector), require_rng(rng=rng) if self.error else None)

    def variance(self, vector: ArrayLike) -> float:
        """E |C(v) - v|**2, exact: in closed form, or the squared error where nothing is random."""
        v = _vector(vector)
        return float(self.error(v) if self.error else np.sum((self.write(v, None).decode() - v) ** 2))

    def contraction(self, size: int) -> float:
        """A d with E |C(v) - v|**2 <= (1 - d) |v|**2 for all v of this size, as proved; more may hold."""
        return float(self.contracts(require_int(size=size, at_least=1)))


def qsgd(levels: int) -> Compressor:
    """Return QSGD: magnitudes rounded at random to multiples of the 2-norm over the levels.

    Parameters
    ----------
    levels : int
        s, at least 1.

    Returns
    -------
    Compressor
        Unbiased; the variance (|v|/s)**2 sum f (1 - f), f = frac(s |v_i|/|v|), is at most min(n/s**2,
        sqrt(n)/s) |v|**2. Gaps and levels are Elias-coded. Alistarh et al., NeurIPS 2017, lemma 3.1.

    Examples
    --------
    >>> round(qsgd(levels=1).variance(np.ones(10_000)) / 10_000, 9)  # of |v|**2
    99.0
    """
    s = require_int(levels=levels, at_least=1, at_most=2**31)

    def bits(positions: NDArray[np.int64], found: Vector, _: int) -> float:
        return float((elias_lengths(np.diff(positions, prepend=-1)) + 1 + elias_lengths(found)).sum())

    return _rounding(f"QSGD({s})", s, _norm, bits, lambda n: 1 - min(n / s**2, np.sqrt(n) / s))


def terngrad() -> Compressor:
    """Return TernGrad: a number becomes plus or minus the largest m with probability |v_i|/m, else 0.

    Returns
    -------
    Compressor
        Unbiased; the variance sum (m |v_i| - v_i**2) is at most (sqrt(n) - 1)/2 |v|**2. A number takes log2 3
        bits. Wen et al., NeurIPS 2017, equations 3 and 4.

    Examples
    --------
    >>> terngrad().variance([1.0, -0.5])
    0.25
    """
    return _rounding(
        "TernGrad", 1, lambda v: np.abs(v).max(), lambda p, f, n: n * np.log2(3),
        lambda n: (3 - np.sqrt(n)) / 2,
    )  # fmt: skip


def one_bit() -> Compressor:
    """Return 1-bit SGD's quantiser: the sign, read as the mean of the numbers that share it.

    Returns
    -------
    Compressor
        Biased, with at most (1 - 1/n) |v|**2 of error: it needs `ErrorFeedback`. Seide et al., Interspeech
        2014, section 3.

    Examples
    --------
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
    """Return the compressor that sends the numbers of largest magnitude as they are, with their positions.

    Parameters
    ----------
    density : float
        Share k/n of the numbers that are sent, in (0, 1]; at least one is.

    Returns
    -------
    Compressor
        Biased, with at most (1 - k/n) |v|**2 of error. With `ErrorFeedback` it is gradient dropping (Aji and
        Heafield, EMNLP 2017: density 0.01) and Mem-SGD (Stich et al., NeurIPS 2018, definition 2.1).

    Examples
    --------
    >>> top_k(0.25).encode([1.0, -3.0, 2.0, 0.0]).decode().tolist()
    [0.0, -3.0, 0.0, 0.0]
    """
    p = require_number(density=density, above=0, at_most=1)

    def write(v: Vector, _: Any) -> Message:
        positions = _largest(np.abs(v), _kept(p, v.size))
        bits = positions.size * (_FLOAT + (v.size - 1).bit_length())
        return Message(v.size, positions, v[positions], bits)

    return Compressor(name=f"top-k({p:g})", write=write, contracts=lambda n: _kept(p, n) / n)


def random_k(density: float) -> Compressor:
    """Return the compressor that sends numbers at random positions, which both ends draw from one seed.

    Parameters
    ----------
    density : float
        Share k/n of the numbers that are sent, in (0, 1]; at least one is.

    Returns
    -------
    Compressor
        Biased; E |C(v) - v|**2 = (1 - k/n) |v|**2. Stich et al., NeurIPS 2018, definition 2.1.

    Examples
    --------
    >>> random_k(0.5).variance([1.0, 2.0])
    2.5
    """
    p = require_number(density=density, above=0, at_most=1)

    def write(v: Vector, rng: np.random.Generator) -> Message:
        positions = np.sort(rng.choice(v.size, _kept(p, v.size), replace=False))
        return Message(v.size, positions, v[positions], _FLOAT * positions.size)

    return Compressor(
        name=f"random-k({p:g})", write=write, contracts=lambda n: _kept(p, n) / n,
        error=lambda v: (1 - _kept(p, v.size) / v.size) * float(v @ v),
    )  # fmt: skip


def sparse_binary(density: float) -> Compressor:
    """Return sparse binary compression: one value at the largest numbers of one sign, positions Golomb-coded.

    Parameters
    ----------
    density : float
        Share k/n of the numbers that are sent, in (0, 1); at least one is.

    Returns
    -------
    Compressor
        Of the k largest positive and the k smallest negative numbers, those of the larger sum are sent, as
        their mean. Biased, with at most (1 - 1/(k n)) |v|**2 of error. Sattler et al., IJCNN 2019.

    Examples
    --------
    >>> sparse_binary(0.5).encode([1.0, -3.0, 2.0, 0.0]).decode().tolist()
    [1.5, 0.0, 1.5, 0.0]
    """
    p = require_number(density=density, above=0, below=1)
    b = int(golomb_parameter(p))

    def write(v: Vector, _: Any) -> Message:
        ends = [(sign, _largest(sign * v, _kept(p, v.size))) for sign in (1, -1)]
        up, down = (at[sign * v[at] > 0] for sign, at in ends)
        at = up if v[up].sum() >= -v[down].sum() else down
        bits = _FLOAT + float(golomb_lengths(np.diff(at, prepend=-1), b).sum())
        return Message(v.size, at, np.full(at.size, v[at].sum() / max(at.size, 1)), bits)

    return Compressor(name=f"SBC({p:g})", write=write, contracts=lambda n: 1 / (n * _kept(p, n)))


def reduced_precision(number: str = "fp16", scale: float = 1.0) -> Compressor:
    """Return rounding to a format of fewer bits, after a multiplication that the receiver undoes.

    Parameters
    ----------
    number : {"fp16", "bf16", "fp8", "fp32"}
        The format.
    scale : float
        Loss scale, above 0: it keeps small numbers from becoming 0, and drives large ones to infinity.

    Returns
    -------
    Compressor
        The nearest number, ties to even. Contracts by 1 - 4**-(m + 1), m being the bits of the mantissa, if
        no number under- or overflows. Micikevicius et al., ICLR 2018, section 3.

    Examples
    --------
    >>> [reduced_precision("fp16", s).encode([1e-8, 1.0]).values.round(10).tolist() for s in (1, 1024)]
    [[0.0, 1.0], [1e-08, 1.0]]
    """
    form = FORMATS[require_choice(FORMATS, number=number)]
    factor = require_number(scale=scale, above=0, at_most=1e300)

    def write(v: Vector, _: Any) -> Message:
        return Message(
            v.size, np.arange(v.size), _rounded(factor * v, form) / factor, 8.0 * form.bytes * v.size
        )

    contracts = 1 - 4.0 ** -(form.mantissa_bits + 1)
    return Compressor(name=f"{number} x {factor:g}", write=write, contracts=lambda n: contracts)


def global_top_k(vectors: ArrayLike, kept: int) -> Vector:
    """Add up the largest numbers of all workers over a tree that passes on only the largest sums.

    Parameters
    ----------
    vectors : array_like
        One vector per worker, shape (workers, n).
    kept : int
        k, from 1 to n.

    Returns
    -------
    numpy.ndarray
        float64, shape (n,), k numbers: what gTop-k broadcasts, not always the largest of the whole sum. A
        message is k values and k positions; its rounds are those of
        ``relparallel.parallel.collective("all_reduce", "tree", workers, 2 * k)``. Shi et al., ICDCS 2019.

    Examples
    --------
    >>> global_top_k([[3.0, 0.0, 2.0], [-1.0, 4.0, 0.0]], kept=1).tolist()
    [0.0, 4.0, 0.0]
    """
    rows = np.asarray(require_real(vectors=vectors))
    if rows.ndim != 2:
        raise ValueError(f"vectors must have two dimensions (workers, n), got shape {rows.shape}")
    keep = top_k(require_int(kept=kept, at_least=1, at_most=rows.shape[1]) / rows.shape[1])
    held = [keep.write(row, None).decode() for row in rows]
    for children, parents in tree_edges(len(held), len(held)):
        for child, parent in zip(children, parents, strict=True):
            held[parent] = keep.write(held[parent] + held[child], None).decode()
    return held[0]


def _rounding(
    name: str, s: int, scale: Callable[[Vector], Any], bits: Callable[..., float],
    contracts: Callable[[int], float],
) -> Compressor:  # fmt: skip
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
    """A checked vector."""
    v = np.asarray(require_real(vector=vector))
    if v.ndim != 1:
        raise ValueError(f"vector must have one dimension, got shape {v.shape}")
    return v


_GOLDEN: Final = (np.sqrt(5) + 1) / 2


def golomb_bits(density: ArrayLike) -> Any:
    """Return the mean bits of the position of a sent number, Golomb-coded by the gap before it.

    Parameters
    ----------
    density : array_like
        Share p of the numbers that are sent, each independently, in (0, 1).

    Returns
    -------
    float or numpy.ndarray
        b + 1/(1 - (1 - p)**2**b) with b = 1 + floor(log2(log(phi - 1)/log(1 - p))), at least 0, and the
        golden ratio phi. Sattler et al., "Sparse Binary Compression", IJCNN 2019, equation 5.

    Examples
    --------
    >>> round(golomb_bits(density=0.001), 3)
    11.495
    """
    p = np.asarray(require_real(density=density, above=0, below=1))
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
    """Bits of every number from 1 on: its binary digits, before them how many less one, ..., a zero."""
    left = np.asarray(numbers, dtype=np.float64)
    bits = np.ones(left.shape, dtype=np.int64)
    while np.any(left > 1):  # Elias, IEEE Trans. Inf. Theory 21(2), 1975
        digits = np.where(left > 1, np.frexp(left)[1], 0)
        bits += digits
        left = np.maximum(digits - 1.0, 1.0)
    return bits
