"""Results on data too large to ship, as tables that the project ships: ``data/derived/*.csv``."""

from relparallel.derive.tables import derive as derive

__all__ = ["derive"]
