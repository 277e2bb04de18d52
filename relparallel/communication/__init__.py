"""What training bears when gradients come late.

Where to begin, by question:

- What do old gradients do?  `delayed_descent`; until which step it is stable:
  `largest_stable_step`.

Compressors, asynchronous runs and larger batches are in ``relparallel.book.s36``, pipelines in
``s40``, transport in ``s24``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
