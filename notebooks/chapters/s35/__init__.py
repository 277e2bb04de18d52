"""Notebook 35: planners of the literature: stages, operators, devices and halvings."""

from chapters.s35.halving import hypar as hypar, tofu as tofu
from chapters.s35.operator_strategies import (
    OperatorProblem as OperatorProblem,
    anneal_plan as anneal_plan,
    operator_plan as operator_plan,
)
from chapters.s35.partition import throughput_partition as throughput_partition
from chapters.s35.partition_problems import (
    PartitionProblem as PartitionProblem,
    read_partition_problem as read_partition_problem,
)
from chapters.s35.pipelines import (
    alpa as alpa,
    dapple as dapple,
    pipedream as pipedream,
    stanza as stanza,
)
from chapters.s35.profiles import read_profile as read_profile
from chapters.s35.stage_order import stage_order as stage_order
