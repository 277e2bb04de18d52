"""Notebook 41: a job on a fleet of servers with standbys and two stages of repair."""
