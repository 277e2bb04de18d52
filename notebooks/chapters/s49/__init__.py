"""Notebook 49: failures that come together."""

from chapters.s49.bursts import (
    burst as burst,
    goodput_per_node as goodput_per_node,
    shortage_tries as shortage_tries,
)
from chapters.s49.rivals import (
    POLICIES as POLICIES,
    SPLITS as SPLITS,
    Candidate as Candidate,
    candidates as candidates,
    liveput as liveput,
    mofa as mofa,
    verdicts as verdicts,
)
