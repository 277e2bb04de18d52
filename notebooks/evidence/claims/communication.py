"""Published numbers of compressed, asynchronous and large-batch training."""

from typing import Any, Final

import numpy as np
from scipy.special import ndtri

from chapters import descent, s36, s38, s40
from evidence.claims.registry import Rows
from relparallel import parallel


def _normal(*shape: int) -> np.ndarray:
    """Random numbers, the same every time."""
    return np.random.default_rng(1).normal(size=shape)


def _constant(value: np.ndarray) -> Any:
    """A gradient that is the same everywhere."""
    return lambda forward, backward: value


def _milliseconds(
    kind: str, name: str, ranks: int, numbers: int, alpha: float, beta: float
) -> float:
    """Price of a collective on links of that latency and time per number."""
    links = parallel.Links(
        latency=alpha, bandwidth=1 / beta, network_latency=0.0, network_bandwidth=1.0
    )
    rounds = parallel.collective(kind, name, ranks, numbers)
    return 1e3 * parallel.rounds_time(rounds, ranks, links, element_bytes=1)


def broken_variance_bounds(cases: int) -> int:
    """Vectors of many sizes and shapes whose exact variance exceeds the bound."""
    sizes = np.geomspace(10, 1e6, cases).astype(int)
    draws = [np.random.default_rng(n).standard_t(2, n) for n in sizes]
    return sum(
        s36.qsgd(s).variance(v) > (1 + 1e-12) * min(v.size / s**2, v.size**0.5 / s) * (v @ v)
        for v in draws
        for s in (1, 4, 64)
    )


def sparse_bits(n: int, s: int, draws: int) -> float:
    """Mean length of the code of normal vectors."""
    rng = np.random.default_rng(1)
    return float(np.mean([s36.qsgd(s).encode(rng.normal(size=n), rng).bits for _ in range(draws)]))


def sign_error(n: int) -> float:
    """Squared error over squared norm, at evenly spaced quantiles of the normal distribution."""
    v = ndtri((np.arange(n) + 0.5) / n)
    return s36.one_bit().variance(v) / float(v @ v)


def momentum_difference(beta: float, steps: int, d: int, k: int) -> float:
    """Weights of dense momentum against those of compressed momentum, corrected by the residual."""
    gradients = iter(_normal(steps, d))
    memory: Any = None
    method = s36.ErrorFeedback(s36.top_k(k / d), momentum=beta)
    dense = sparse = velocity = np.zeros(d)
    for gradient in gradients:
        velocity = beta * velocity + gradient
        message, memory = method.send(gradient, memory)
        dense, sparse = dense - 0.1 * velocity, sparse - 0.1 * message.decode()
        worst = np.abs(dense - (sparse - 0.1 * memory.residual)).max()
    return float(worst)


def broken_contractions(cases: int, d: int) -> int:
    """Random vectors whose error exceeds the bound."""
    shares = np.linspace(0.02, 1, cases)
    vectors = np.random.default_rng(1).standard_t(2, (cases, d))
    return sum(
        s36.top_k(p).variance(v) > (1 - s36.top_k(p).contraction(d)) * (v @ v) * (1 + 1e-12)
        for p, v in zip(shares, vectors, strict=True)
    )


def straggler_rate(P: int, s: int, slow: float) -> float:
    """Of the waiting recursion where one worker is always slow."""
    times = np.ones((20_000, P))
    times[:, 0] = slow
    return s40.asynchronous_run(times, s).throughput


def step_length_error(rate: float, smallest: float, largest: float) -> float:
    """Length of an update over rate and weights, for gradients of both scales."""
    w, g = _normal(2, 50)
    rule = s38.UpdateRule(trust=1.0)
    slopes = [rule.directed(_constant(scale * g)) for scale in (smallest, largest)]
    updates = [descent.delayed_descent(slope, w, [rate], 0)[1] - w for slope in slopes]
    return float(max(abs(np.linalg.norm(u) / (rate * np.linalg.norm(w)) - 1) for u in updates))


ROWS: Final[Rows] = {
    # Exact variance over the squared norm.
    "qsgd_var_ones": lambda n, s: s36.qsgd(s).variance(np.ones(n)) / n,
    "qsgd_dense": (
        lambda n, s: s36.qsgd(s).encode(np.ones(n), np.random.default_rng(1)).bits,
        {
            "qsgd_dense": "Every |v_i|/|v| is exactly 1/s: all levels and gaps are 1, and the code "
            "of "
            "section 3.1 takes 1 + 1 + 1 bits for each number, 3 n + 32. The bound is for an "
            "encoding of the "
            "paper's full version, which was not read; Elias codes of level + 1 and signs of what "
            "is "
            "not 0 take 4 n here, 2.94 n on normal vectors."
        },
    ),
    # Of a million numbers, over what TernGrad sends of them, its scale of 32 bits aside.
    "terngrad_ratio": lambda bits: (
        bits * 10**6 / (s36.terngrad().encode(np.ones(10**6), np.random.default_rng(1)).bits - 32)
    ),
    "sbc_golomb_*": lambda p: s36.golomb_bits(p),
    "dgc_warmup": (
        lambda epochs, least: tuple(
            s36.feedback.deep_gradient_compression(epoch, density=least).compressor.contraction(
                4**9
            )
            for epoch in range(epochs)
        ),
        {
            "dgc_warmup": "The third number is 4**-3 = 0.015625, cut after three decimals; the "
            "second, "
            "0.0625, is rounded."
        },
    ),
    # Values and positions gathered from all, and added up over the tree; priced round by round.
    "gtopk_P*": lambda P, k, alpha, beta: (
        _milliseconds("all_gather", "bruck", P, 2 * k * P, alpha, beta),
        _milliseconds("all_reduce", "tree", P, 2 * k, alpha, beta),
    ),
    "gtopk_readme_*": (
        lambda P, k, alpha, beta: _milliseconds("all_reduce", "tree", P, 2 * k, alpha, beta),
        {
            "gtopk_readme_P8": "The README counts log2 P rounds, as if partners exchanged their "
            "sums; the "
            "code, like the executed tree, reduces in log2 P rounds and broadcasts in as many: "
            "both "
            "coefficients are twice as large."
        },
    ),
    "gtopk_eff_*": lambda compute, compress, communicate: (
        compute / (compute + compress + communicate)
    ),
    "bsp_exp_* ssp_P2_* ssp_P8_s1 ssp_P8_s3": lambda P, s: s40.ssp_throughput(P, s),
    "ssp_P8_s10": lambda P, s, clocks: (
        s40.asynchronous_run(np.random.default_rng(1).exponential(size=(clocks, P)), s).throughput
    ),
    "goyal_lr": lambda batch, images, epochs: s38.batch.large_batch_rates(
        batch, images, epochs
    ).max(),
    "goyal_iters": lambda batch, images, epochs: (
        s38.batch.large_batch_rates(batch, images, epochs).size
    ),
    "qsgd_var_bound": broken_variance_bounds,
    "qsgd_bits_sparse": sparse_bits,
    "onebit_err": sign_error,
    "dgc_momentum_identity": momentum_difference,
    "memsgd_contraction": broken_contractions,
    "ssp_persistent": straggler_rate,
    "lars_invariance": step_length_error,
}
