"""Layer graphs: builders of well-known models, readers of public formats, what training them sends."""

from relparallel.workload.layer_graphs.convolutional import resnet_graph, vgg_graph
from relparallel.workload.layer_graphs.gradients import (
    DataParallelCost,
    Gradients,
    data_parallel_cost,
    gradients,
)
from relparallel.workload.layer_graphs.partitioning import PartitionProblem, read_partition_problem
from relparallel.workload.layer_graphs.profiles import read_profile, write_profile
from relparallel.workload.layer_graphs.sequences import bert_graph, gnmt_graph, transformer_graph

__all__ = [
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
]
