"""A job of real processes that are killed and repaired, measured beside what the package predicts.

``python -m relparallel rehearse`` measures: Linux and the extra ``rehearsal`` (PyTorch, whose CPU
build suffices), for ``--backend torchft`` ``rehearsal-torchft``. What it recorded in
``data/rehearsals`` is read without them.
"""

__all__: list[str] = []
