"""Exact reliability of symmetric networks: interchangeable parts are counted, not told apart."""
