"""Well-known models layer by layer: VGG, ResNet, GNMT, BERT and any `Transformer`.

A convolution of k x k filters from c to d channels onto s x s points has k^2 c d weights and k^2 c
d s^2 multiply-adds. An activation function belongs to the layer before it; pooling, sums and
normalisation count no operations, as in the published counts of multiply-adds. A direction of an
LSTM layer from i inputs to h units has 4 h (i + h + 2) parameters, two biases for each gate, and 4
h (i + h) multiply-adds for each token.

A new model is one builder under ``@published({name: sizes})`` in this file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from relparallel._checks import (
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_real,
)
from relparallel.workload.decoder import operators
from relparallel.workload.encoders import bert
from relparallel.workload.graph import LayerGraph
from relparallel.workload.language_models import Transformer, transformer, transformers
from relparallel.workload.layer_operators import OperatorTable

Build = TypeVar("Build", bound=Callable[..., LayerGraph])
BUILDERS: Final[dict[str, Callable[..., LayerGraph]]] = {}
"""Builders of the published models that are no decoders, by name."""


def published(variants: Mapping[str, Mapping[str, Any]]) -> Callable[[Build], Build]:
    """Enter a builder under the names of its published sizes."""

    def enter(build: Build) -> Build:
        BUILDERS.update({name: partial(build, **sizes) for name, sizes in variants.items()})
        return build

    return enter


def layer_graphs() -> tuple[str, ...]:
    """Names that `layer_graph` knows.

    Returns
    -------
    tuple of str
        VGG, ResNet, GNMT and BERT, then the decoders of `transformers` whose layers are alike.

    Examples
    --------
    >>> layer_graphs()[:5]
    ('vgg-11', 'vgg-13', 'vgg-16', 'vgg-19', 'resnet-50')
    """
    models = {name: transformer(name) for name in transformers()}
    alike = (name for name, model in models.items() if not (model.windowed or model.mixers))
    return (*BUILDERS, *alike)


def layer_graph(name: str, **sizes: Any) -> LayerGraph:
    """Build a published model as a graph of layers.

    Parameters
    ----------
    name : str
        One of `layer_graphs`.
    **sizes : optional
        ``element_bytes`` of a parameter and of an activation. Of VGG and ResNet, points along a
        side of the ``image`` and ``classes``, of ResNet ``stride_first``; of GNMT and BERT
        ``hidden``, ``vocabulary``, ``sequence`` and ``layers``.

    Returns
    -------
    LayerGraph
        Work in FLOP for one image, one sequence or one pair of sentences.

    Examples
    --------
    >>> layer_graph("vgg-16").totals["parameter_bytes"] / 4
    138357544.0
    """
    if require_instance(str, name=name) in BUILDERS:
        return BUILDERS[name](**sizes)
    return transformer_graph(transformer(require_choice(layer_graphs(), name=name)), **sizes)


@dataclass(frozen=True, slots=True)
class Builder:
    """Rows of layers and edges; `add` returns the number of the layer that it enters."""

    rows: list[tuple[str, str, float, float, float]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(
        self,
        name: str,
        kind: str,
        after: int | tuple[int, ...],
        *,
        macs: float,
        parameters: float,
        outputs: float,
    ) -> int:
        """Enter a layer that uses the outputs of others (none: the input of the model)."""
        layer = len(self.rows)
        self.rows.append((name, kind, 2 * macs, parameters, outputs))
        self.edges.extend(
            (maker, layer) for maker in ((after,) if isinstance(after, int) else after)
        )
        return layer

    def graph(self, title: str, element_bytes: float) -> LayerGraph:
        """The layers as a graph; a backward pass is two forward passes of work."""
        require_real(element_bytes=element_bytes, above=0)
        names, kinds, *columns = zip(*self.rows, strict=True)
        flops, parameters, outputs = np.array(columns, dtype=np.float64)
        return LayerGraph(
            names=names,
            kinds=kinds,
            forward=flops,
            backward=2 * flops,
            parameter_bytes=element_bytes * parameters,
            activation_bytes=element_bytes * outputs,
            edges=np.array(self.edges, dtype=np.int64),
            title=title,
        )


# Convolutions in each of the five groups; Simonyan & Zisserman 2015, table 1, columns A, B, D, E.
VGG: Final[Mapping[int, tuple[int, ...]]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
# Bottleneck blocks in each of the four groups; He et al. 2016, table 1.
RESNET: Final[Mapping[int, tuple[int, ...]]] = {
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


@published({f"vgg-{depth}": {"depth": depth} for depth in VGG})
def vgg_graph(
    depth: int = 16, *, image: int = 224, classes: int = 1000, element_bytes: float = 4
) -> LayerGraph:
    """VGG: groups of 3 x 3 convolutions with biases, each group then halved; three dense layers.

    Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
    ICLR 2015, table 1.
    """
    require_choice(VGG, depth=depth)
    require_int(image=image, at_least=32)
    require_int(classes=classes, at_least=1)
    net, channels, side = Builder(), 3, image
    tail: int | tuple[int, ...] = ()
    for group, count in enumerate(VGG[depth]):
        width = min(64 * 2**group, 512)
        for i in range(count):
            tail = _convolution(
                net, f"conv{group + 1}_{i + 1}", tail, channels, width, 3, side, extra=width
            )
            channels = width
        side //= 2
        tail = net.add(
            f"pool{group + 1}", "pool", tail, macs=0, parameters=0, outputs=width * side**2
        )
    # Inputs of the first dense layer are pooled to 7 x 7 points whatever the image (torchvision).
    for name, inputs, outputs in (
        ("fc6", 512 * 7**2, 4096),
        ("fc7", 4096, 4096),
        ("fc8", 4096, classes),
    ):
        tail = _dense(net, name, tail, inputs, outputs)
    return net.graph(f"VGG-{depth}", element_bytes)


@published({f"resnet-{depth}": {"depth": depth} for depth in RESNET})
def resnet_graph(
    depth: int = 50,
    *,
    image: int = 224,
    classes: int = 1000,
    stride_first: bool = False,
    element_bytes: float = 4,
) -> LayerGraph:
    """Residual network of bottleneck blocks, each layer with its batch normalisation.

    ``stride_first``: the first convolution of a block halves the image, as published, not the
    second, as most implementations do (version 1.5). He, Zhang, Ren and Sun, "Deep Residual
    Learning", CVPR 2016, table 1.
    """
    require_choice(RESNET, depth=depth)
    require_int(image=image, at_least=32)
    require_int(classes=classes, at_least=1)
    require_flag(stride_first=stride_first)
    net, side = Builder(), -(-image // 2)
    tail = _convolution(net, "conv1", (), 3, 64, 7, side, extra=2 * 64)
    side = -(-side // 2)
    tail = net.add("pool1", "pool", tail, macs=0, parameters=0, outputs=64 * side**2)
    channels = 64
    for group, count in enumerate(RESNET[depth]):
        for i in range(count):
            stride = 2 if group and not i else 1
            width, name = 64 * 2**group, f"block{group + 1}_{i + 1}"
            tail = _bottleneck(net, name, tail, channels, width, side, stride, stride_first)
            side, channels = -(-side // stride), 4 * width
    tail = net.add("pool5", "pool", tail, macs=0, parameters=0, outputs=channels)
    _dense(net, "fc", tail, channels, classes)
    return net.graph(f"ResNet-{depth}", element_bytes)


def _bottleneck(
    net: Builder,
    name: str,
    start: int,
    channels: int,
    width: int,
    side: int,
    stride: int,
    stride_first: bool,
) -> int:
    """Three convolutions beside a shortcut, which has weights where the shape changes."""
    small = -(-side // stride)
    middle = small if stride_first else side
    first = _convolution(net, f"{name}.conv1", start, channels, width, 1, middle, extra=2 * width)
    second = _convolution(net, f"{name}.conv2", first, width, width, 3, small, extra=2 * width)
    third = _convolution(net, f"{name}.conv3", second, width, 4 * width, 1, small, extra=8 * width)
    shortcut = start
    if channels != 4 * width:
        shortcut = _convolution(
            net, f"{name}.shortcut", start, channels, 4 * width, 1, small, extra=8 * width
        )
    outputs = 4 * width * small**2
    return net.add(f"{name}.add", "add", (third, shortcut), macs=0, parameters=0, outputs=outputs)


def _convolution(
    net: Builder,
    name: str,
    after: int | tuple[int, ...],
    channels: int,
    width: int,
    kernel: int,
    side: int,
    *,
    extra: int,
) -> int:
    """A convolution onto side x side points; ``extra`` parameters are its bias or normalisation."""
    weights, points = kernel**2 * channels * width, side**2
    return net.add(
        name,
        "conv",
        after,
        macs=weights * points,
        parameters=weights + extra,
        outputs=width * points,
    )


def _dense(net: Builder, name: str, after: int | tuple[int, ...], inputs: int, outputs: int) -> int:
    weights = inputs * outputs
    return net.add(
        name, "dense", after, macs=weights, parameters=weights + outputs, outputs=outputs
    )


@published({"gnmt-8": {"layers": 8}, "gnmt-16": {"layers": 16}})
def gnmt_graph(
    layers: int = 8,
    *,
    hidden: int = 1024,
    vocabulary: int = 32320,
    sequence: int = 50,
    element_bytes: float = 4,
) -> LayerGraph:
    """GNMT as PipeDream profiles it: half of the LSTM layers encode, half decode with attention.

    The first encoder layer reads both ways, so that the second has 2 h inputs. The first decoder
    layer holds the attention (2 h^2 + h parameters), whose context joins the h inputs of every
    later decoder layer. Wu et al., "Google's Neural Machine Translation System", 2016. Narayanan et
    al., "PipeDream", SOSP 2019.
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


