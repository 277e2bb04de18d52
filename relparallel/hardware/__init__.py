"""Accelerators, the clusters made of them, and how often their parts fail.

Where to begin, by question:

- Speed, memory and links?  `accelerator`, `cluster`; `accelerators` and `clusters` list them.
- How often do parts fail?  `llama3_interruptions`; from counts of your own: `ComponentRate`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
