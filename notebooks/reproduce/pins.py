"""The environment of a kernel, such that every machine and every user gets the same bits.

Numerical libraries choose their code by the processor they meet, and the last digits of their
results with it; here they are held to what every processor of the family has, to one thread, and to
no user's settings.
"""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the checkout
FIGURES_VARIABLE = "RELPARALLEL_FIGURES"


def pins(folder: Path) -> dict[str, str | None]:
    """Return the variables of a kernel whose files lie in ``folder``; None means: remove it."""
    private = {name: str(folder / name.lower()) for name in _PRIVATE}
    figures = {FIGURES_VARIABLE: str(folder / "figures")}
    spec = find_spec("matplotlib")
    own = (
        {"MATPLOTLIBRC": str(Path(spec.origin).parent / "mpl-data")} if spec and spec.origin else {}
    )
    return _CONSTANT | private | figures | own | _generic_processor()  # no settings of a user


_PRIVATE = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
_REMOVED = (
    *("JUPYTER_CONFIG_PATH", "JUPYTER_PATH", "MPLBACKEND", "PYTHONSTARTUP", "PYTHONWARNINGS"),
    "RELPARALLEL_DATA",  # notebooks read only what the project ships
)
_CONSTANT: dict[str, str | None] = {
    **{f"{library}_NUM_THREADS": "1" for library in ("MKL", "NUMBA", "OMP", "OPENBLAS")},
    **dict.fromkeys(_REMOVED),
    "JUPYTER_PREFER_ENV_PATH": "1",
    "LC_ALL": "C.UTF-8",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_CPU_NAME": "generic",
    "PYTHONHASHSEED": "0",
    "RELPARALLEL_QUIET": "1",  # a notice of what takes long is no output of a notebook
    "SOURCE_DATE_EPOCH": "0",
    "TZ": "UTC",
}
_BLAS_CORES = {"x86_64": "Prescott", "amd64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}
# names before and after glibc 2.33
_LIBM_FEATURES = "-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"


def _generic_processor() -> dict[str, str | None]:
    """Return variables that hold numpy, OpenBLAS and the C library to the oldest instructions."""
    import numpy as np

    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    disabled = [*os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split(), *found]
    return {
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_LIBM_FEATURES}",
        "NPY_DISABLE_CPU_FEATURES": " ".join(dict.fromkeys(disabled)),
        "OPENBLAS_CORETYPE": _BLAS_CORES.get(platform.machine().lower()),
    }


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables (None removes one) and restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
