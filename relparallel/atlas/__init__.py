"""Every architecture side by side: one card per network, each number with the way it is known.

Where to begin, by question: everything about one network?  `card`. All designs of about a size?
`designs`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
