"""Notebook 24: congestion control as delay equations, losses, pauses, flows that share links."""

from chapters.s24.congestion import (
    dctcp as dctcp,
    hpcc as hpcc,
    patched_timely as patched_timely,
    timely as timely,
)
from chapters.s24.ecn import dcqcn as dcqcn, dcqcn_plus as dcqcn_plus
from chapters.s24.fluid import stability_probability as stability_probability
from chapters.s24.link_sharing import (
    buffer_cycle as buffer_cycle,
    expected_max_load as expected_max_load,
    pause_spread as pause_spread,
    place_flows as place_flows,
)
from chapters.s24.transport import (
    credit_rate as credit_rate,
    incast_goodput as incast_goodput,
    loss_goodput as loss_goodput,
    packet_efficiency as packet_efficiency,
    pfc_headroom as pfc_headroom,
)
