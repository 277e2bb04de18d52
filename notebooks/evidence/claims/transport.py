"""Published margins, delays and bounds of congestion control."""

from math import log
from typing import Any, Final

import numpy as np

from chapters import s24
from chapters.s24.ecn import Dcqcn
from evidence.claims.registry import Rows
from relparallel.published import Fact
from relparallel.units import GBIT, KB, MICROSECOND

_KEYS = {
    "kmin": "Kmin",
    "kmax": "Kmax",
    "pmax": "pmax",
    "gain": "g",
    "cnp_interval": "tau",
    "byte_counter": "B",
    "alpha_interval": "tau'",
    "recovery": "F",
    "timer": "T",
}


def _megabits(text: Any) -> float:
    """A rate written in Mb/s, in bytes/s."""
    return float(str(text).removesuffix("Mb/s")) * GBIT / 1000


def _dcqcn(fact: Fact, **others: Any) -> Dcqcn:
    """DCQCN with the parameters of a row."""
    row: Any = fact.inputs
    given = {name: row[key] for name, key in _KEYS.items()}
    given |= {"flows": row.get("N", 1), "rate": row["C"], "feedback_delay": row.get("delay", 0.0)}
    packet = float(str(row["pkt"]).removesuffix("bit")) / 8
    return s24.dcqcn(**given | {"increase": _megabits(row["R_AI"]), "packet": packet} | others)


def _patched(fact: Fact) -> Any:
    """Patched TIMELY with the parameters of a row."""
    row: Any = fact.inputs
    return s24.patched_timely(
        flows=row["N"],
        rate=row["C"],
        feedback_delay=row.get("Dprop", 0.0),
        burst=row["Seg"],
        packet_size=row["MTU"],
        increase=_megabits(row["delta"]),
        low=row["Tlow"],
        shortest=row["minRTT"],
        decrease=row["beta"],
        smoothing=row["alpha"],
    )


def _hpcc(eta: float, N: int, share: float) -> Any:
    whole = 100 * GBIT * 10e-6
    return s24.hpcc(
        flows=N,
        rate=100 * GBIT,
        feedback_delay=10e-6,
        target=eta,
        increase=share * whole * (1 - eta) / N,
    )


def dcqcn_first_off_the_ramp(fact: Fact) -> int:
    """Fewest flows without a valid fixed point."""
    flows = np.arange(1, 200)
    return int(flows[~_dcqcn(fact, flows=flows).fixed_point().valid][0])


def dcqcn_stable(fact: Fact) -> tuple[int, ...]:
    """By the roots of the exact linearisation."""
    found = _dcqcn(
        fact, flows=np.array([2, 10]), feedback_delay=np.array([[85e-6], [4e-6]])
    ).stable()
    return tuple(int(stable) for stable in found.ravel())


def dcqcn_root_error(fact: Fact, nodes: int) -> float:
    """Against 40 nodes, at 25 settings."""
    flows, delays = np.arange(2.0, 11, 2), np.linspace(20e-6, 100e-6, 5)[:, None]
    model = _dcqcn(fact, flows=flows, feedback_delay=delays)
    exact = model.rightmost_root(nodes=40)
    return float(np.max(np.abs(model.rightmost_root(nodes=nodes) - exact) / np.abs(exact)))


def timely_convergence(fact: Fact, N: int) -> float:
    """From the slowest root of differences between flows."""
    mode = _patched(fact).linear()[1]
    return -log(N / 0.1) / float(np.linalg.eigvals(mode.now[0]).real.max())


