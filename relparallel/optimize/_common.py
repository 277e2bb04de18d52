"""What the choices share: one number checked, the near side of a minimum cut, a headline above a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import require_real

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def one_number(name: str, value: Any, **bounds: float) -> float:
    """The value as one number inside the bounds of `require_real`."""
    checked = require_real(**{name: value}, **bounds)  # type: ignore[arg-type]
    if np.ndim(checked):
        raise TypeError(f"{name} must be one number, got {value!r}")
    return float(checked)


def near_side(network: csr_array, flow: csr_array, source: int) -> NDArray[np.bool_]:
    """Nodes on the near side of the minimum cut that a maximum flow leaves."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    left = csr_array(network - flow)
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    near = np.zeros(network.shape[0], dtype=np.bool_)
    near[breadth_first_order(left, source, return_predecessors=False)] = True
    return near
