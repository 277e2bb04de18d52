"""Notebook 31: models other than decoders, traffic inside a GPU, bytes of training."""

from chapters.s31.data_movement import (
    ENCODER_FUSION as ENCODER_FUSION,
    break_even_sram as break_even_sram,
    encoder_layer as encoder_layer,
    flash_attention_accesses as flash_attention_accesses,
    standard_attention_accesses as standard_attention_accesses,
    words_moved as words_moved,
)
from chapters.s31.encoders import (
    encoder_decoder as encoder_decoder,
    recurrent as recurrent,
    swin as swin,
    t5 as t5,
    vision_transformer as vision_transformer,
)
from chapters.s31.precision import (
    lost_gradients as lost_gradients,
    state_bytes_per_parameter as state_bytes_per_parameter,
)
from relparallel.workload.encoders import bert as bert
