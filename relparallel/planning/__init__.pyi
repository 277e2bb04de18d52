from .inputs import (
    FABRICS as FABRICS,
    notation as notation,
    read_cluster as read_cluster,
    read_strategy as read_strategy,
)
from .plans import plan as plan, sliders as sliders
