from .inputs import FABRICS as FABRICS, read_cluster as read_cluster
from .own_runs import learn as learn
from .plans import plan as plan
from .study import study as study
