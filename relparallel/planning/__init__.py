"""Plans: which split of a model on a cluster, how fast, how reliable, and why not another.

`plan` answers; `read_strategy` and `read_cluster` read what it is asked about.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
