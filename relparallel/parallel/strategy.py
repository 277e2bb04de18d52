"""How a model is split over GPUs, and which GPU holds which part.

Tensor-parallel degree t, p pipeline stages, d data-parallel replicas, context-parallel degree c, b
sequences in a micro-batch, v model chunks per stage.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relparallel._checks import MOST_DEVICES, choice, flag, instance, record, require_int, whole
from relparallel.parallel.schedules import SCHEDULES, schedule_problem

# grids search the first three
RECOMPUTE: Final = ("none", "selective", "full", "alternate", "between", "mlp")
ENDS: Final = ("auto", "embedding", "loss", "both")  # bits of its place: the embedding, the loss
DEGREES: Final = ("tensor", "context", "data", "pipeline")


@record
class Strategy:
    """One way to split a training job: the parallel degrees and the choices that go with them.

    Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021,
    section 3. Rajbhandari et al., "ZeRO", SC 2020, section 5.

    Parameters
    ----------
    tensor, pipeline, data, context : int
        Parallel degrees t, p, d and c, each at least 1; the job uses t p d c GPUs.
    expert : int
        Expert-parallel degree; it divides d c, or t d c with `experts_over_tensor`, and is no
        factor of the GPU count.
    shard : int, optional
        Data-parallel ranks that share one copy of the ZeRO state; divides d, and is d where
        omitted. A smaller value is hybrid sharding: d / shard full copies of the state.
    micro_batch, virtual_stages : int
        Sequences b in one micro-batch, and model chunks v per pipeline stage: any with
        ``schedule="interleaved_1f1b"`` (above 1 only with pipeline > 1), 2 with the V-shaped
        schedules (zb_v, v_half, v_min), else 1.
    sequence_parallel : bool
        Whether the tensor-parallel ranks also split LayerNorm and dropout along the sequence.
    recompute : {"none", "selective", "full", "alternate", "between", "mlp"}
        What the backward pass computes again: nothing, the attention core, every layer, or every
        second matrix product and what lies between products, fused attention aside: the "op"
        checkpoints of torchtitan; norms and activation functions alone, or dense feed-forward
        blocks: Megatron-Core's modules "layernorm moe_act" and "mlp". Grids search the first three
        where no others are asked for.
    zero_stage : {0, 1, 2, 3}
        What is sharded besides nothing (0): optimizer state (1), gradients (2), parameters (3).
    schedule : str
        Order of the micro-batches in the pipeline, one of `SCHEDULES`; "chimera" needs an even
        pipeline.
    experts_over_tensor : bool
        Whether experts are whole and spread over the tensor ranks too, each with its own tokens:
        Megatron-Core's expert-tensor-parallel size 1, which with t > 1 needs ``sequence_parallel``.
        Else each expert is split t ways. Liu et al., "MoE Parallel Folding", 2025,
        arXiv:2504.14960.
    ends_as_layers : {"auto", "embedding", "loss", "both"}
        What takes the place of a layer when layers are dealt out to the chunks of a pipeline, the
        first of which have one more where p v does not divide their number:
        ``account_for_embedding_in_pipeline_split`` and ``account_for_loss_in_pipeline_split`` of
        Megatron-Core. "auto" counts those that fill chunks and let no stage grow.

    Examples
    --------
    >>> strategy = Strategy(tensor=8, pipeline=8, data=16)
    >>> strategy.gpus, strategy.model_parallel, strategy.micro_batches(global_batch=1536)
    (1024, 64, 96)
    """

    tensor: int = whole(default=1, at_least=1, at_most=MOST_DEVICES)
    pipeline: int = whole(default=1, at_least=1, at_most=MOST_DEVICES)
    data: int = whole(default=1, at_least=1, at_most=MOST_DEVICES)
    context: int = whole(default=1, at_least=1, at_most=MOST_DEVICES)
    expert: int = whole(default=1, at_least=1, at_most=MOST_DEVICES)
    shard: int | None = whole(default=None, at_least=1)
    micro_batch: int = whole(default=1, at_least=1)
    virtual_stages: int = whole(default=1, at_least=1)
    sequence_parallel: bool = flag(default=False)
    recompute: str = choice(RECOMPUTE, default="none")
    zero_stage: int = whole(default=0, at_least=0, at_most=3)
    schedule: str = choice(SCHEDULES, default="1f1b")
    ends_as_layers: str = choice(ENDS, default="auto")
    experts_over_tensor: bool = flag(default=False)

    def __post_init__(self) -> None:
        if self.shard is not None and self.data % self.shard:
            raise ValueError(f"shard must divide data = {self.data}, got {self.shard}")
        if self.data * self.context * self.tensor // self.expert_tensor % self.expert:
            also = f" * {self.tensor} (with tensor)" if self.experts_over_tensor else ""
            over = self.data * self.context * self.tensor % self.expert == 0
            way = f"; ETP1 SP (experts_over_tensor) has {self.tensor} times as many" * over
            raise ValueError(
                f"expert must divide data * context = {self.data} * {self.context}{also}, got "
                f"{self.expert}{way}"
            )
        if self.experts_over_tensor and self.tensor > 1 and not self.sequence_parallel:
            raise ValueError(
                "experts_over_tensor needs sequence_parallel where tensor is above 1, got "
                f"{self.tensor}"
            )
        problem = schedule_problem(self.schedule, self.pipeline, self.virtual_stages)
        if self.schedule == "interleaved_1f1b" and self.virtual_stages > self.pipeline == 1:
            problem = "virtual_stages must be 1 unless pipeline > 1"
        if problem:
            raise ValueError(
                f"{problem}, got virtual_stages {self.virtual_stages} with schedule "
                f"{self.schedule!r} "
                f"and pipeline {self.pipeline}"
            )

    @property
    def gpus(self) -> int:
        """GPUs of the job, t p d c."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def model_parallel(self) -> int:
        """GPUs of one model replica, t p c: they stop together when one of them fails."""
        return self.tensor * self.pipeline * self.context

    @property
    def expert_tensor(self) -> int:
        """Ranks that split one expert: 1 with `experts_over_tensor`, else t."""
        return 1 if self.experts_over_tensor else self.tensor

    @property
    def shard_group(self) -> int:
        """Data-parallel ranks that share one copy of the ZeRO state."""
        return self.data if self.shard is None else self.shard

    @property
    def state_copies(self) -> int:
        """Complete copies of the training state in the job: d without ZeRO, d / shard with it."""
        return self.data if self.zero_stage == 0 else self.data // self.shard_group

    def for_gpus(self, gpus: int) -> Strategy:
        """Return this strategy if its degrees multiply to a given GPU count, else refuse it."""
        require_int(gpus=gpus, at_least=1)
        if gpus != self.gpus:
            degrees = f"{self.tensor} * {self.pipeline} * {self.data} * {self.context}"
            raise ValueError(
                f"gpus must be tensor * pipeline * data * context = {degrees} = {self.gpus}, got "
                f"{gpus}"
            )
        return self

    def micro_batches(self, global_batch: int) -> int:
        """Micro-batches m = B/(d b) each replica works through in one iteration of B sequences."""
        require_int(global_batch=global_batch, at_least=1)
        together = self.data * self.micro_batch
        if global_batch % together:
            raise ValueError(
                f"global_batch must be a multiple of {together} for data {self.data}, micro_batch "
                f"{self.micro_batch}, got {global_batch}"
            )
        return global_batch // together


