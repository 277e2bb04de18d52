"""The runner: re-execute stale notebooks through papermill and regenerate figures byte for byte.

``python -m relparallel figures`` is its command line; ``run_figures`` is the same from Python.
"""

from .notebook import NotebookError as NotebookError
from .record import RunnerBusyError as RunnerBusyError
from .runner import run_figures as run_figures

__all__: list[str] = []
