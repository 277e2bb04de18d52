"""What failures do to a training job, as a function of its parallel strategy.

Where to begin, by question:

- What fails, how often, and what stops with it?  `failure_model`, `blast_radius`, `network_impact`.
- Which links, switches and cards does my job need?  `needed`; which pairs: ``lost=2``.
- What is left of the speed?  `goodput`; simulated, `simulate`; in closed form, `relative_goodput`.
- How often to write checkpoints?  `checkpoint_interval`; several levels: `Checkpointing`.
- How many spares?  `spares_needed`. When does another strategy win?  `crossovers`,
  `break_even_repair`.
- What does my log say?  `read_failure_log` of failures, `read_run_log` of one run.
  A log is taken as ``rates`` of `failure_model` and of ``rp.plan``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
