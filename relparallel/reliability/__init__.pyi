from .bounding.certified import bounds as bounds
from .closed_forms.fat_tree_forms import (
    fat_tree_pair as fat_tree_pair,
    fat_tree_pods_connected as fat_tree_pods_connected,
)
from .closed_forms.leaf_spine_forms import (
    leaf_spine_leaves_connected as leaf_spine_leaves_connected,
    leaf_spine_pair as leaf_spine_pair,
)
from .closed_forms.survivability import accessible_servers as accessible_servers
from .evaluation import evaluate as evaluate
from .repair.component_availability import (
    availability as availability,
    unavailability as unavailability,
)
from .repair.outages import failure_frequency as failure_frequency
from .repair.stationary import stationary_distribution as stationary_distribution
from .result import Reliability as Reliability
from .sampling.estimation import estimate as estimate
from .sensitivity.comparison import compare as compare