@record
class Placement:
    """Which GPU runs which rank of a strategy.

    A rank is numbered tensor fastest, then context, data, pipeline. ``order`` says in which order
    the GPUs are dealt out; GPUs are numbered node by node, so the first names stay inside a node.

    Parameters
    ----------
    strategy : Strategy
        The degrees to place.
    order : tuple of str
        A permutation of ("tensor", "context", "data", "pipeline"), fastest first. The default keeps
        tensor parallelism inside a node and gives pipelines, which move least, the longest links
        (Narayanan et al. 2021, section 3.2); where t c is smaller than a node, one node holds parts
        of several replicas. Dealing data last gives each replica its own nodes.

    Examples
    --------
    >>> strategy = Strategy(tensor=4, pipeline=2, data=2)
    >>> Placement(strategy=strategy).replicas.tolist()
    [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    >>> Placement(strategy=strategy, order=("tensor", "context", "pipeline", "data")).replicas.tolist()
    [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]
    """

    strategy: Strategy = instance(Strategy)
    order: tuple[str, ...] = instance(tuple, default=DEGREES)

    def __post_init__(self) -> None:
        if len(self.order) != 4 or set(map(str, self.order)) != set(DEGREES):
            raise ValueError(f"order must be a permutation of {DEGREES}, got {self.order!r}")

    @property
    def gpu(self) -> NDArray[np.int64]:
        """GPU number of every rank; int64, shape (gpus,)."""
        return self._grid().ravel()

    @property
    def tensor_groups(self) -> NDArray[np.int64]:
        """GPUs that split the same layers; int64, shape (gpus / t, t)."""
        return self._groups("tensor")

    @property
    def context_groups(self) -> NDArray[np.int64]:
        """GPUs that split the same sequences; int64, shape (gpus / c, c)."""
        return self._groups("context")

    @property
    def data_groups(self) -> NDArray[np.int64]:
        """GPUs that hold the same parameters of different replicas; int64, shape (gpus / d, d)."""
        return self._groups("data")

    @property
    def pipeline_groups(self) -> NDArray[np.int64]:
        """GPUs that form one pipeline, first stage first; int64, shape (gpus / p, p)."""
        return self._groups("pipeline")

    @property
    def shard_groups(self) -> NDArray[np.int64]:
        """GPUs sharing one copy of the ZeRO state: data groups cut into runs of ``shard`` ranks."""
        return self.data_groups.reshape(-1, self.strategy.shard_group)

    @property
    def stages(self) -> NDArray[np.int64]:
        """GPUs of each pipeline stage over all replicas; int64, shape (p, gpus / p)."""
        return self.pipeline_groups.T

    @property
    def replicas(self) -> NDArray[np.int64]:
        """GPUs of each model replica; int64, shape (d, t c p)."""
        return self._grid().transpose(1, 0, 2, 3).reshape(self.strategy.data, -1)

    def replica_nodes(self, gpus_per_node: int) -> NDArray[np.bool_]:
        """Whether a node holds a part of a replica; bool, shape (data, nodes).

        Row sums are the nodes per replica, column sums the replicas that one node failure stops;
        the last node may be partly used.
        """
        require_int(gpus_per_node=gpus_per_node, at_least=1, at_most=MOST_DEVICES)
        held = np.zeros(
            (self.strategy.data, math.ceil(self.strategy.gpus / gpus_per_node)), dtype=np.bool_
        )
        np.put_along_axis(held, self.replicas // gpus_per_node, True, axis=1)
        return held

    def nodes_per_replica(self, gpus_per_node: int) -> int:
        """Most nodes that one replica touches: any of them stops it by failing."""
        return int(self.replica_nodes(gpus_per_node).sum(axis=1).max())

    def replicas_per_node(self, gpus_per_node: int) -> int:
        """Most replicas that one node holds parts of: what a node failure stops at once."""
        return int(self.replica_nodes(gpus_per_node).sum(axis=0).max())

    def _grid(self) -> NDArray[np.int64]:
        """GPU numbers on the axes (pipeline, data, context, tensor)."""
        slowest_first = self.order[::-1]
        sizes = [getattr(self.strategy, name) for name in slowest_first]
        dealt = np.arange(self.strategy.gpus, dtype=np.int64).reshape(sizes)
        return dealt.transpose([slowest_first.index(name) for name in DEGREES[::-1]])

    def _groups(self, degree: str) -> NDArray[np.int64]:
        """GPUs that differ in one degree only, one group per row."""
        axis = DEGREES[::-1].index(degree)
        return np.moveaxis(self._grid(), axis, -1).reshape(-1, getattr(self.strategy, degree))
