"""Compiled loops that allocate nothing: without counts of references, which cost more than the loops here."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def njit_bare(function: Function) -> Function:
    """Compile a function of scalars and arrays that makes no array itself."""
    options: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
    compiled: Function = numba.njit(**options)(function)
    return compiled


def njit_inline(function: Function) -> Function:
    """As `njit_bare`, always inlined."""
    options: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False, "inline": "always"}
    compiled: Function = numba.njit(**options)(function)
    return compiled
