"""Theorems on sizes and operations of models."""

import numpy as np
from theorem_table import theorem

from chapters import s31, s63
from relparallel import workload


@theorem("THM-operator-table", system="Transformer")
def test_table_flops():
    """The products of every shipped model cost what its closed form says, operator by operator."""
    # FLOPs summed over all models, by table and by closed form.
    models = [workload.transformer(name) for name in workload.transformers()]
    counted = sum(workload.operators(model, 2).flops(kind="contraction") for model in models)
    return float(counted), sum(model.flops_per_iteration(2) for model in models)


@theorem("THM-operator-parameters", system="GPT-3")
def test_table_parameters():
    """The parameters of every shipped model are those of its operators."""
    # Parameters summed over all models, by table and by closed form.
    models = [workload.transformer(name) for name in workload.transformers()]
    return sum(workload.operators(model).parameters for model in models), sum(
        model.parameters for model in models
    )


@theorem("THM-rnn-gates", system="RNN and LSTM")
def test_lstm_gates():
    """An LSTM layer has four times the parameters and products of an RNN layer of equal widths."""
    # Multiply-adds and parameters of one, and four times those of the other.
    gated, plain = (
        s31.recurrent(cell, 30, 50, layers=3, steps=7, batch=2) for cell in ("lstm", "rnn")
    )
    return gated.parameters + gated.multiply_adds, 4 * (plain.parameters + plain.multiply_adds)


@theorem("THM-mixed-precision", system="Mixed precision")
def test_rounded_gradients():
    """Of 200,000 gradients rounded by hardware to half precision, the predicted share becomes 0."""
    # Rounded shares in per cent: cast by numpy, and by the closed form.
    drawn = 10 ** np.random.default_rng(7).normal(-6, 1.5, 200_000)
    lost = float((drawn.clip(max=6e4).astype(np.float16) == 0).mean())
    return round(100 * lost), round(100 * float(s31.lost_gradients(1, -6, 1.5)[0]))


@theorem("THM-fusion", system="Data Movement Is All You Need")
def test_fusion_savings():
    """Fusion saves each inner tensor's write and reads, and each repeated read of an outer one."""
    # Words saved by fusing the softmax, counted by kernels and by tensors.
    layer = s31.encoder_layer()
    saved = s31.words_moved(layer).sum() - s31.words_moved(layer, ["softmax", "relu"]).sum()
    scores, wide = 8 * 16 * 512 * 512, 8 * 512 * 4096
    return int(saved), 2 * scores + scores + 2 * wide + wide


@theorem("THM-rlhf-memory", system="DeepSpeed")
def test_rlhf_states():
    """Two trained and two frozen models keep 18 bytes for each parameter of actor and critic."""
    # Bytes without the cache, and the closed form.
    actor, critic = workload.transformer("llama2-13b"), workload.transformer("llama2-7b")
    step = s63.rlhf(actor, critic, prompt=8, response=8, sequences=4)
    return step.bytes - step.cache, 18.0 * (actor.parameters + critic.parameters)
