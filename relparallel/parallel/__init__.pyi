from .bubbles import Filling as Filling, fill_bubbles as fill_bubbles
from .calibration import (
    Calibration as Calibration,
    Software as Software,
    calibration as calibration,
    software as software,
    softwares as softwares,
)
from .collective_time import (
    COLLECTIVES as COLLECTIVES,
    collective as collective,
    collective_time as collective_time,
    crossover_size as crossover_size,
)
from .collectives import (
    bytes_sent as bytes_sent,
    execute as execute,
    ring_all_reduce as ring_all_reduce,
)
from .evaluate import Evaluation as Evaluation, evaluate as evaluate
from .feasibility import REASONS as REASONS
from .fitting import (
    calibrate as calibrate,
    cross_validate as cross_validate,
    errors as errors,
    prediction_scatter as prediction_scatter,
)
from .grid import StrategyGrid as StrategyGrid
from .group_links import GroupLinks as GroupLinks, group_links as group_links
from .links import Links as Links, rounds_time as rounds_time
from .measured_runs import Run as Run, measured_runs as measured_runs
from .memory import StageMemory as StageMemory, Verdict as Verdict, memory as memory
from .memory_forms import (
    activation_bytes_per_layer as activation_bytes_per_layer,
    micro_batches_in_flight as micro_batches_in_flight,
    model_state_bytes as model_state_bytes,
    stage_activation_bytes as stage_activation_bytes,
    zero_communication_bytes as zero_communication_bytes,
)
from .overlap import (
    overlap_time as overlap_time,
    overlap_timeline as overlap_timeline,
    prefetched_time as prefetched_time,
)
from .precision import PRECISIONS as PRECISIONS, Precision as Precision
from .schedules import simulate_schedule as simulate_schedule
from .steady_state import (
    bubble_fraction as bubble_fraction,
    iteration_period as iteration_period,
    weight_delay as weight_delay,
    weight_versions as weight_versions,
)
from .step_time import StepTime as StepTime, step_time as step_time
from .step_timeline import step_timeline as step_timeline
from .strategy import Placement as Placement, Strategy as Strategy
from .synthesis import BestOrder as BestOrder, best_order as best_order
from .timeline import Timeline as Timeline, simulate_timeline as simulate_timeline
from .volume import Collective as Collective, strategy_collectives as strategy_collectives
