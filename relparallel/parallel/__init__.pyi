from .collective_forms import (
    COLLECTIVES as COLLECTIVES,
    collective as collective,
    collective_time as collective_time,
)
from .collectives import (
    Links as Links,
    bytes_sent as bytes_sent,
    execute as execute,
    ring_all_reduce as ring_all_reduce,
    rounds_time as rounds_time,
)
from .gpu_memory import Precision as Precision, memory as memory
from .grid import StrategyGrid as StrategyGrid
from .launchers import read_launch as read_launch, read_strategy as read_strategy
from .levels import (
    best_blueconnect_order as best_blueconnect_order,
    blueconnect_time as blueconnect_time,
)
from .machine_parameters import calibration as calibration
from .memory_forms import (
    activation_bytes_per_layer as activation_bytes_per_layer,
    model_state_bytes as model_state_bytes,
)
from .ordering import fluid_bound as fluid_bound, order as order, tune_partition as tune_partition
from .prices import price_strategies as price_strategies
from .round_plans import plan_rounds as plan_rounds
from .schedules import simulate_schedule as simulate_schedule
from .steady_state import bubble_fraction as bubble_fraction, weight_delay as weight_delay
from .step import step_time as step_time
from .strategy import Placement as Placement, Strategy as Strategy
from .strategy_text import notation as notation
