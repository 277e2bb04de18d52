"""How training is split over GPUs, and what the split costs.

Where to begin, by question:

- How long does a step take?  `step_time`, of one `Strategy`; of many, `price_strategies`
  of a `StrategyGrid`.
- As people write it, "TP8 PP16 ZeRO-1"?  `read_strategy`, and back: `notation`. As launchers are
  told, "--tensor-model-parallel-size 8" or a file?  `read_strategy` too; with spares: `read_launch`.
- Does it fit?  `memory`. Which GPU runs which rank?  `Placement`.
- What does a pipeline wait for?  `simulate_schedule`.
- What does a collective take?  `collective_time`; on the links of a network: `plan_rounds`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
