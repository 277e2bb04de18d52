"""Theorems on redundancy, replication, spares and break-even points."""

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom
from theorem_table import theorem

from chapters import s43
from relparallel import training, units
from relparallel.training import redundancy
from relparallel.training.spares import loss_probability


@theorem("THM-pollux-goodput", system="Elastic and redundant recovery")
def test_pollux_goodput():
    """Speed x statistical efficiency of a shrunk batch is Pollux's goodput over the full one's."""
    # Three of four replicas, a noise scale of 0.8 batches: (throughput) (phi + M0) / (phi + M) of
    # both.
    batch, noise, left = 1024.0, 0.8 * 1024.0, 0.75
    pollux = [share * (noise + 128.0) / (noise + share * batch) for share in (left, 1.0)]
    return left * float(training.statistical_efficiency(left, noise / batch)), pollux[0] / pollux[1]


_SHAPE = training.JobShape(nodes=2048, replicas=128, stages=16, tensor=8, nodes_per_replica=16)


@theorem("THM-elastic-mixture", system="Elastic and redundant recovery")
def test_elastic_mixture():
    """The mean of C(N-g,k)/C(N,k) over binomially many failed nodes is a^g."""
    # Both sides on 2,048 nodes of which 2 % are down.
    chance = binom.pmf(np.arange(2049), 2048, 0.02)
    return float(chance @ training.Recovery("elastic", units.DAY).speed(_SHAPE, 2048)), 0.98**16


@theorem("THM-bamboo-power", system="Elastic and redundant recovery")
def test_bamboo_power():
    """D pipelines survive k failures as often as coefficient k of the D-th power says."""
    # Independent failures as a mixture of the numbers that fail, 8 pipelines of 12.
    survive = [redundancy.pipeline_survival(12, k, pipelines=8) for k in range(97)]
    mixed = binom.pmf(np.arange(97), 96, 0.05) @ survive
    return float(mixed), redundancy.independent_failures_survived(12, 8, 0.05)


@theorem("THM-pairs-mtti", system="Elastic and redundant recovery")
def test_pairs_mtti():
    """b pairs last int (1 - (1 - e^-t)^2)^b dt times the life of one process."""
    # Both sides for 100 pairs.
    lasting, _ = quad(
        lambda t: (1 - (1 - np.exp(-t)) ** 2) ** 100, 0, 50, epsabs=1e-13, epsrel=1e-12
    )
    return redundancy.pair_failures(100) / 200, float(lasting)


@theorem("THM-crews-enough", system="Spare and maintenance planning")
def test_crews_enough():
    """As many crews as nodes can be down give Erlang's formula."""
    # Both sides on 2,048 nodes with 8 spares and 9 crews.
    limited = training.shortage_probability(
        nodes=2048, spares=8, node_rate=0.00379, repair=1.0, crews=9
    )
    return float(limited), float(loss_probability(9, 2048 * 0.00379))


@theorem("THM-elastic-against-spares", system="Elastic and redundant recovery")
def test_elastic_against_spares():
    """a^g / (1 + N lam t) equals a share x at lam r = (x (1 + N lam t))^(-1/g) - 1."""
    # The share of a job with 64 spares of 2,048 nodes, and the elastic throughput at its
    # break-even.
    rate = 3.79e-3 / units.DAY
    share = (
        1984 / 2048 * float(training.optimal_training_time_ratio(20.0, 1 / (1984 * rate), 300.0))
    )
    repair = ((share * (1 + 2048 * rate * 30.0)) ** (-1 / 16) - 1) / rate
    return share, float(s43.elastic_throughput(2048, 16, rate, repair, 30.0))
