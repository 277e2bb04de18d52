"""Every architecture side by side: one card per network, each number with the way it is known."""

from relparallel.atlas.cards import card
from relparallel.atlas.catalogue import designs
from relparallel.atlas.result import Card, Row

__all__ = ["Card", "Row", "card", "designs"]
