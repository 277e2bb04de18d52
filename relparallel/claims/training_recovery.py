"""Redundancy, replication, spares and break-even points: rows of ``training-reliability`` and theorems."""

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom

from relparallel import training, units
from relparallel.book import s42, s47
from relparallel.claims.registry import reproduces, theorem
from relparallel.published import Fact
from relparallel.training import redundancy
from relparallel.training.spares import loss_probability


@reproduces("BAM-00*")
def neighbours_survive(fact: Fact, P: int, k: int) -> float:
    """Probability that no two neighbours of a pipeline fail."""
    return redundancy.pipeline_survival(stages=P, failures=k, ring=fact.system.endswith("ring"))


@reproduces("BAM-010")
def pipelines_survive(P: int, D: int, q: float) -> float:
    """Probability that all pipelines survive independent failures."""
    return redundancy.independent_failures_survived(stages=P, pipelines=D, node_down=q)


@reproduces("REP-001")
def failures_of_pairs(b: int) -> float:
    """Failures until a pair is gone."""
    return redundancy.pair_failures(b)


@reproduces("REP-002")
def time_of_pairs(b: int) -> float:
    """Mean time to interruption over that of one process."""
    return redundancy.pair_failures(b) / (2 * b)


@reproduces("START-*")
def start_up(nodes: int) -> float:
    """Start-up of a job, from the law of the five other sizes."""
    known = training.start_ups().query("software == 'nemo-2023' and nodes != @nodes")
    return float(s47.start_up_law(known["nodes"], known["seconds"])(nodes))


@theorem("THM-pollux-goodput", system="Elastic and redundant recovery")
def pollux_goodput() -> tuple[float, float]:
    """Speed times statistical efficiency of a shrunk batch is Pollux's goodput over that of the full one."""
    # Three of four replicas, a noise scale of 0.8 batches: (throughput) (phi + M0) / (phi + M) of both.
    batch, noise, left = 1024.0, 0.8 * 1024.0, 0.75
    pollux = [share * (noise + 128.0) / (noise + share * batch) for share in (left, 1.0)]
    return left * float(training.statistical_efficiency(left, noise / batch)), pollux[0] / pollux[1]


_SHAPE = training.JobShape(nodes=2048, replicas=128, stages=16, tensor=8, nodes_per_replica=16)


@theorem("THM-elastic-mixture", system="Elastic and redundant recovery")
def elastic_mixture() -> tuple[float, float]:
    """The mean of C(N-g,k)/C(N,k) over binomially many failed nodes is a^g."""
    # Both sides on 2,048 nodes of which 2 % are down.
    chance = binom.pmf(np.arange(2049), 2048, 0.02)
    return float(chance @ training.Recovery("elastic", units.DAY).speed(_SHAPE, 2048)), 0.98**16


@theorem("THM-bamboo-power", system="Elastic and redundant recovery")
def bamboo_power() -> tuple[float, float]:
    """D pipelines survive k failures as often as coefficient k of the D-th power says."""
    # Independent failures as a mixture of the numbers that fail, 8 pipelines of 12.
    survive = [redundancy.pipeline_survival(12, k, pipelines=8) for k in range(97)]
    mixed = binom.pmf(np.arange(97), 96, 0.05) @ survive
    return float(mixed), redundancy.independent_failures_survived(12, 8, 0.05)


@theorem("THM-pairs-mtti", system="Elastic and redundant recovery")
def pairs_mtti() -> tuple[float, float]:
    """b pairs last int (1 - (1 - e^-t)^2)^b dt times the life of one process."""  # noqa: D403
    # Both sides for 100 pairs.
    lasting, _ = quad(lambda t: (1 - (1 - np.exp(-t)) ** 2) ** 100, 0, 50, epsabs=1e-13, epsrel=1e-12)
    return redundancy.pair_failures(100) / 200, float(lasting)


@theorem("THM-crews-enough", system="Spare and maintenance planning")
def crews_enough() -> tuple[float, float]:
    """As many crews as nodes can be down give Erlang's formula."""
    # Both sides on 2,048 nodes with 8 spares and 9 crews.
    limited = training.shortage_probability(nodes=2048, spares=8, node_rate=0.00379, repair=1.0, crews=9)
    return float(limited), float(loss_probability(9, 2048 * 0.00379))


@theorem("THM-elastic-against-spares", system="Elastic and redundant recovery")
def elastic_against_spares() -> tuple[float, float]:
    """a^g / (1 + N lam t) equals a share x at lam r = (x (1 + N lam t))^(-1/g) - 1."""
    # The share of a job with 64 spares of 2,048 nodes, and the elastic throughput at its break-even.
    rate = 3.79e-3 / units.DAY
    share = 1984 / 2048 * float(training.optimal_training_time_ratio(20.0, 1 / (1984 * rate), 300.0))
    repair = ((share * (1 + 2048 * rate * 30.0)) ** (-1 / 16) - 1) / rate
    return share, float(s42.elastic_throughput(2048, 16, rate, repair, 30.0))
