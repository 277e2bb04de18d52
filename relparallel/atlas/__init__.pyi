from .cards import card as card
from .catalogue import designs as designs
