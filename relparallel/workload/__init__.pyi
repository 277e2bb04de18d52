from .attention_io import (
    break_even_sram as break_even_sram,
    flash_attention_accesses as flash_attention_accesses,
    standard_attention_accesses as standard_attention_accesses,
)
from .data_movement import (
    ENCODER_FUSION as ENCODER_FUSION,
    encoder_layer as encoder_layer,
    words_moved as words_moved,
)
from .decoder import operators as operators
from .encoders import (
    bert as bert,
    encoder_decoder as encoder_decoder,
    t5 as t5,
    vision_transformer as vision_transformer,
)
from .layer_graph import LayerGraph as LayerGraph
from .layer_graphs import (
    DataParallelCost as DataParallelCost,
    Gradients as Gradients,
    PartitionProblem as PartitionProblem,
    bert_graph as bert_graph,
    data_parallel_cost as data_parallel_cost,
    gnmt_graph as gnmt_graph,
    gradients as gradients,
    read_partition_problem as read_partition_problem,
    read_profile as read_profile,
    resnet_graph as resnet_graph,
    transformer_graph as transformer_graph,
    vgg_graph as vgg_graph,
    write_profile as write_profile,
)
from .operators import KINDS as KINDS, Operator as Operator, OperatorTable as OperatorTable
from .precision import (
    FORMATS as FORMATS,
    NumberFormat as NumberFormat,
    lost_gradients as lost_gradients,
    state_bytes_per_parameter as state_bytes_per_parameter,
)
from .presets import transformer as transformer, transformers as transformers
from .recurrent import lstm as lstm, rnn as rnn
from .rlhf import MixedWorkload as MixedWorkload, Phase as Phase, rlhf as rlhf
from .transformer import LatentAttention as LatentAttention, Transformer as Transformer
from .windows import swin as swin
