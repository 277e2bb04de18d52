from .claims.registry import compute as compute, find_claim as find_claim
from .computed import (
    check as check,
    ledger as ledger,
    summary as summary,
    systems as systems,
)
