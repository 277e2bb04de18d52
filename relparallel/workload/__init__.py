"""What is trained: parameters, floating-point operations and bytes of a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
globals()["__lazy_shadowed__"] |= {"operators", "transformer"}  # offered by modules of other names
