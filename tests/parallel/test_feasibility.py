"""Every rule is broken by an example, and the rules say of rows what plain arithmetic says."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from relparallel.parallel import Strategy, StrategyGrid
from relparallel.parallel.feasibility import (
    FEASIBLE,
    REASONS,
    RULES,
    first_broken,
    require_feasible,
    rules_of_rows,
)
from relparallel.parallel.schedules import SCHEDULES, V_SHAPED
from relparallel.parallel.strategy import ENDS
from relparallel.workload import Transformer

MODEL = Transformer(
    layers=12, hidden=96, heads=12, kv_heads=6, ffn=120, vocabulary=500, sequence=64
)
MIXED = Transformer(
    layers=12, hidden=96, heads=12, vocabulary=500, sequence=64, experts=8, active_experts=2
)
INTERLEAVED = {"schedule": "interleaved_1f1b", "virtual_stages": 3}

# Rule: a model, and a row that breaks this rule first, on 8 GPUs and with 16 sequences.
EXAMPLES = {
    RULES[0]: (MODEL, {"tensor": 4, "data": 4}),
    RULES[1]: (MODEL, {"tensor": 8}),
    RULES[2]: (MODEL, {"tensor": 4, "data": 2}),
    RULES[3]: (MIXED, {"tensor": 4, "data": 2}),
    RULES[4]: (MODEL, {"data": 2, "pipeline": 4, **INTERLEAVED, "virtual_stages": 5}),
    RULES[5]: (MIXED, {"context": 8}),
    RULES[6]: (MIXED, {"tensor": 4, "context": 2, "sequence_parallel": True}),
    RULES[7]: (MODEL, {"data": 8, "sequence_parallel": True}),
    RULES[8]: (MODEL, {"data": 8, "expert": 2}),
    RULES[9]: (MIXED, {"data": 4, "tensor": 2, "expert": 8}),
    RULES[10]: (MODEL, {"data": 8, "shard": 3}),
    RULES[11]: (MODEL, {"data": 8, "micro_batch": 3}),
    RULES[12]: (MODEL, {"data": 4, "pipeline": 2, "virtual_stages": 3}),
    RULES[13]: (MODEL, {"data": 2, "pipeline": 4, "micro_batch": 4, **INTERLEAVED}),
    RULES[14]: (MODEL, {"data": 4, "pipeline": 2, "schedule": "zb_v"}),
    RULES[15]: (MODEL, {"data": 2, "pipeline": 3, "schedule": "chimera"}),
    RULES[16]: (MODEL, {"tensor": 3, "data": 2}),
    RULES[17]: (MIXED, {"tensor": 2, "data": 4, "expert": 8, "experts_over_tensor": True}),
}
MODELS = {  # where the common ones do not break the rule alone
    RULES[3]: Transformer(layers=12, hidden=96, heads=12, ffn=90, vocabulary=500, sequence=64),
    RULES[5]: Transformer(layers=12, hidden=96, heads=12, vocabulary=500, sequence=72),
    RULES[6]: Transformer(layers=12, hidden=96, heads=12, vocabulary=500, sequence=60),
}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_broken_by_an_example_and_named(rule):
    model, row = MODELS.get(rule, EXAMPLES[rule][0]), EXAMPLES[rule][1]
    broken = rules_of_rows(model, StrategyGrid.of(**row).choices, 16, gpus=8, node=8)
    assert REASONS[first_broken(broken)[0]] == rule
    assert broken[0] >> RULES.index(rule) & 1
    assert REASONS.index(rule) != FEASIBLE


@pytest.mark.parametrize("rule", [RULES[k] for k in (1, 2, 3, 5, 6, 7, 8, 11, 13)])
def test_a_single_strategy_gets_the_same_rule_as_an_error(rule):
    model, row = MODELS.get(rule, EXAMPLES[rule][0]), EXAMPLES[rule][1]
    with pytest.raises(ValueError, match=rule.replace("*", r"\*")):
        require_feasible(model, Strategy(**row), None, 16)


def dealt(layers, p, v, folded, ends):
    """Layers of every chunk, and of every stage, one place after the other."""
    chunks, stages = [0] * (p * v), [0] * p
    for place in range(layers + sum(ends)):
        chunks[place % (p * v)] += 1
    chunks[0], chunks[-1] = chunks[0] - ends[0], chunks[-1] - ends[1]
    for k, number in enumerate(chunks):
        stages[2 * p - 1 - k if folded and k >= p else k % p] += number
    return chunks, stages


def unfit(layers, p, v, folded, said):
    """Whether layers are too few for chunks, or interleaved stages differ before the last round."""
    ends = [(0, 0), (1, 0), (0, 1), (1, 1)][said if p > 1 else 0]
    if p > 1 and said == 0 and layers % (p * v):
        most = [max(dealt(layers, p, v, folded, both)[1]) for both in ((0, 0), (1, 1))]
        ends = (0, 1) if (layers + 1) % (p * v) == 0 else (1, 1) if most[1] <= most[0] else (0, 0)
    places = layers + sum(ends)
    full = [-(-places // (p * v))] * (p * (v - 1))
    early = [places // (p * v) + (k < places % (p * v)) for k in range(p * (v - 1))]
    return places < p * v or (v > 1 and not folded and early != full)


def plain(m, s, batch, gpus, node):
    """Rules of one row, told once more in plain numbers."""
    t, p, d, c, e, k, b, v, split, _, _, order, said, whole = (
        s[name].item() for name in s.dtype.names
    )
    folded = SCHEDULES[order] in V_SHAPED
    return [
        t * p * d * c > gpus,
        bool(m.heads % t),
        bool(m.key_value_heads % t and t % m.key_value_heads),
        bool(m.ffn_hidden % t or (m.expert_hidden % t and not whole)),
        unfit(m.layers, p, v, folded, said),
        c > 1 and m.sequence / c / 2 != m.sequence // (2 * c),
        bool(split and (m.sequence // c) % t),
        bool(split and t == 1),
        bool(m.experts % e),
        bool((d * c * t**whole) % e),
        bool(d % k),
        batch % (d * b) > 0,
        v > 1 and not folded and not (order == 2 and p > 1),
        v > 1 and not folded and batch // (d * b) < p,
        folded and v != 2,
        SCHEDULES[order] == "chimera" and p % 2 > 0,
        bool(node % t and t % node),
        bool(whole and t > 1 and not split),
    ]


DEGREE = st.sampled_from([1, 2, 3, 4, 6, 8])


@settings(max_examples=300)
@given(
    model=st.sampled_from([MODEL, MIXED, *MODELS.values()]),
    degrees=st.fixed_dictionaries(
        dict.fromkeys(
            ("tensor", "pipeline", "data", "context", "expert", "shard", "micro_batch"), DEGREE
        )
    ),
    virtual_stages=st.sampled_from([1, 2, 3, 7]),
    sequence_parallel=st.booleans(),
    zero_stage=st.integers(0, 3),
    schedule=st.sampled_from(["gpipe", "1f1b", "interleaved_1f1b", "zb_v", "chimera"]),
    batch=st.integers(1, 100),
    ends=st.sampled_from(ENDS),
    whole=st.booleans(),
)
def test_the_rules_are_the_plain_ones(
    model, degrees, virtual_stages, sequence_parallel, zero_stage, schedule, batch, ends, whole
):
    grid = StrategyGrid.of(
        **degrees,
        virtual_stages=virtual_stages,
        sequence_parallel=sequence_parallel,
        zero_stage=zero_stage,
        schedule=schedule,
        ends_as_layers=ends,
        experts_over_tensor=whole,
    )
    expected = plain(model, grid.choices[0], batch, 8, 4)
    broken = rules_of_rows(model, grid.choices, batch, gpus=8, node=4)
    assert [bool(broken[0] >> k & 1) for k in range(len(RULES))] == expected
    assert first_broken(broken)[0] == (expected.index(True) + 1 if any(expected) else FEASIBLE)
    assert rules_of_rows(model, grid.choices, batch)[0] == broken[0] & ~(1 | 1 << 16)


def test_the_first_of_several_broken_rules_is_told():
    every = np.arange(2 ** len(RULES), dtype=np.int32)
    lowest = [
        min((k + 1 for k in range(len(RULES)) if bits >> k & 1), default=0)
        for bits in every.tolist()
    ]
    assert first_broken(every).tolist() == lowest
