"""Systems of the literature, one notebook each: package ``sNN`` holds what notebook NN alone needs.

Where to begin, by topic:

- Networks that fail: `s11` how often and how far, `s12` redundancy and fabrics chosen, `s13`
  repairmen.
- Data-centre networks: `s22` circuits that move, `s23` what failures leave, `s24` transport.
- What training moves: `s31` other models, `s32` servers, `s33` volumes of a split, `s36` gradients
  compressed, `s37` messages in order and sharded arrays.
- Pipelines, planners, clusters: `s34` bubbles, `s40` late gradients and weights, `s35` planners,
  `s38` shared clusters.
- Training that fails: `s41` fleets, `s42` records of runs, `s43` replicas hit, `s44` consequences,
  `s45` break-even rates, `s48` slow or degraded parts.
- Beside the argument: `s62` operators on tiles, `s63` learning from human feedback.

A chapter builds on the library and on no other chapter, and nothing of the library builds on a
chapter. Its functions are in plain words: a sentence, the source, an example where it teaches. What
a second notebook needs moves down into the library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
