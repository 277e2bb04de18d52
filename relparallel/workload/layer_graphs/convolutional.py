"""VGG and ResNet, layer by layer.

A convolution of k x k filters from c to d channels onto s x s points has k^2 c d weights and k^2 c d s^2
multiply-adds. An activation function belongs to the layer before it; pooling, sums and normalisation count no
operations, as in the published counts of multiply-adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from relparallel._checks import require_choice, require_flag, require_int
from relparallel.workload.layer_graph import LayerGraph
from relparallel.workload.layer_graphs._builder import Builder

# Convolutions in each of the five groups; Simonyan & Zisserman 2015, table 1, columns A, B, D, E.
VGG: Final[Mapping[int, tuple[int, ...]]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
# Bottleneck blocks in each of the four groups; He et al. 2016, table 1.
RESNET: Final[Mapping[int, tuple[int, ...]]] = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def vgg_graph(
    depth: int = 16, *, image: int = 224, classes: int = 1000, element_bytes: float = 4
) -> LayerGraph:
    """Build VGG: groups of 3 x 3 convolutions with biases, each group then halved, and three dense layers.

    Parameters
    ----------
    depth : {11, 13, 16, 19}
        Layers with weights; 16 is configuration D.
    image : int
        Points along a side of the image, at least 32.
    classes : int
        Outputs of the last layer.
    element_bytes : float
        Bytes of a parameter and of an activation.

    Returns
    -------
    LayerGraph
        Work in FLOP for one image.

    References
    ----------
    Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015,
    table 1.

    Examples
    --------
    >>> vgg_graph(16).totals["parameter_bytes"] / 4
    138357544.0
    """
    require_choice(VGG, depth=depth)
    require_int(image=image, at_least=32)
    require_int(classes=classes, at_least=1)
    net, channels, side = Builder(), 3, image
    tail: int | tuple[int, ...] = ()
    for group, count in enumerate(VGG[depth]):
        width = min(64 * 2**group, 512)
        for i in range(count):
            tail = _convolution(net, f"conv{group + 1}_{i + 1}", tail, channels, width, 3, side, extra=width)
            channels = width
        side //= 2
        tail = net.add(f"pool{group + 1}", "pool", tail, macs=0, parameters=0, outputs=width * side**2)
    # Inputs of the first dense layer are pooled to 7 x 7 points whatever the image (torchvision).
    for name, inputs, outputs in (("fc6", 512 * 7**2, 4096), ("fc7", 4096, 4096), ("fc8", 4096, classes)):
        tail = _dense(net, name, tail, inputs, outputs)
    return net.graph(f"VGG-{depth}", element_bytes)


def resnet_graph(
    depth: int = 50,
    *,
    image: int = 224,
    classes: int = 1000,
    stride_first: bool = False,
    element_bytes: float = 4,
) -> LayerGraph:
    """Build a residual network of bottleneck blocks, each layer with its batch normalisation.

    Parameters
    ----------
    depth : {50, 101, 152}
        Layers with weights on the main path.
    image : int
        Points along a side of the image, at least 32.
    classes : int
        Outputs of the last layer.
    stride_first : bool
        Whether the first convolution of a block halves the image, as published, or the second, as most
        implementations do (version 1.5).
    element_bytes : float
        Bytes of a parameter and of an activation.

    Returns
    -------
    LayerGraph
        Work in FLOP for one image.

    References
    ----------
    He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, table 1.

    Examples
    --------
    >>> resnet_graph(50).totals["parameter_bytes"] / 4
    25557032.0
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
    net: Builder, name: str, start: int, channels: int, width: int, side: int, stride: int, stride_first: bool
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
    """A convolution onto side x side points; ``extra`` parameters are its bias or its normalisation."""
    weights, points = kernel**2 * channels * width, side**2
    return net.add(
        name, "conv", after, macs=weights * points, parameters=weights + extra, outputs=width * points
    )


def _dense(net: Builder, name: str, after: int | tuple[int, ...], inputs: int, outputs: int) -> int:
    weights = inputs * outputs
    return net.add(name, "dense", after, macs=weights, parameters=weights + outputs, outputs=outputs)