def timely_fixed_points(C: float, beta: float, alpha: float, N: int) -> tuple[int, int]:
    """Fair states that stand still; and, where rates fall at g = 0, directions in which all do."""
    model = s24.timely(flows=N, rate=C, feedback_delay=0.0, decrease=beta, smoothing=alpha)
    p = model.values()
    p.count = np.ones((N, 1))
    fair = np.stack([np.full((N, 1), C / N), np.zeros((N, 1)), np.full((N, 1), C * 100e-6)])

    def stands(state: Any) -> bool:
        change = model.derivative(p, state, state, state) / np.array([C, 1.0, C])[:, None, None]
        return bool(np.abs(change).max() < 1e-3)  # per second

    unequal = np.array([1.0, -1.0] + [0.0] * (N - 2))
    moves = np.array(
        [
            [0.1 * C / N * unequal, 0 * unequal, 0 * unequal],
            [0 * unequal, 0.1 + 0 * unequal, 0 * unequal],
            [0.1 * C / N + 0 * unequal, 0 * unequal, 0 * unequal],
            [0 * unequal, 0 * unequal, C * 1e-5 + 0 * unequal],
        ]
    )[..., None]
    # just inside the branch of falling rates
    falling = fair + np.array([0.0, 1e-9, 0.0])[:, None, None]
    return int(stands(fair)), sum(stands(falling + move) for move in moves)


def hpcc_load(eta: float, N: int, share: float) -> float:
    """Of a run from a twentieth of the rate."""
    model = _hpcc(eta, N, share)
    run = model.simulate(5e-3, 5e-6, rates=[model.rate / 20 / N])
    return float(run.rates[-1, 0] * N / model.rate)


def hpcc_contraction(eta: float, N: int, share: float) -> float:
    """Of the difference of two windows, by one step of a round trip at a full load."""
    p = _hpcc(eta, N, share).values()
    p.count = np.ones((2, 1))
    window = p.rate * p.round_trip * np.array([[0.7], [0.3]])
    state = np.stack([window, 0 * window])
    change = s24.hpcc.derivative(p, state, state)[0] * p.round_trip
    return 1 + float((change[0] - change[1])[0] / (window[0] - window[1])[0])


def irn_cap(C: float, RTT: float, MTU: float) -> tuple[float, float]:
    """Buffer that a one-round-trip window fills, and its packets: a credit loop of that length."""
    packets = np.arange(1, 1000)
    loop = RTT - MTU / C  # beside the packet itself
    full = s24.credit_rate(packets * MTU, rate=C, length=0.0, packet=MTU, response=loop) >= C
    return float(packets[full][0] * MTU), float(packets[full][0])


ROWS: Final[Rows] = {
    # By the linear model of the paper's appendix, and by the slope that the authors' script has.
    "dcqcn_pm_*": lambda fact: _dcqcn(fact).phase_margin(model="published"),
    "timely_pm_*": lambda fact: _patched(fact).phase_margin(model="published"),
    "dcqcn_convergence_*": lambda fact: _dcqcn(fact).convergence_bound(),
    "dcqcn_pstar_exact_*": lambda fact: _dcqcn(fact).fixed_point().marking,
    "dcqcn_qstar_exact_* dcqcn_pub_sim_q_*": lambda fact: _dcqcn(fact).fixed_point().queue / KB,
    "dcqcn_critdelay_exact_*": lambda fact: _dcqcn(fact).critical_delay() / MICROSECOND,
    "timely_patched_qstar_*": lambda fact: _patched(fact).fixed_point().queue / KB,
    # The part of the headroom that grows with the cable.
    "pfc_hr_gbe": lambda C, length: s24.pfc_headroom(C, length) - s24.pfc_headroom(C, 0.0),
    "incast_rto200": lambda S, C, RTO: s24.incast_goodput(S, C, RTO) / GBIT * 1000,
    "incast_rto1": lambda S, C, RTO: s24.incast_goodput(S, C, RTO) / C,
    "dcqcn_validN_*": dcqcn_first_off_the_ramp,
    "dcqcn_pub_stability": dcqcn_stable,
    "dcqcn_cheb_nodes": dcqcn_root_error,
    "timely_patched_conv_*": timely_convergence,
    "timely_orig_fixedpoints": timely_fixed_points,
    "hpcc_fix": hpcc_load,
    "hpcc_fair": hpcc_contraction,
    "irn_bdp": irn_cap,
}
