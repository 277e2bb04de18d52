"""Pictures of topologies: every design laid out so that its rule can be seen.

Where to begin, by question:

- A network?  `draw_topology`, also with paths.
- Where does a node stand?  `positions`.

A colour tells a kind of cable: vermilion is light in a circuit switch, green is NVLink, blue and
orange are levels, dimensions, planes or rails.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
