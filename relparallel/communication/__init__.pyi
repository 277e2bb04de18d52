from .congestion import (
    dctcp as dctcp,
    hpcc as hpcc,
    patched_timely as patched_timely,
    timely as timely,
)
from .descent import (
    delayed_descent as delayed_descent,
    least_squares_gradient as least_squares_gradient,
    quadratic_gradient as quadratic_gradient,
)
from .ecn import dcqcn as dcqcn, dcqcn_plus as dcqcn_plus
from .fluid import stability_probability as stability_probability
from .link_sharing import (
    buffer_cycle as buffer_cycle,
    expected_max_load as expected_max_load,
    pause_spread as pause_spread,
    place_flows as place_flows,
)
from .recurrence import largest_stable_step as largest_stable_step
from .staleness import (
    correction_decay as correction_decay,
    delayed_taps as delayed_taps,
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
