from .layouts import positions as positions
from .picture import draw_topology as draw_topology
