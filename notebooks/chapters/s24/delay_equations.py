"""Linear delay equations, many at once: where roots cross the imaginary axis, and where they lie.

x'(t) = A x(t) + sum of B_k x(t - D - r_k) with the feedback delay D and own lags r_k. In every
model of congestion control here the characteristic function is linear in exp(-sD): 1 + L(s)
exp(-sD) = 0 with the loop gain L. A pair of roots meets the axis where |L(i w)| = 1.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Any], Any]

_UNIT: Final = 50e-6  # s, in which frequencies are of the order of one
_GRID: Final = np.geomspace(1e-4, 1e3, 281)  # of frequencies: 40 a decade
_ROWS: Final = 4096  # settings whose frequencies are scanned at a time


class Linear(NamedTuple):
    """x' = now x(t) + sum of matrix x(t - D - lag), of n settings: [n, k, k], lags [n]."""

    now: FloatArray
    past: tuple[tuple[FloatArray, FloatArray], ...]


def bisected(function: Function, low: FloatArray, high: FloatArray) -> FloatArray:
    """Roots of functions negative at ``low`` and positive at ``high``, element by element."""
    for _ in range(60):
        middle = (low + high) / 2
        above = function(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def jacobian(function: Function, state: FloatArray) -> FloatArray:
    """Derivatives by a complex step, exact to rounding, in units of the state: [settings, k, k]."""
    scale = np.where(state == 0, 1.0, np.abs(state))
    columns = []
    for j in range(len(state)):
        moved = state.astype(complex)
        moved[j] += 1e-30j * scale[j]
        columns.append(function(moved[:, None])[:, 0].imag / 1e-30 / scale)
    return np.moveaxis(np.array(columns), -1, 0).swapaxes(1, 2)


def split_modes(whole: Linear) -> tuple[Linear, Linear]:
    """All flows together, and differences between them, which leave the queue alone."""
    parts = tuple((lag, matrix[:, :-1, :-1]) for lag, matrix in whole.past)
    return whole, Linear(now=whole.now[:, :-1, :-1], past=parts)


def _characteristic(matrix: FloatArray) -> FloatArray:
    """Coefficients of det(sI - A), highest power first, by Faddeev and LeVerrier: [n, k + 1]."""
    n, k, _ = matrix.shape
    coefficients, power = np.ones((n, k + 1)), np.zeros_like(matrix)
    for j in range(1, k + 1):
        power = matrix @ power + coefficients[:, j - 1, None, None] * np.eye(k)
        coefficients[:, j] = -np.trace(matrix @ power, axis1=1, axis2=2) / j
    return coefficients


def _gain(mode: Linear) -> Callable[[Any, Any], Any]:
    """Loop gain L(i w) without the feedback delay, from w in 1/unit and number of the setting."""
    below = _characteristic(mode.now * _UNIT)
    above = [
        (lag, _characteristic((mode.now + matrix) * _UNIT) - below) for lag, matrix in mode.past
    ]

    def gain(omega: Any, i: Any) -> Any:
        s = 1j * omega
        total: Any = 0.0
        for lag, polynomial in above:
            total = total + _horner(polynomial[i], s) * np.exp(-s * lag[i] / _UNIT)
        return total / _horner(below[i], s)

    return gain


def _horner(coefficients: FloatArray, s: Any) -> Any:
    value: Any = 0.0
    for j in range(coefficients.shape[-1]):
        value = value * s + coefficients[..., j]
    return value


def crossings(mode: Linear) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int64]]:
    """Where |L| = 1: frequency [1/s], direction of roots, phase to go [rad], each [n, crossings].

    NaN pads. Direction is +1 where a longer delay moves roots to the right, at falling |L|. Last:
    roots right of the axis without feedback delay, [n].
    """
    gain, n = _gain(mode), len(mode.now)
    rows: list[Any] = []
    for low in range(0, n, _ROWS):
        row = np.arange(low, min(low + _ROWS, n))[:, None]
        above = np.abs(gain(_GRID, row)) > 1
        found = np.nonzero(above[:, 1:] != above[:, :-1])
        rows.append((found[0] + low, found[1], above[:, 1:][found]))
    setting, cell, rising = (np.concatenate(part) for part in zip(*rows, strict=True))
    sign = np.where(rising, 1.0, -1.0)
    omega = bisected(lambda w: sign * (np.abs(gain(w, setting)) - 1), _GRID[cell], _GRID[cell + 1])
    order = np.arange(setting.size) - np.searchsorted(setting, setting)
    padded = np.full((3, n, order.max(initial=0) + 1), np.nan)
    lead = (np.angle(gain(omega, setting)) + np.pi) % (2 * np.pi)
    padded[:, setting, order] = omega / _UNIT, -sign, lead
    roots = spectrum(mode, np.zeros(n), 12)
    return *padded, np.count_nonzero(roots.real > 0, axis=1)


def spectrum(mode: Linear, delay: FloatArray, nodes: int) -> NDArray[np.complex128]:
    """Roots of largest real part: eigenvalues of the infinitesimal generator on Chebyshev nodes.

    Breda, Maset and Vermiglio, "Pseudospectral differencing methods", SIAM J. Sci. Comput. 27,
    2005.
    """
    n, k, _ = mode.now.shape
    lags = np.array([np.broadcast_to(lag, n) + delay for lag, _ in mode.past])
    longest = lags.max(axis=0)
    if not longest.any():
        return np.asarray(np.linalg.eigvals(mode.now + sum(matrix for _, matrix in mode.past)))
    longest = np.maximum(longest, 1e-9)
    x = np.cos(np.pi * np.arange(nodes + 1) / nodes)
    weight = (-1.0) ** np.arange(nodes + 1) * np.where(np.arange(nodes + 1) % nodes == 0, 0.5, 1.0)
    apart = x[:, None] - x + np.eye(nodes + 1)
    slope = weight / weight[:, None] / apart
    slope -= np.diag(slope.sum(axis=1))
    generator = np.zeros((n, nodes + 1, k, nodes + 1, k))
    generator[:] = (
        slope[:, None, :, None] * np.eye(k)[:, None] * (2 / longest)[:, None, None, None, None]
    )
    generator[:, 0] = 0
    generator[:, 0, :, 0] = mode.now
    for lag, (_, matrix) in zip(lags, mode.past, strict=True):
        offset = 1 - 2 * lag[:, None] / longest[:, None] - x
        share = weight / np.where(offset == 0, 1e-300, offset)
        share /= np.abs(share).max(axis=1, keepdims=True)  # at a node, all but one vanish
        share /= share.sum(axis=1, keepdims=True)
        generator[:, 0] += np.einsum("nij,nm->nimj", matrix, share)
    return np.asarray(np.linalg.eigvals(generator.reshape(n, (nodes + 1) * k, -1)))
