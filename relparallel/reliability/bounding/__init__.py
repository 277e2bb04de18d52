"""Bounds that certify, from cuts, complexes and truncated sweeps."""
