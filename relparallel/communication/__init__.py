"""What training bears when its communication comes later: delayed gradients and their stable steps.

`recurrence` answers when a linear recurrence with delays is stable; `staleness` holds the methods that train
with stale weights, each as the taps of such a recurrence; `descent` simulates them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
