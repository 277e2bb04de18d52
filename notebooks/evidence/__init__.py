"""What the collection is held against: published numbers beside the ones computed here.

Where to begin, by question:

- A number and ours?  `check`; all of them: `ledger`, counted by `summary`.
- Is every system of the reading list there?  `systems`.
- Which steps of training were measured?  `measured_runs`. How far off is a calibration?  `errors`;
  the parameters of a machine from runs: `calibrate`, held against sources left out:
  `cross_validate`.
- What a plan says of strategies that somebody published and ran: `recipes`.
- Which function computes a row?  `find_claim`; from other inputs: `compute`.

`claims` holds the functions by topic, `derive` the results on data that are too large to ship.
Evidence builds on the library and on all chapters; neither knows of it.
"""

import lazy_loader

if __name__ != "evidence":
    raise ImportError(
        f"{__name__} must be imported as evidence: install the checkout with pip install -e ., "
        "or put its folder notebooks/ on the path"
    )
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
