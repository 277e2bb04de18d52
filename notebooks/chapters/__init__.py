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

Beside them stands what several notebooks share and no model of the library needs: `drawing`
(pictures of networks), `gantt` (of a timeline), `chain` (groups of a chain on devices), `descent`
(small problems to train).

A chapter builds on the library, on what is shared and on no other chapter, and nothing of the
library builds on a chapter. Its functions are in plain words: a sentence, the source, an example
where it teaches.
"""

import lazy_loader

if __name__ != "chapters":
    raise ImportError(
        f"{__name__} must be imported as chapters: install the checkout with pip install -e ., "
        "or put its folder notebooks/ on the path"
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