@published(
    {"bert-base": {"layers": 12, "hidden": 768}, "bert-large": {"layers": 24, "hidden": 1024}}
)
def bert_graph(
    layers: int = 12,
    *,
    hidden: int = 768,
    vocabulary: int = 30522,
    sequence: int = 512,
    element_bytes: float = 4,
) -> LayerGraph:
    """BERT without a task's head: embeddings, encoder layers as `bert` counts them, pooler.

    Embeddings are three tables and a LayerNorm; the pooler sees the first token only. Devlin et
    al., 2018.
    """
    require_int(layers=layers, hidden=hidden, vocabulary=vocabulary, sequence=sequence, at_least=1)
    one, two = (bert(n, hidden, 1, vocabulary=vocabulary, sequence=sequence) for n in (1, 2))
    layer, macs, outputs = *_grown(one, two), sequence * hidden
    pooler = hidden**2 + hidden
    net, tables = Builder(), one.parameters - layer - pooler
    tail = net.add("embeddings", "embedding", (), macs=0, parameters=tables, outputs=outputs)
    for i in range(1, layers + 1):
        tail = net.add(
            f"layer{i}", "encoder layer", tail, macs=macs, parameters=layer, outputs=outputs
        )
    net.add("pooler", "dense", tail, macs=hidden**2, parameters=pooler, outputs=hidden)
    return net.graph(f"BERT-{layers}", element_bytes)


def transformer_graph(model: Transformer, *, element_bytes: float = 2) -> LayerGraph:
    """The chain of a decoder: embedding, its layers, and the head with the last norm.

    A layer is what one layer more adds to the counts of the model, so that both agree by
    construction and the sums are the model's own, exactly. Layers without a mixture of experts come
    first.
    """
    if (
        require_instance(Transformer, model=model).mixers
        or model.windowed
        or model.ffn_layers is not None
    ):
        raise ValueError(f"model must have layers that differ in experts only, got {model}")
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


def _layer(model: Transformer, *, mixture: bool) -> tuple[int, int]:
    """Parameters and multiply-adds of one sequence that one layer more costs."""
    if mixture and model.experts == 1:
        return 0, 0
    one, two = (
        operators(replace(model, layers=n, dense_layers=0 if mixture else n)) for n in (1, 2)
    )
    return _grown(one, two)


def _grown(one: OperatorTable, two: OperatorTable) -> tuple[int, int]:
    """Parameters and multiply-adds that the second table has more."""
    return two.parameters - one.parameters, two.multiply_adds - one.multiply_adds


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
