"""How small functions are compiled."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numba

#: For functions that make no arrays and are called often: numba does not count references to the arrays that
#: they are given, which took half the time of small networks.
njit_borrowing: Final[Any] = partial(numba.njit, cache=True, _nrt=False)
