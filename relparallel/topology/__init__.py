"""How a cluster is wired: one pure function per design, and the `Topology` they return."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
