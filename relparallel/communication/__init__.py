"""What training bears when it communicates less, later or in larger batches, and how messages travel.

Where to begin, by question:

- What does a compressor send, and how wrong is it?  `top_k`, `qsgd`, ...; `CompressedGradient` trains.
- What do old gradients do?  `delayed_descent`; until which step it is stable: `largest_stable_step`.
- Who waits for whom?  `asynchronous_run`, `ssp_throughput`. Larger batches?  `UpdateRule`, `noise_scale`.
- When does congestion control oscillate?  `dcqcn`, `timely`, `dctcp`, `hpcc`.
- What do losses, pauses and collisions cost?  `loss_goodput`, `pause_spread`, `place_flows`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
