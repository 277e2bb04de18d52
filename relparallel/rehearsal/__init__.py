"""A job of real processes that are killed and repaired, measured beside what the package predicts.

``python -m relparallel rehearse`` measures, on Linux. Schedules of pipelines and the small GPT need
the extra ``rehearsal`` (PyTorch, whose CPU build suffices), ``--backend torchft`` needs
``rehearsal-torchft``. What was recorded in ``data/rehearsals`` is read without them.
"""

__all__: list[str] = []
