"""Every architecture side by side: one card per network, each number with the way it is known."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
