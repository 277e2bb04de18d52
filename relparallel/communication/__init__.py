"""Communication that comes later, and how it is carried: stale gradients, congestion control, links.

`recurrence` answers when a linear recurrence with delays is stable; `staleness` holds the methods that train
with stale weights, each as the taps of such a recurrence; `descent` simulates them. `fluid` does the same for
congestion control, whose models are in `ecn` and `congestion`; `transport` has closed forms of single links,
and `link_sharing` what flows do to each other on the links of a network.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
