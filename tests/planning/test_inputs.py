"""What a plan takes where nothing was said: the batch."""

import pytest

import relparallel as rp
from relparallel.planning.inputs import usual_batch

SIZES = [*(2**k for k in range(3, 18)), 24, 40, 384, 576, 1000, 3072, 12000, 16424, 24576, 100000]


@pytest.mark.parametrize("model", ["llama3-8b", "gpt3-175b", "deepseek-v3"])
def test_the_usual_batch_has_so_many_tokens_and_nodes_share_it_evenly(model):
    """At least one sequence a GPU, in powers of two, made 134e6 tokens, and none for 48 nodes."""
    sizes, multiples = rp.transformer(model), 0
    for gpus in SIZES:
        machine = rp.cluster("h100-80gb-dgx", gpus=gpus)
        batch, said = usual_batch(sizes, [machine])
        assert 4e6 <= batch * sizes.sequence <= 2**24
        possible = machine.nodes * sizes.sequence <= 2**24
        assert (batch % machine.nodes == 0) == possible == ("a multiple of the nodes" in said)
        multiples += batch % gpus == 0
    assert 0 < multiples < len(SIZES)


def test_clusters_side_by_side_share_one_batch():
    sizes = rp.transformer("llama3-8b")
    machines = [rp.cluster("h100-80gb-dgx", gpus=gpus) for gpus in (384, 512)]
    batch, _ = usual_batch(sizes, machines)
    assert batch % 384 == batch % 512 == 0
    primes = [rp.cluster("h100-80gb-dgx", gpus=8 * k) for k in (16381, 16369, 16363, 16361, 16349)]
    batch = usual_batch(sizes, primes)[0]
    assert 4e6 <= batch * sizes.sequence <= 2**24


def test_more_gpus_than_sequences_are_put_to_one_by_other_degrees():
    found = rp.plan("llama3-405b", "h100-80gb-dgx", gpus=16384, strategies=1)
    assert found.global_batch == 2048
    assert found.strategy.data <= 2048
    assert any("2,048 sequences a step, 16.8e6 tokens" in note for note in found.notes)


def test_a_batch_for_48_nodes_is_worth_more_than_one_for_64():
    def tokens(**batch):
        found = rp.plan("llama3-70b", "h100-80gb-dgx", gpus=384, strategies=1, **batch)
        return found.to_frame()["1e9 tokens a day"][0]

    assert tokens() > 1.01 * tokens(global_batch=512)


def test_frozen_weights_with_adapters_need_room_for_themselves_alone():
    """MLPerf trains adapters of Llama 2 70B on 8 GPUs; all its weights do not fit there."""
    asked = {"gpus": 8, "global_batch": 8}
    found = rp.plan("llama2-70b", "h100-80gb-dgx", software="nemo-2024+adapters", **asked)
    assert found.to_frame()["memory [GB]"].max() < 82.4
    with pytest.raises(ValueError, match="must hold the training state of llama2-70b, 1,104 GB"):
        rp.plan("llama2-70b", "h100-80gb-dgx", software="nemo-2024", **asked)
    with pytest.raises(ValueError, match="must hold the training state of llama3-405b, 812 GB"):
        rp.plan("llama3-405b", "h100-80gb-dgx", software="nemo-2024+adapters", **asked)
