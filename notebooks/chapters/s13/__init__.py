"""Notebook 13: counts of working sets, repairmen as Markov chains, common causes, estimators."""

from chapters.s13.common_cause import (
    common_cause_unavailability as common_cause_unavailability,
    multiple_greek_letters as multiple_greek_letters,
)
from chapters.s13.counting import (
    polynomial as polynomial,
    survival_signature as survival_signature,
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
