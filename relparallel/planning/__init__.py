"""Plans: which split of a model on a cluster, how fast, how reliable, and why not another.

Where to begin, by question:

- The best strategies?  `plan`; why not another: ``plan(...).why_not``. A cluster of a file?
  `read_cluster`. Many models, clusters and sizes, for a purchase?  `study`.
- Own runs that correct the predictions?  `learn`, or ``plan(..., measured="runs.csv")``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
