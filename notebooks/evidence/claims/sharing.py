"""Published numbers: jobs that share a cluster, models a GPU, operators a chip."""

from typing import Any, Final

import numpy as np

from chapters import s38, s62
from evidence.claims._rows import derived
from evidence.claims.registry import Rows
from relparallel import hardware
from relparallel.published import Fact
from relparallel.units import MILLISECOND


def mean_completion(workload: str, policy: str) -> float:
    """Mean time of a replay, from ``data/derived/shared_clusters.csv``."""
    table = derived("shared_clusters").set_index(["workload", "policy"])
    return float(table["mean"][workload, policy])


def goodput(
    alpha_c: float,
    beta_c: float,
    alpha_n: float,
    beta_n: float,
    gamma: float,
    nodes: int,
    replicas: int,
    local: int,
    sqr: float,
    var: float,
    M0: int,
) -> tuple[float, float, float]:
    """Throughput, efficiency and their product."""
    job = s38.StatisticalGoodput(
        compute=alpha_c,
        compute_per_sample=beta_c,
        nodes=alpha_n,
        nodes_per_replica=beta_n,
        local=0.0,
        local_per_replica=0.0,
        overlap=gamma,
        noise=var / sqr * M0,
        batch=M0,
    )
    split = nodes, replicas, local
    return (
        float(job.throughput(*split)),
        float(job.efficiency(replicas * local)),
        float(job.goodput(*split)),
    )


def efficiency(phi: float, M0: int, M: int) -> float:
    """(noise + M0) / (noise + M)."""
    costs = dict.fromkeys(("compute", "compute_per_sample", "nodes", "nodes_per_replica"), 0.0)
    job = s38.StatisticalGoodput(
        **costs, local=0.0, local_per_replica=0.0, overlap=1.0, noise=phi, batch=M0
    )
    return float(job.efficiency(M))


def published_goodput(sets: int) -> float:
    """Largest relative difference from equations 4 to 8, written out with norm and variance."""
    draw, worst = np.random.default_rng(0), 0.0
    for _ in range(sets):
        a, b, n, dn, r, dr = draw.uniform(1e-4, 1, 6)
        gamma, sqr, var = draw.uniform(1, 10), *draw.uniform(0.1, 10, 2)
        nodes, m, s, base = (int(draw.integers(1, top)) for top in (5, 64, 4, 9))
        k = 2 * nodes
        summed = n + dn * (k - 2) if nodes > 1 else r + dr * (k - 2)
        step = s * (a + b * m) + ((a + b * m) ** gamma + summed**gamma) ** (1 / gamma)
        scale = k * m * (s + 1) * 8 / base
        expected = k * m * 8 * (s + 1) / step * (var + sqr) / (var / scale + sqr) / scale
        job = s38.StatisticalGoodput(
            compute=a,
            compute_per_sample=b / 8,
            nodes=n,
            nodes_per_replica=dn,
            local=r,
            local_per_replica=dr,
            overlap=gamma,
            noise=var / sqr * base,
            batch=base,
        )
        worst = max(worst, abs(float(job.goodput(nodes, k, 8 * m, s)) / expected - 1))
    return worst


def _interpolated(batches: str, milliseconds: str) -> list[float]:
    """Latencies [s] of a batch of 1, 2, ... between measured ones."""
    at, measured = ([float(x) for x in text.split()] for text in (batches, milliseconds))
    return list(np.interp(np.arange(1, int(at[-1]) + 1), at, measured) * MILLISECOND)


def duty_cycle(
    rate: float, objective: float, batches: str, latencies_ms: str
) -> tuple[float, float]:
    """Duty cycle and worst latency of the rest of a session [ms]."""
    plan = s38.nexus({"A": _interpolated(batches, latencies_ms)}, {"A": objective}, {"A": rate})
    row = plan.to_frame().iloc[-1]
    return float(row["duty"]) / MILLISECOND, float(row["worst"]) / MILLISECOND


def shared_gpus(fact: Fact, rates: str, objectives_ms: str, batches: str) -> tuple[int, int]:
    """GPUs in use for A with B, and for A with C."""
    names = "ABC"
    latency = {name: _interpolated(batches, str(fact.inputs[name])) for name in names}
    limit = dict(zip(names, (float(x) * MILLISECOND for x in objectives_ms.split()), strict=True))
    rate = dict(zip(names, map(float, rates.split()), strict=True))
    found = [
        s38.nexus(
            {n: latency[n] for n in pair}, {n: limit[n] for n in pair}, {n: rate[n] for n in pair}
        ).gpus
        for pair in ("AB", "AC")
    ]
    return found[0], found[1]


def groupings(instances: int, most_layers: int) -> int:
    """Random models whose best grouping among all is as good as the plan."""
    draw, same = np.random.default_rng(0), 0
    for _ in range(instances):
        send, compute = draw.uniform(0, 3, (2, int(draw.integers(2, most_layers + 1))))
        calls = dict(zip(("per_send", "per_group"), draw.uniform(0, 1, 2).tolist(), strict=True))
        least = _least_of_all(send, compute, **calls)
        same += abs(s38.switch_plan(send, compute, **calls).time - least) < 1e-12
    return same


def _least_of_all(send: Any, compute: Any, per_send: float, per_group: float) -> float:
    """Least end of all groupings, followed layer by layer."""
    n = send.size
    cut = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1 == 1
    cut[:, -1] = True
    now, held, groups = np.zeros((3, len(cut)))
    for i, arrival in enumerate(np.cumsum(send)):
        held, groups = held + compute[i], groups + cut[:, i]
        now = np.where(
            cut[:, i], np.maximum(now, arrival + per_send * groups) + per_group + held, now
        )
        held = np.where(cut[:, i], 0.0, held)
    return float(now.min())


def ridges(v100_peak: float, v100_rate: float) -> tuple[float, float, float]:
    """Operations per byte from which a GPU computes at its peak."""
    newer = [hardware.accelerator(name) for name in ("a100-40gb", "h100-80gb")]
    first, second = (gpu.peak["bf16"] / gpu.memory_bandwidth for gpu in newer)
    return v100_peak / v100_rate, first, second


def tiled_product(side: int, memory_bytes: float, element_bytes: float) -> tuple[float, float]:
    """Words of the best tile, and of a bound for any order of multiplications."""
    sizes = dict.fromkeys("mnk", side)
    gemm = s62.TileOperator(
        name="product", writes="C[m,n]", reads=("A[m,k]", "B[k,n]"), sizes=sizes
    )
    memory = memory_bytes / element_bytes
    return s62.tile_schedule([gemm], memory).words, 2 * side**3 / memory**0.5


ROWS: Final[Rows] = {
    "pollux_*_w6 | * | Pollux simulator": mean_completion,
    "pollux_goodput_fn": goodput,
    "gns_eff": efficiency,
    "adaptdl_goodput": published_goodput,
    "nexus_toy_A": duty_cycle,
    "nexus_fig2": shared_gpus,
    "pipeswitch_dp": groupings,
    "roofline_ridge": ridges,
    "welder_gemm": tiled_product,
}
