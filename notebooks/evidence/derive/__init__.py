"""Results on data too large to ship, as tables that the project ships: ``data/derived/*.csv``."""

from evidence.derive.tables import derive as derive

__all__ = ["derive"]
