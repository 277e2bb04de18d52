"""Formulas of data-centre networks at full size."""
