from .abridged import abridge as abridge
from .layouts import positions as positions
from .picture import draw_topology as draw_topology, gallery as gallery
from .splits import draw_split as draw_split
