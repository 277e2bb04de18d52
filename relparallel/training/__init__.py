"""What failures do to a training job, as a function of its parallel strategy.

`failures` names what can fail and how often, `domains` what stops with it under a strategy, `checkpointing`
and `recovery` what it costs to go on, `goodput` what is left, `crossover` where one choice overtakes another.
`checkpoint_policies`, `checkpoint_kinds` and `rollback` are about several levels of checkpoints, `redundancy`
about copies on other nodes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
globals()["__lazy_shadowed__"] |= {"goodput"}  # offered by modules of other names
