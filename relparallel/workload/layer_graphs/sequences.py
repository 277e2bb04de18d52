"""GNMT, BERT and any `Transformer`, layer by layer.

A direction of an LSTM layer from i inputs to h units has 4 h (i + h + 2) parameters, two biases for each
gate, and 4 h (i + h) multiply-adds for each token.
"""

from __future__ import annotations

from dataclasses import replace

from relparallel._checks import require_instance, require_int
from relparallel.workload.layer_graph import LayerGraph
from relparallel.workload.layer_graphs._builder import Builder
from relparallel.workload.transformer import Transformer


def gnmt_graph(
    layers: int = 8,
    *,
    hidden: int = 1024,
    vocabulary: int = 32320,
    sequence: int = 50,
    element_bytes: float = 4,
) -> LayerGraph:
    """Build GNMT as PipeDream profiles it: half of the LSTM layers encode, half decode with attention.

    Parameters
    ----------
    layers : int
        LSTM layers of encoder and decoder together, even and at least 4; PipeDream uses 8 and 16.
    hidden : int
        Units h of an LSTM layer.
    vocabulary : int
        Words of each language.
    sequence : int
        Words of the sentence and of its translation.
    element_bytes : float
        Bytes of a parameter and of an activation.

    Returns
    -------
    LayerGraph
        Work in FLOP for one pair of sentences. Residual sums and dropout belong to the layer before them.

    Notes
    -----
    The first encoder layer reads both ways, so that the second has 2 h inputs. The first decoder layer holds
    the attention (2 h^2 + h parameters), whose context joins the h inputs of every later decoder layer.

    References
    ----------
    Wu et al., "Google's Neural Machine Translation System", 2016.
    Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019.

    Examples
    --------
    >>> gnmt_graph(8).totals["parameter_bytes"]
    775063808.0
    """
    require_int(layers=layers, at_least=4)
    require_int(hidden=hidden, vocabulary=vocabulary, sequence=sequence, at_least=1)
    if layers % 2:
        raise ValueError(f"layers must be even, got {layers}")
    net, h, s = Builder(), hidden, sequence
    table = {"macs": 0, "parameters": vocabulary * h, "outputs": s * h}
    tail = net.add("encoder.embedding", "embedding", (), **table)
    tail = _lstm(net, "encoder.lstm1", tail, h, h, s, directions=2)
    for i in range(2, layers // 2 + 1):
        tail = _lstm(net, f"encoder.lstm{i}", tail, 2 * h if i == 2 else h, h, s)
    words = net.add("decoder.embedding", "embedding", (), **table)
    attention = {"macs": s * (8 * h**2 + 2 * h**2 + 2 * s * h), "outputs": 2 * s * h}
    size = 4 * h * (2 * h + 2) + 2 * h**2 + h
    context = net.add("decoder.attention", "attention", (words, tail), parameters=size, **attention)
    tail = context
    for i in range(2, layers // 2 + 1):
        sources = (context,) if tail == context else (tail, context)
        tail = _lstm(net, f"decoder.lstm{i}", sources, 2 * h, h, s)
    weights = h * vocabulary
    head = {"macs": s * weights, "parameters": weights + vocabulary, "outputs": s * vocabulary}
    net.add("classifier", "dense", tail, **head)
    return net.graph(f"GNMT-{layers}", element_bytes)


def bert_graph(
    layers: int = 12,
    *,
    hidden: int = 768,
    vocabulary: int = 30522,
    sequence: int = 512,
    element_bytes: float = 4,
) -> LayerGraph:
    """Build BERT without a task's head: embeddings, encoder layers, pooler.

    Parameters
    ----------
    layers, hidden : int
        L and h; 12 and 768 (base) or 24 and 1024 (large).
    vocabulary, sequence : int
        Word pieces and longest sequence s; sequences are of that length.
    element_bytes : float
        Bytes of a parameter and of an activation.

    Returns
    -------
    LayerGraph
        Work in FLOP for one sequence.

    Notes
    -----
    Three tables (V + s + 2) h and a LayerNorm 2 h; layers of 12 h^2 + 13 h parameters and
    s (12 h^2 + 2 s h) multiply-adds, however many heads there are; a pooler h^2 + h on the first token.

    References
    ----------
    Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2018.

    Examples
    --------
    >>> bert_graph(24, hidden=1024).totals["parameter_bytes"] / 4
    335141888.0
    """
    require_int(layers=layers, hidden=hidden, vocabulary=vocabulary, sequence=sequence, at_least=1)
    net, h, s = Builder(), hidden, sequence
    tables = (vocabulary + s + 4) * h
    tail = net.add("embeddings", "embedding", (), macs=0, parameters=tables, outputs=s * h)
    layer = {"macs": s * (12 * h**2 + 2 * s * h), "parameters": 12 * h**2 + 13 * h, "outputs": s * h}
    for i in range(1, layers + 1):
        tail = net.add(f"layer{i}", "encoder layer", tail, **layer)
    net.add("pooler", "dense", tail, macs=h**2, parameters=h**2 + h, outputs=h)
    return net.graph(f"BERT-{layers}", element_bytes)


def transformer_graph(model: Transformer, *, element_bytes: float = 2) -> LayerGraph:
    """Build the chain of a decoder: embedding, its layers, and the head with the last norm.

    Parameters
    ----------
    model : Transformer
        Any decoder; its layers without a mixture of experts come first.
    element_bytes : float
        Bytes of a parameter and of an activation.

    Returns
    -------
    LayerGraph
        Work in FLOP for one sequence. A tied output layer has no parameters of its own.

    Notes
    -----
    A layer is what one layer more adds to the counts of the model, so that both agree by construction and the
    sums are the model's own, exactly.

    Examples
    --------
    >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=1024)
    >>> transformer_graph(gpt2).totals["parameter_bytes"] / 2 == gpt2.parameters
    True
    """
    require_instance(Transformer, model=model)
    net, rows = Builder(), model.sequence * model.hidden
    dense, mixture = _layer(model, mixture=False), _layer(model, mixture=True)
    plain = model.layers - model.mixture_layers
    rest = model.parameters - plain * dense[0] - model.mixture_layers * mixture[0]
    tables = (1 if model.tied else 2) * model.vocabulary * model.hidden
    tables += model.learned_positions * rows
    head = rest - tables + (not model.tied) * model.vocabulary * model.hidden
    tail = net.add("embedding", "embedding", (), macs=0, parameters=rest - head, outputs=rows)
    for i in range(1, model.layers + 1):
        parameters, macs = dense if i <= plain else mixture
        kind = "decoder layer" if i <= plain else "mixture layer"
        tail = net.add(f"layer{i}", kind, tail, macs=macs, parameters=parameters, outputs=rows)
    outputs = model.sequence * model.vocabulary
    net.add("head", "head", tail, macs=rows * model.vocabulary, parameters=head, outputs=outputs)
    return net.graph("Transformer", element_bytes)


def _layer(model: Transformer, *, mixture: bool) -> tuple[int, float]:
    """Parameters and multiply-adds of one sequence that one layer more costs."""
    if mixture and model.experts == 1:
        return 0, 0.0
    fewer, more = (replace(model, layers=n, dense_layers=0 if mixture else n) for n in (1, 2))
    macs = (more.flops_per_iteration(1) - fewer.flops_per_iteration(1)) / 6
    return more.parameters - fewer.parameters, macs


def _lstm(
    net: Builder,
    name: str,
    after: int | tuple[int, ...],
    inputs: int,
    hidden: int,
    sequence: int,
    *,
    directions: int = 1,
) -> int:
    weights = directions * 4 * hidden * (inputs + hidden)
    return net.add(
        name,
        "lstm",
        after,
        macs=sequence * weights,
        parameters=weights + directions * 8 * hidden,
        outputs=directions * sequence * hidden,
    )
