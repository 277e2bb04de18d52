"""Strategies drawn at random, by their fields."""

from hypothesis import strategies as st

from relparallel.parallel import Strategy
from relparallel.parallel.schedules import SCHEDULES, TABLE
from relparallel.parallel.strategy import ENDS, RECOMPUTE


@st.composite
def strategies(draw):
    """Any strategy, by its fields."""
    few, many = st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, 2048)
    name = draw(st.sampled_from(SCHEDULES))
    pipeline = 2 * draw(few) if TABLE[name].even else draw(few)
    chunks = TABLE[name].chunks or (draw(many) if pipeline > 1 else 1)
    tensor, context, shard, copies = draw(few), draw(few), draw(few), draw(few)
    split = draw(st.booleans())
    data = shard * copies
    whole = draw(st.booleans()) and (split or tensor == 1)
    ranks = data * context * (tensor if whole else 1)
    return Strategy(
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        data=data,
        expert=draw(st.sampled_from([n for n in (1, 2, 4, 8) if ranks % n == 0])),
        shard=draw(st.sampled_from([None, shard])),
        micro_batch=draw(many),
        virtual_stages=chunks,
        sequence_parallel=split,
        recompute=draw(st.sampled_from(RECOMPUTE)),
        zero_stage=draw(st.integers(0, 3)),
        schedule=name,
        ends_as_layers=draw(st.sampled_from(ENDS)),
        experts_over_tensor=whole,
    )
