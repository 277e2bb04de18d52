"""Published sizes and operations of convolutional networks, from their layer graphs."""

import re

from relparallel import workload
from relparallel.claims.registry import reproduces
from relparallel.published import Fact

_WEIGHT_LAYERS = {"A": 11, "B": 13, "D": 16, "E": 19}  # columns of Simonyan & Zisserman 2015, table 1


@reproduces("MODEL-VGG*", quantity="parameters")
def vgg_parameters(fact: Fact, image: int, classes: int) -> float:
    """Sum over the layers of the configuration that the row names."""
    letter = re.match(r"configuration (\w)", fact.inputs_text)
    assert letter, fact.inputs_text
    graph = workload.layer_graph(
        f"vgg-{_WEIGHT_LAYERS[letter[1]]}", image=image, classes=classes, element_bytes=1
    )
    return graph.totals["parameter_bytes"]


@reproduces("MODEL-RESNET*", quantity="parameters")
def resnet_parameters(fact: Fact, classes: int) -> float:
    """Sum over the layers of the depth whose blocks the row counts: three layers each, and two more."""
    blocks = [int(count) for count in re.findall(r"\d+", fact.inputs_text.partition(";")[0])]
    graph = workload.layer_graph(f"resnet-{3 * sum(blocks) + 2}", classes=classes, element_bytes=1)
    return graph.totals["parameter_bytes"]
