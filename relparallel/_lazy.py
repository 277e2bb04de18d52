"""Packages whose names load when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["offered"]


def offered(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that offers names of its modules.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : mapping of str to tuple of str
        The names that each module offers, by its path inside the package. A name must not be that of a
        module: whoever imports the module would hide it.

    Returns
    -------
    tuple of two callables
        Each name is set in the package when it is first asked for, so that it is looked up once.

    Examples
    --------
    >>> get, listed = offered("relparallel.metrics", {"estimate": ("Estimate",)})
    >>> get("Estimate").__name__
    'Estimate'
    """
    home = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, listed
