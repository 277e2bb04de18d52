"""Estimators with honest intervals."""
