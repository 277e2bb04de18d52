"""Probability that a network works: exact, sampled or in closed form, always beside its complement.

Where to begin, by question:

- Are two, some or all nodes connected?  `evaluate`; it chooses the method and says why.
- Which part matters most?  ``evaluate(...).importance().to_frame()``.
- What has a change of the network changed?  `compare` of two results, in U and importance.
- How often do they fail, and for how long?  `failure_frequency`, from MTBF and MTTR of parts.
- Parts that share a conduit or a feed?  ``evaluate(..., groups=[(members, chance), ...])``.
- A bracket for certain, or an interval to 1 %?  `bounds`, `estimate`.
- A fat-tree or leaf-spine by its numbers?  `fat_tree_pair`, `fat_tree_pods_connected`,
  `leaf_spine_pair`, `leaf_spine_leaves_connected`, and the share of servers that is
  reached: `accessible_servers`.
- From MTBF and MTTR to a chance, k of n included?  `availability`, `unavailability`.
- Any Markov chain?  `stationary_distribution`.

Names load when they are first used: the closed forms need neither the compiler nor networkx.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
