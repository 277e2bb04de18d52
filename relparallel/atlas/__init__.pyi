from .cards import card as card
from .catalogue import designs as designs
from .rows import Card as Card, Row as Row
