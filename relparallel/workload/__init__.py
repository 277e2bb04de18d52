"""What is trained: parameters, floating-point operations and bytes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relparallel._lazy import offered

# Now, not when first used: the import of a module puts it in the place of its function of the same name.
from relparallel.workload.decoder import operators
from relparallel.workload.presets import transformer, transformers
from relparallel.workload.rlhf import MixedWorkload, Phase, rlhf

if TYPE_CHECKING:
    from relparallel.workload.attention_io import (
        break_even_sram,
        flash_attention_accesses,
        standard_attention_accesses,
    )
    from relparallel.workload.data_movement import ENCODER_FUSION, encoder_layer, words_moved
    from relparallel.workload.encoders import bert, encoder_decoder, t5, vision_transformer
    from relparallel.workload.layer_graph import LayerGraph
    from relparallel.workload.layer_graphs import (
        DataParallelCost,
        Gradients,
        PartitionProblem,
        bert_graph,
        data_parallel_cost,
        gnmt_graph,
        gradients,
        read_partition_problem,
        read_profile,
        resnet_graph,
        transformer_graph,
        vgg_graph,
        write_profile,
    )
    from relparallel.workload.operators import KINDS, Operator, OperatorTable
    from relparallel.workload.precision import (
        FORMATS,
        NumberFormat,
        lost_gradients,
        state_bytes_per_parameter,
    )
    from relparallel.workload.recurrent import lstm, rnn
    from relparallel.workload.transformer import LatentAttention, Transformer
    from relparallel.workload.windows import swin

__all__ = [
    "ENCODER_FUSION",
    "FORMATS",
    "KINDS",
    "DataParallelCost",
    "Gradients",
    "LatentAttention",
    "LayerGraph",
    "MixedWorkload",
    "NumberFormat",
    "Operator",
    "OperatorTable",
    "PartitionProblem",
    "Phase",
    "Transformer",
    "bert",
    "bert_graph",
    "break_even_sram",
    "data_parallel_cost",
    "encoder_decoder",
    "encoder_layer",
    "flash_attention_accesses",
    "gnmt_graph",
    "gradients",
    "lost_gradients",
    "lstm",
    "operators",
    "read_partition_problem",
    "read_profile",
    "resnet_graph",
    "rlhf",
    "rnn",
    "standard_attention_accesses",
    "state_bytes_per_parameter",
    "swin",
    "t5",
    "transformer",
    "transformer_graph",
    "transformers",
    "vgg_graph",
    "vision_transformer",
    "words_moved",
    "write_profile",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "attention_io": ("break_even_sram", "flash_attention_accesses", "standard_attention_accesses"),
        "data_movement": ("ENCODER_FUSION", "encoder_layer", "words_moved"),
        "encoders": ("bert", "encoder_decoder", "t5", "vision_transformer"),
        "layer_graph": ("LayerGraph",),
        "layer_graphs": (
            "DataParallelCost",
            "Gradients",
            "PartitionProblem",
            "bert_graph",
            "data_parallel_cost",
            "gnmt_graph",
            "gradients",
            "read_partition_problem",
            "read_profile",
            "resnet_graph",
            "transformer_graph",
            "vgg_graph",
            "write_profile",
        ),
        "operators": ("KINDS", "Operator", "OperatorTable"),
        "precision": ("FORMATS", "NumberFormat", "lost_gradients", "state_bytes_per_parameter"),
        "recurrent": ("lstm", "rnn"),
        "transformer": ("LatentAttention", "Transformer"),
        "windows": ("swin",),
    },
)
