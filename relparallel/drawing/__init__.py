"""Pictures of topologies: every design laid out so that its rule can be seen.

`positions` gives coordinates, `draw_topology` draws cables and nodes, `gallery` several networks beside each
other, and `abridge` leaves out what repeats in a large cluster. Tiers of a Clos network are rows and its pods
are shaded; the servers of a BCube_1 are the cells of a table, its switches the heads of rows and columns, and
the containers of an MDCube such tables on a grid; the copies of a DCell or FiConn stand on circles within
circles; a torus of three dimensions is a stack of sheets. Groups of a Dragonfly, subgroups of a Slim Fly and
clusters of a PolarFly are discs. A colour tells a kind of cable: vermilion is light in a circuit switch,
green is NVLink, blue and orange are levels, dimensions, planes or rails.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
