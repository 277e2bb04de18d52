"""Theorems on real records of failures, from ``data/derived/failure_replays.csv``."""

from theorem_table import theorem

from evidence.claims.training_real import _table


@theorem("THM-lanl-replay", system="Checkpointing (Young/Daly)")
def test_replays_within_half_a_point():
    """On the five LANL systems with most failures a replay at Young's interval is within 0.5 points
    of the exponential formula.
    """
    # Systems within the bound, and systems replayed.
    table = _table().unstack()
    systems = table[table.index.str.startswith("lanl ")]
    return int(((systems["replay"] - systems["formula"]).abs() < 5e-3).sum()), 5
