from .checkpoint_kinds import (
    in_memory as in_memory,
    just_in_time as just_in_time,
    parity as parity,
    remote as remote,
)
from .checkpoint_policies import (
    Cause as Cause,
    Checkpointing as Checkpointing,
    CheckpointLevel as CheckpointLevel,
)
from .checkpointing import (
    checkpoint_interval as checkpoint_interval,
    checkpoint_time as checkpoint_time,
    effective_training_time_ratio as effective_training_time_ratio,
    optimal_training_time_ratio as optimal_training_time_ratio,
)
from .crossover import break_even_repair as break_even_repair, crossovers as crossovers
from .domains import POLICIES as POLICIES, blast_radius as blast_radius, drop_rule as drop_rule
from .failing_parts import (
    failure_model as failure_model,
    published_network_rates as published_network_rates,
)
from .failure_logs import FailureLog as FailureLog
from .failure_readers import read_failure_log as read_failure_log
from .failure_sources import (
    NodeLives as NodeLives,
    Replay as Replay,
    SharedEvents as SharedEvents,
)
from .failures import ComponentClass as ComponentClass, FailureModel as FailureModel
from .goodput_forms import goodput as goodput
from .job_forms import Job as Job, relative_goodput as relative_goodput
from .job_shape import JobShape as JobShape
from .lifetimes import Lifetime as Lifetime
from .needed_parts import needed as needed
from .network_failures import network_impact as network_impact
from .recovery import statistical_efficiency as statistical_efficiency
from .recovery_policies import Recovery as Recovery
from .redundant_fabrics import redundant_fabric as redundant_fabric
from .rollback_forms import rollback as rollback
from .run_logs import read_run_log as read_run_log, start_ups as start_ups
from .simulation import simulate as simulate
from .spares import shortage_probability as shortage_probability, spares_needed as spares_needed
