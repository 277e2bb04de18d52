"""Notebook 36: compressed, delayed and larger updates, on problems small enough to train."""

from relparallel.book.s36.asynchrony import (
    asynchronous_run as asynchronous_run,
    asynchronous_taps as asynchronous_taps,
    ssp_throughput as ssp_throughput,
)
from relparallel.book.s36.batch import UpdateRule as UpdateRule, noise_scale as noise_scale
from relparallel.book.s36.compression import (
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
from relparallel.book.s36.feedback import (
    CompressedGradient as CompressedGradient,
    ErrorFeedback as ErrorFeedback,
)
from relparallel.book.s36.linear_models import (
    cocoa as cocoa,
    truncated_gradient as truncated_gradient,
)
from relparallel.book.s36.problems import (
    logistic_problem as logistic_problem,
    network_problem as network_problem,
)
