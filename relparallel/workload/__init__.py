"""What is trained: parameters and floating-point operations of a model."""

from relparallel.workload.transformer import Transformer

__all__ = ["Transformer"]
