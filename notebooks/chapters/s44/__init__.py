"""Notebook 44: what a failure sets in motion, step by step."""

from chapters.s44.break_even import (
    break_even_rates as break_even_rates,
    break_even_regroup as break_even_regroup,
)
from chapters.s44.consequences import consequences as consequences
from chapters.s44.spares_law import spares_law as spares_law
