"""What a network is worth when everything works, and what is left when parts fail.

Where to begin, by question:

- How far apart are the hosts?  `hop_statistics`. How many cables halve it?  `bisection`.
- Which link is the busiest?  `ecmp_load`. What can all hosts send at once?  `concurrent_flow`.
- How many links must fail before two hosts are apart?  `edge_connectivity`.
- What is left after failures?  `survival`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
