"""How a cluster is wired: one pure function per design, and the `Topology` they return.

Where to begin, by question:

- A design by its parameters?  `fat_tree`, `leaf_spine`, ...; the others: `names`; only counted:
  `describe`.
- A network of your own?  `as_topology` of a networkx graph; `read` and `write` files of simulators.
- What does it cost?  `bill_of_materials`.
- Which way do packets take?  `paths`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
