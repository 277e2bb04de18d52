"""Stationary distributions of Markov chains, solved without a subtraction.

States are ordered so that rates run to near neighbours: the work grows with the square of the
bandwidth.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from relparallel._checks import require_instance, require_real

FloatArray = NDArray[np.float64]
_MOST_WORK: Final = 4e9  # band entries of the elimination: some seconds


def stationary_distribution(generator: scipy.sparse.csr_array | FloatArray) -> FloatArray:
    """Stationary distribution of an irreducible continuous-time Markov chain.

    Parameters
    ----------
    generator : scipy.sparse.csr_array or array [states, states]
        Rates from row to column [1/s], at least 0; the diagonal is ignored. Every state must lead
        to one before it.

    Returns
    -------
    numpy.ndarray
        float64, one probability per state.

    Notes
    -----
    Grassmann, Taksar and Heyman: states are taken out from the last to the first without a
    subtraction, so every probability, however small, has a relative error of a few roundings. O(n
    b^2) for bandwidth b, 1 for a birth-death chain. Where that is beyond 4e9: sparse LU, digits
    lost below 1e-12.

    References
    ----------
    Grassmann, Taksar, Heyman, Oper. Res. 33(5), 1985.

    Examples
    --------
    >>> stationary_distribution(np.array([[0.0, 1.0], [3.0, 0.0]])).tolist()
    [0.75, 0.25]
    """
    row, column, rate, states = _entries(generator)
    wide = int(np.abs(row - column).max(initial=1))
    if states * float(wide) ** 2 > _MOST_WORK:
        return _by_factors(row, column, rate, states)
    band = np.zeros((states, 2 * wide + 1))  # column j - i + wide of row i is the rate from i to j
    np.add.at(band, (row, column - row + wide), rate)
    # The rate from i to j as entry (i, j), for states that are at most `wide` apart: rows overlap
    # in memory.
    rates = as_strided(
        band.ravel()[wide:], (states, states), (2 * wide * band.itemsize, band.itemsize)
    )
    _eliminate(rates, wide)
    found = _substituted(rates, wide)
    return np.asarray(found / found.sum())


def _entries(generator: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, int]:
    """Rows, columns and rates off the diagonal, and the number of states."""
    require_instance((scipy.sparse.csr_array, np.ndarray), generator=generator)
    if len(set(generator.shape)) != 1 or generator.ndim != 2 or generator.shape[0] == 0:
        raise ValueError(f"generator must be square and have a state, got shape {generator.shape}")
    table = scipy.sparse.csr_array(generator).tocoo()
    off = table.row != table.col
    if table.data.size:
        require_real(generator=table.data)  # the diagonal says nothing, but is a number
    rate = np.asarray(table.data[off], dtype=np.float64)
    if rate.size:
        require_real(generator=rate, at_least=0)
    return table.row[off], table.col[off], rate, table.shape[0]


def _by_factors(
    row: NDArray[np.int64], column: NDArray[np.int64], rate: FloatArray, states: int
) -> FloatArray:
    """Stationary distribution by sparse LU of the balance of all states but the first."""
    here = np.arange(states)
    ends = (np.concatenate([column, here]), np.concatenate([row, here]))
    balance = scipy.sparse.csr_array(
        (np.concatenate([rate, -np.bincount(row, rate, states)]), ends), shape=(states, states)
    )
    table = balance.tolil()
    table[0, :] = 1.0
    found = np.maximum(scipy.sparse.linalg.splu(table.tocsc()).solve(np.eye(1, states)[0]), 0.0)
    return np.asarray(found / found.sum())


def _eliminate(rates: FloatArray, wide: int) -> None:
    """Remove states one by one; what remains in a column above the diagonal is a state's share."""
    for last in range(len(rates) - 1, 0, -1):
        near = slice(max(0, last - wide), last)
        out = rates[last, near].sum()
        if out <= 0.0:
            raise ValueError(
                "generator must lead from every state to one before it, got one that does not"
            )
        rates[near, last] /= out
        rates[near, near] += np.outer(rates[near, last], rates[last, near])


def _substituted(rates: FloatArray, wide: int) -> FloatArray:
    """Put the states back, scaled down where their weights grow beyond what a float holds."""
    weight = np.zeros(len(rates))
    weight[0] = 1.0
    for state in range(1, len(rates)):
        near = slice(max(0, state - wide), state)
        weight[state] = (weight[near] * rates[near, state]).sum()
        if weight[state] > 1e200:
            weight[: state + 1] /= 1e200
    return weight
