from .cluster_files import read_cluster as read_cluster
from .inputs import FABRICS as FABRICS
from .own_measurements import learn as learn
from .plans import plan as plan
from .studies import study as study
