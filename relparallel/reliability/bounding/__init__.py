"""Bounds that certify, from cuts and truncated sweeps."""
