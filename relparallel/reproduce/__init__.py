"""The runner: re-execute stale notebooks through papermill and regenerate their figures, byte for byte.

``python -m relparallel figures`` is its command line; `run_figures` is the same from Python.
"""

from .notebook import NotebookError
from .record import RunnerBusyError
from .runner import run_figures

__all__ = ["NotebookError", "RunnerBusyError", "run_figures"]
