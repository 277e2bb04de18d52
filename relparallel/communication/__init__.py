"""What training bears when it communicates less, later or in larger batches, and how messages travel.

`compression` says what a compressor sends, its bits and its exact error, and `feedback` trains with
compressed gradients. `asynchrony` lets workers wait, or not, and gives the delay of every update; `staleness`
holds the methods that train with stale weights as linear recurrences, and says when they are stable. `batch`
is about large batches, `linear_models` about two methods with updates of their own. `descent` runs them all,
on gradients that each makes from another; `problems` has some to run them on.

`fluid` integrates congestion control and finds where it is stable; its models are in `ecn` and `congestion`.
`transport` has closed forms of single links, and `link_sharing` what flows do to each other on a network.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
