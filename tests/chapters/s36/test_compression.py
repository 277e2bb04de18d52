"""Compressors against brute force, bounds, real codes; what feedback keeps and a sum tree loses."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from chapters import s36
from chapters.s31.precision import lost_gradients
from chapters.s36.compression import (
    elias_lengths,
    golomb_lengths,
    golomb_parameter,
)
from chapters.s36.feedback import deep_gradient_compression
from pace import pace

few = settings(max_examples=60, deadline=None)
numbers = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
vectors = st.integers(1, 40).flatmap(lambda n: arrays(float, n, elements=numbers))
small = st.integers(1, 7).flatmap(lambda n: arrays(float, n, elements=numbers))
densities = st.floats(0.01, 0.99)
RANDOM = {"qsgd": s36.qsgd(2), "terngrad": s36.terngrad(), "random": s36.random_k(0.3)}
BIASED = [s36.one_bit(), s36.top_k(0.2), s36.sparse_binary(0.2), s36.reduced_precision("fp8")]


def outcomes(v: np.ndarray, s: int, scale: float) -> list[tuple[float, np.ndarray]]:
    """Every vector that rounding to multiples of scale/s can give, with its probability."""
    low = np.floor(s * np.abs(v) / scale + 1e-13)
    up = np.clip(s * np.abs(v) / scale - low, 0, 1)
    found = []
    for chosen in product((0, 1), repeat=v.size):
        raised = np.array(chosen)
        found.append(
            (np.prod(np.where(raised, up, 1 - up)), np.sign(v) * (low + raised) * scale / s)
        )
    return found


@given(v=small, s=st.integers(1, 5))
@few
def test_the_variance_of_random_rounding_is_that_of_all_its_outcomes(v, s):
    for method, levels, scale in (
        (s36.qsgd(s), s, np.linalg.norm(v)),
        (s36.terngrad(), 1, np.abs(v).max()),
    ):
        every = outcomes(v, levels, scale or 1.0)
        assert sum(p * q for p, q in every) == pytest.approx(v, abs=1e-9)  # unbiased
        exact = sum(p * np.sum((q - v) ** 2) for p, q in every)
        assert method.variance(v) == pytest.approx(exact, rel=1e-9, abs=1e-9 * (1 + v @ v))


@pytest.mark.parametrize("name", RANDOM)
def test_what_is_sent_has_that_mean_and_that_variance(name):
    rng, method = np.random.default_rng(5), RANDOM[name]
    v = rng.normal(size=30)
    many = pace(4000, 20_000)
    sent = np.array([method.encode(v, rng).decode() for _ in range(many)])
    errors = np.sum((sent - v) ** 2, axis=1)
    assert errors.mean() == pytest.approx(method.variance(v), abs=5 * errors.std() / many**0.5)
    mean = v if name != "random" else 0.3 * v
    assert np.all(np.abs(sent.mean(axis=0) - mean) <= 5 * sent.std(axis=0) / many**0.5 + 1e-12)


@given(v=vectors, s=st.integers(1, 50))
def test_qsgd_stays_below_its_bound(v, s):
    bound = min(v.size / s**2, v.size**0.5 / s)
    assert s36.qsgd(s).variance(v) <= bound * (v @ v) * (1 + 1e-9)
    assert s36.qsgd(s).contraction(v.size) == pytest.approx(1 - bound)


@pytest.mark.parametrize("n", [4, 100, 10_000])
def test_the_bound_of_terngrad_is_reached(n):
    v = np.full(n, 1 / (1 + n**0.5))
    v[0] = 1.0
    loss = 1 - s36.terngrad().contraction(n)
    assert s36.terngrad().variance(v) == pytest.approx(loss * (v @ v))


@given(v=vectors, p=densities)
def test_biased_compressors_contract_and_ternary_gradients_stay_below_their_bound(v, p):
    biased = s36.one_bit(), s36.top_k(p), s36.random_k(p), s36.sparse_binary(p)
    assert all(method.contraction(v.size) > 0 for method in biased)
    for method in (*biased, s36.terngrad()):
        loss = 1 - method.contraction(v.size)
        assert method.variance(v) <= loss * (v @ v) * (1 + 1e-9) + 1e-9, method.name


@given(v=small, p=densities)
@few
def test_top_k_is_the_best_choice_and_random_k_the_average_one(v, p):
    k = max(1, round(p * v.size))
    losses = [v @ v - sum(v[list(kept)] ** 2) for kept in combinations(range(v.size), k)]
    assert s36.top_k(p).variance(v) == pytest.approx(min(losses), abs=1e-6)
    assert s36.random_k(p).variance(v) == pytest.approx(np.mean(losses), abs=1e-6)


@given(v=vectors)
def test_one_bit_keeps_the_sum_and_sends_two_values(v):
    message = s36.one_bit().encode(v)
    assert message.decode().sum() == pytest.approx(v.sum(), abs=1e-7)
    assert len(set(message.values.tolist())) <= 2
    assert message.bits == v.size + 64
    groups = [v[v >= 0], v[v < 0]]
    assert s36.one_bit().variance(v) == pytest.approx(
        sum(g.size * g.var() for g in groups if g.size), abs=1e-6
    )


@given(v=vectors, p=densities)
def test_sparse_binary_sends_one_value_of_the_stronger_sign(v, p):
    message = s36.sparse_binary(p).encode(v)
    k = max(1, round(p * v.size))
    up, down = (sorted(s * x for x in v if s * x > 0)[-k:] for s in (1, -1))
    sent = np.array(up if sum(up) >= sum(down) else [-x for x in down])
    assert sorted(v[message.positions]) == pytest.approx(np.sort(sent))
    assert message.values == pytest.approx(np.full(sent.size, sent.mean() if sent.size else 0.0))


def golomb(gaps: list[int], b: int) -> str:
    return "".join(
        "1" * ((g - 1) >> b) + "0" + (f"{(g - 1) % 2**b:0{b}b}" if b else "") for g in gaps
    )


def omega(number: int) -> str:
    code = "0"
    while number > 1:
        code, number = f"{number:b}" + code, number.bit_length() - 1
    return code


def read_omega(bits: str, at: int) -> tuple[int, int]:
    number = 1
    while bits[at] == "1":
        number, at = int(bits[at : at + number + 1], 2), at + number + 1
    return number, at + 1


def read_golomb(bits: str, b: int) -> list[int]:
    gaps, at = [], 0
    while at < len(bits):
        units = bits.index("0", at) - at
        at += units + 1 + b
        gaps.append((units << b) + (int(bits[at - b : at], 2) if b else 0) + 1)
    return gaps


@given(found=st.lists(st.integers(1, 10**6), min_size=1, max_size=20), b=st.integers(7, 14))
def test_lengths_are_those_of_codes_that_can_be_read_back(found, b):
    values = np.array(found)
    assert elias_lengths(values).tolist() == [len(omega(n)) for n in found]
    assert golomb_lengths(values, b).tolist() == [len(golomb([g], b)) for g in found]
    assert read_golomb(golomb(found, b), b) == found
    text, at, read = "".join(map(omega, found)), 0, []
    while at < len(text):
        number, at = read_omega(text, at)
        read.append(number)
    assert read == found


@given(p=st.floats(1e-5, 0.95))
def test_the_golomb_parameter_is_the_best_and_its_mean_that_of_geometric_gaps(p):
    means = [b + 1 / (1 - (1 - p) ** 2.0**b) for b in range(40)]
    assert s36.golomb_bits(p) == pytest.approx(min(means), rel=1e-9)
    if p > 1e-3:
        gaps = np.arange(1, 60_000)
        lengths = golomb_lengths(gaps, int(golomb_parameter(p)))
        assert s36.golomb_bits(p) == pytest.approx(
            np.sum(p * (1 - p) ** (gaps - 1.0) * lengths), rel=1e-6
        )
    entropy = -(np.log2(p) + (1 - p) / p * np.log2(1 - p))
    assert entropy <= s36.golomb_bits(p) <= entropy + 1


@given(v=vectors, s=st.integers(1, 9), seed=st.integers(0, 99))
@few
def test_a_qsgd_message_is_a_string_of_that_length_and_comes_back(v, s, seed):
    message = s36.qsgd(s).encode(v, np.random.default_rng(seed))
    norm = np.linalg.norm(v)
    levels = np.rint(np.abs(message.values) / (norm or 1.0) * s).astype(int)
    gaps = np.diff(message.positions, prepend=-1)
    text = "".join(
        omega(int(g)) + ("1" if x < 0 else "0") + omega(int(level))
        for g, x, level in zip(gaps, message.values, levels, strict=True)
    )
    assert message.bits == 32 + len(text)
    back, at, position = np.zeros(v.size), 0, -1
    while at < len(text):
        gap, at = read_omega(text, at)
        level, end = read_omega(text, at + 1)
        position += gap
        back[position], at = (-1 if text[at] == "1" else 1) * level * norm / s, end
    assert back == pytest.approx(message.decode())


def test_the_dense_code_of_levels_plus_one_takes_more_than_the_published_bound():
    rng, n = np.random.default_rng(1), 16_384
    v = rng.normal(size=n)
    levels = np.zeros(n, dtype=int)
    message = s36.qsgd(128).encode(v, rng)
    levels[message.positions] = np.rint(np.abs(message.values) / np.linalg.norm(v) * 128)
    dense = message.positions.size + elias_lengths(levels + 1).sum()  # a sign where it is not 0
    assert dense / n == pytest.approx(2.94, abs=0.01)
    assert n + elias_lengths(np.full(n, 2)).sum() == 4 * n


@given(v=arrays(float, 20, elements=st.floats(-7e4, 7e4)))
def test_rounding_is_that_of_the_machine(v):
    with np.errstate(over="ignore"):
        half, single = v.astype(np.float16).astype(float), v.astype(np.float32).astype(float)
    assert s36.reduced_precision("fp16").encode(v).decode().tolist() == half.tolist()
    assert s36.reduced_precision("fp32").encode(v).decode() == pytest.approx(
        single, rel=1e-12, abs=1e-300
    )
    bits = v.astype(np.float32).view(np.uint32)
    brain = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    assert (
        s36.reduced_precision("bf16").encode(v.astype(np.float32)).decode().tolist()
        == brain.tolist()
    )


@pytest.mark.parametrize("scale", [1.0, 8.0, 1024.0])
def test_the_share_that_a_loss_scale_loses_is_that_of_the_closed_form(scale):
    v = 10 ** np.random.default_rng(1).normal(-6, 1.5, 200_000)
    lost = np.mean(s36.reduced_precision("fp16", scale).encode(v).decode() == 0)
    assert lost == pytest.approx(float(lost_gradients(scale, -6, 1.5)[0]), abs=0.004)


@given(gradients=arrays(float, (12, 15), elements=numbers), beta=st.floats(0, 0.95))
@few
def test_nothing_is_lost_with_feedback(gradients, beta):
    """Sent and kept sum to all velocities: sparse iterates are dense ones less what is kept."""
    for compressor in [*BIASED[:3], s36.random_k(0.2)]:
        method, memory = s36.ErrorFeedback(compressor, momentum=beta), None
        sent = velocity = total = np.zeros(15)
        for gradient in gradients:
            velocity = beta * velocity + gradient
            total = total + velocity
            message, memory = method.send(gradient, memory, np.random.default_rng(1))
            sent = sent + message.decode()
        assert sent + memory.residual == pytest.approx(total, abs=1e-6)


@given(gradients=arrays(float, (30, 10), elements=st.floats(-1, 1)), p=st.floats(0.1, 0.9))
@few
def test_what_feedback_keeps_is_bounded(gradients, p):
    """|r|^2 <= 4 (1 - d)/d^2 G^2 for contraction d and gradient norms <= G (Karimireddy 2019)."""
    method, memory = s36.ErrorFeedback(s36.top_k(p)), None
    d, largest = method.compressor.contraction(10), np.sum(gradients**2, axis=1).max()
    for gradient in gradients:
        _, memory = method.send(gradient, memory)
        assert memory.residual @ memory.residual <= 4 * (1 - d) / d**2 * largest + 1e-12


def test_masking_clears_the_velocity_that_was_sent():
    method = s36.ErrorFeedback(s36.top_k(0.5), momentum=0.9, masking=True)
    _, memory = method.send([3.0, 1.0])
    assert memory.velocity.tolist() == [0.0, 1.0]
    _, memory = method.send([0.0, 0.0], memory)  # 0.9 of the velocity, and 1 that was kept
    assert memory.velocity.tolist() == [0.0, 0.0]
    assert deep_gradient_compression().masking


def only(v: np.ndarray, k: int) -> np.ndarray:
    kept = np.zeros_like(v)
    at = np.argsort(-np.abs(v), kind="stable")[:k]
    kept[at] = v[at]
    return kept


@given(seed=st.integers(0, 500), workers=st.integers(1, 9), k=st.integers(1, 6))
def test_the_tree_of_sums_is_that_of_its_definition(seed, workers, k):
    rows = [only(row, k) for row in np.random.default_rng(seed).normal(size=(workers, 12))]
    tree, reach = list(rows), 1
    while reach < workers:
        for i in range(0, workers - reach, 2 * reach):
            tree[i] = only(tree[i] + tree[i + reach], k)
        reach *= 2
    found = s36.global_top_k(np.array(rows), k)
    assert found == pytest.approx(tree[0])
    assert np.count_nonzero(found) <= k


@given(seed=st.integers(0, 200), kept=st.integers(1, 8))
@few
def test_workers_take_back_what_the_tree_leaves_out(seed, kept):
    gradients = np.random.default_rng(seed).normal(size=(5, 4, 20))
    draw = iter(gradients.reshape(-1, 20))
    sent = s36.CompressedGradient(
        lambda w, u: next(draw), s36.ErrorFeedback(s36.top_k(0.2)), 4, kept=kept
    )
    received = sum(4 * sent(np.zeros(20), np.zeros(20)) for _ in range(5))
    residuals = sum(memory.residual for memory in sent.memories.values())
    at = np.flatnonzero(received == 0)
    assert (received + residuals)[at] == pytest.approx(gradients.sum(axis=(0, 1))[at])


def test_rows_are_no_vector():
    with pytest.raises(ValueError, match=r"vector must have one dimension, got shape \(1, 2\)"):
        s36.top_k(0.5).encode([[1.0, 2.0]])
