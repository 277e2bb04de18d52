from .inputs import FABRICS as FABRICS, read_cluster as read_cluster
from .plans import plan as plan
