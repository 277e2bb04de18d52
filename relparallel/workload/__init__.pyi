from .configs import read_config as read_config
from .decoder import operators as operators
from .graph import LayerGraph as LayerGraph
from .language_models import (
    LatentAttention as LatentAttention,
    Transformer as Transformer,
    transformer as transformer,
    transformers as transformers,
)
from .layer_operators import KINDS as KINDS
from .precision import FORMATS as FORMATS
from .published_graphs import layer_graph as layer_graph, layer_graphs as layer_graphs
