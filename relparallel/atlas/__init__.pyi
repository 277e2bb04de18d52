from .cards import card as card
from .catalogue import designs as designs
from .result import Card as Card, Row as Row
