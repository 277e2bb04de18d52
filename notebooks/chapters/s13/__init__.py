"""Notebook 13: spares and repairmen as Markov chains, common causes, estimators compared."""

from chapters.s13.common_cause import (
    common_cause_unavailability as common_cause_unavailability,
    multiple_greek_letters as multiple_greek_letters,
)
from chapters.s13.estimators import estimator_table as estimator_table
from chapters.s13.isolation import (
    mean_time_to_isolation as mean_time_to_isolation,
    smallest_cuts as smallest_cuts,
)
from chapters.s13.markov_availability import (
    RepairedParts as RepairedParts,
    repair_chain as repair_chain,
)
