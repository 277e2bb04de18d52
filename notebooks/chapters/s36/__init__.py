"""Notebook 36: gradients that are compressed, with and without memory of what was not sent."""

from chapters.s36.compression import (
    global_top_k as global_top_k,
    golomb_bits as golomb_bits,
    one_bit as one_bit,
    qsgd as qsgd,
    random_k as random_k,
    reduced_precision as reduced_precision,
    sparse_binary as sparse_binary,
    terngrad as terngrad,
    top_k as top_k,
)
from chapters.s36.feedback import (
    CompressedGradient as CompressedGradient,
    ErrorFeedback as ErrorFeedback,
)
from chapters.s36.truncation import truncated_gradient as truncated_gradient
