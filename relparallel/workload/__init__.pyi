from .configs import read_config as read_config
from .data_movement import (
    ENCODER_FUSION as ENCODER_FUSION,
    break_even_sram as break_even_sram,
    encoder_layer as encoder_layer,
    flash_attention_accesses as flash_attention_accesses,
    standard_attention_accesses as standard_attention_accesses,
    words_moved as words_moved,
)
from .decoder import operators as operators
from .encoders import (
    bert as bert,
    encoder_decoder as encoder_decoder,
    recurrent as recurrent,
    swin as swin,
    t5 as t5,
    vision_transformer as vision_transformer,
)
from .graph import LayerGraph as LayerGraph
from .operators import KINDS as KINDS
from .partition_problems import (
    PartitionProblem as PartitionProblem,
    read_partition_problem as read_partition_problem,
)
from .precision import (
    FORMATS as FORMATS,
    lost_gradients as lost_gradients,
    state_bytes_per_parameter as state_bytes_per_parameter,
)
from .profiles import read_profile as read_profile
from .published_graphs import layer_graph as layer_graph, layer_graphs as layer_graphs
from .rlhf import rlhf as rlhf
from .tiles import TileOperator as TileOperator, tile_schedule as tile_schedule
from .transformer import (
    LatentAttention as LatentAttention,
    Transformer as Transformer,
    transformer as transformer,
    transformers as transformers,
)
