"""Notebook 45: what a failure sets in motion, step by step."""

from relparallel.book.s45.break_even import (
    break_even_rates as break_even_rates,
    break_even_regroup as break_even_regroup,
)
from relparallel.book.s45.consequences import consequences as consequences
from relparallel.book.s45.spares_law import spares_law as spares_law
