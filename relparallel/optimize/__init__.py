"""Choosing: solvers that return an optimum with its proof.

Where to begin, by what is chosen:

- How to split and run a training job: `joint` (of strategies whose speed is computed, or was
  measured).
- Where to keep copies of checkpoints: `place_replicas`.
- The cheapest links that are reliable enough: `reliable_network`.

Most results carry the ``formulation`` that was solved, or ``explain()`` themselves, and have
``to_frame()``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
