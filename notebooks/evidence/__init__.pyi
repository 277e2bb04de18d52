from .claims.registry import compute as compute, find_claim as find_claim
from .computed import (
    check as check,
    ledger as ledger,
    summary as summary,
    systems as systems,
)
from .fitting import calibrate as calibrate, cross_validate as cross_validate, errors as errors
from .recipes import recipes as recipes
from .training_steps import measured_runs as measured_runs
