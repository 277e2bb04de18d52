from .bounding.certified import bounds as bounds
from .closed_forms.fat_tree_forms import (
    fat_tree_pair as fat_tree_pair,
    fat_tree_pods_connected as fat_tree_pods_connected,
)
from .closed_forms.leaf_spine_forms import (
    leaf_spine_leaves_connected as leaf_spine_leaves_connected,
    leaf_spine_pair as leaf_spine_pair,
    leaf_spine_pair_bandwidth as leaf_spine_pair_bandwidth,
)
from .closed_forms.survivability import (
    accessible_servers as accessible_servers,
    mean_time_to_isolation as mean_time_to_isolation,
    smallest_cuts as smallest_cuts,
)
from .exact import evaluate as evaluate
from .extensions.counting import polynomial as polynomial, survival_signature as survival_signature
from .repair.stationary import stationary_distribution as stationary_distribution
from .repair.steady_state import (
    availability as availability,
    common_cause_unavailability as common_cause_unavailability,
    multiple_greek_letters as multiple_greek_letters,
    unavailability as unavailability,
)
from .result import Reliability as Reliability
from .sampling.estimation import estimate as estimate, estimator_table as estimator_table
