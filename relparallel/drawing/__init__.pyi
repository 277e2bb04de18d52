from .abridged import abridge as abridge
from .gallery import gallery as gallery
from .layouts import positions as positions
from .picture import draw_topology as draw_topology
from .splits import draw_split as draw_split
