"""Directed networks, whose arcs work one way: exact, bounded, sampled, and how much every part matters."""
