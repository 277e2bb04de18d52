"""Training on problems small enough to run, with gradients that come compressed or late.

Where to begin, by question:

- What do old gradients do?  `delayed_descent`.
- On what?  `logistic_problem`, `network_problem`.

Compressors are in ``relparallel.book.s36``, larger batches in ``s38``, asynchronous runs and
pipelines in ``s40``, transport in ``s24``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
