from .asynchrony import (
    asynchronous_run as asynchronous_run,
    asynchronous_taps as asynchronous_taps,
    ssp_throughput as ssp_throughput,
)
from .batch import UpdateRule as UpdateRule, noise_scale as noise_scale
from .compression import (
    global_top_k as global_top_k,
    golomb_bits as golomb_bits,
    one_bit as one_bit,
    qsgd as qsgd,
    random_k as random_k,
    reduced_precision as reduced_precision,
    sparse_binary as sparse_binary,
    terngrad as terngrad,
    top_k as top_k,
)
from .congestion import dctcp as dctcp, hpcc as hpcc, patched_timely as patched_timely, timely as timely
from .descent import (
    delayed_descent as delayed_descent,
    least_squares_gradient as least_squares_gradient,
    quadratic_gradient as quadratic_gradient,
)
from .ecn import dcqcn as dcqcn, dcqcn_plus as dcqcn_plus
from .feedback import CompressedGradient as CompressedGradient, ErrorFeedback as ErrorFeedback
from .fluid import stability_probability as stability_probability
from .linear_models import cocoa as cocoa
from .link_sharing import (
    buffer_cycle as buffer_cycle,
    expected_max_load as expected_max_load,
    pause_spread as pause_spread,
    place_flows as place_flows,
)
from .problems import logistic_problem as logistic_problem, network_problem as network_problem
from .staleness import (
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
    largest_stable_step as largest_stable_step,
    pipeline_delays as pipeline_delays,
    rescheduled_rate as rescheduled_rate,
    stable_step as stable_step,
)
from .transport import (
    credit_rate as credit_rate,
    incast_goodput as incast_goodput,
    loss_goodput as loss_goodput,
    packet_efficiency as packet_efficiency,
    pfc_headroom as pfc_headroom,
)
