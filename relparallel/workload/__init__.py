"""What is trained: parameters, floating-point operations and bytes of a model.

Where to begin, by question:

- A model by its name?  `transformer`, `layer_graph`. By its ``config.json``?  `read_config`.
- What does an operator compute and move?  `operators`, and ``roofline`` of its table.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
