"""What data parallelism sends for a graph of layers: how many bytes, when, and beside how much work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relparallel._checks import require_instance, require_int, require_real
from relparallel.topology import _arrays
from relparallel.topology._arrays import FloatArray
from relparallel.workload.layer_graph import LayerGraph

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Gradients:
    """Gradients in the order in which a backward pass makes them.

    Parameters
    ----------
    names : tuple of str
        Layers with parameters, the last layer of the model first, k of them.
    sizes : array_like
        Bytes of each gradient, shape [k].
    ready : array_like
        Work from the start of the backward pass until the gradient is made, shape [k], never falling.

    Examples
    --------
    >>> Gradients(names=("head", "embedding"), sizes=[8.0, 16.0], ready=[1.0, 4.0]).to_frame().shape
    (2, 3)
    """

    names: tuple[str, ...]
    sizes: FloatArray
    ready: FloatArray

    def __post_init__(self) -> None:
        names = _arrays.names("names", self.names)
        for name in ("sizes", "ready"):
            array = _arrays.reals(name, getattr(self, name), len(names), "names", at_least=0.0)
            object.__setattr__(self, name, _arrays.read_only(array))
        object.__setattr__(self, "names", names)
        if np.any(np.diff(self.ready) < 0):
            raise ValueError(f"ready must never fall, got {self.ready.tolist()}")

    def to_frame(self) -> pd.DataFrame:
        """One row for each gradient, the first one made first.

        Returns
        -------
        pandas.DataFrame
            Columns name, bytes and ready.

        Examples
        --------
        >>> from relparallel.workload import vgg_graph
        >>> gradients(vgg_graph(16)).to_frame()["name"].tolist()[:2]
        ['fc8', 'fc7']
        """
        import pandas as pd

        return pd.DataFrame({"name": self.names, "bytes": self.sizes, "ready": self.ready})


def gradients(graph: LayerGraph) -> Gradients:
    """List the gradients of a model in backward order: what buckets and priorities work on.

    Parameters
    ----------
    graph : LayerGraph
        The model; its backward pass runs the topological order in reverse, one layer at a time.

    Returns
    -------
    Gradients
        Of the layers with parameters. ``ready`` is in the unit of the graph and includes the work of layers
        without parameters that come before in the backward pass.

    Notes
    -----
    ready_i = sum of B_j over the layers j from the last one down to i. O(n).

    References
    ----------
    Shi, Chu and Li, "MG-WFBP: Efficient Data Communication for Distributed Synchronous SGD Algorithms",
    INFOCOM 2019.

    Examples
    --------
    >>> from relparallel.workload import vgg_graph
    >>> found = gradients(vgg_graph(16))
    >>> bytes_made, work_done = found.sizes[:3].sum() / found.sizes.sum(), found.ready[2] / found.ready[-1]
    >>> f"{bytes_made:.3f} of the bytes after {work_done:.3f} of the work"
    '0.894 of the bytes after 0.008 of the work'
    """
    require_instance(LayerGraph, graph=graph)
    backward = graph.order[::-1]
    kept = backward[graph.parameter_bytes[backward] > 0]
    if not kept.size:
        raise ValueError(f"graph must have parameters, got {graph!r}")
    ready = np.empty(len(graph))
    ready[backward] = np.cumsum(graph.backward[backward])
    names = tuple(graph.names[layer] for layer in kept)
    return Gradients(names=names, sizes=graph.parameter_bytes[kept], ready=ready[kept])


@dataclass(frozen=True, kw_only=True, eq=False)
class DataParallelCost:
    """Seconds of computation and of gradient exchange, layer by layer, before any overlap.

    Parameters
    ----------
    names : tuple of str
        The n layers.
    compute, communication : array_like
        Seconds of one worker in one step, shape [n].

    Examples
    --------
    >>> DataParallelCost(names=("a", "b"), compute=[3.0, 0.0], communication=[1.0, 0.0]).share.tolist()
    [0.25, 0.0]
    """

    names: tuple[str, ...]
    compute: FloatArray
    communication: FloatArray

    def __post_init__(self) -> None:
        names = _arrays.names("names", self.names)
        for name in ("compute", "communication"):
            array = _arrays.reals(name, getattr(self, name), len(names), "names", at_least=0.0)
            object.__setattr__(self, name, _arrays.read_only(array))
        object.__setattr__(self, "names", names)

    @property
    def share(self) -> FloatArray:
        """Communication over the sum of both, 0 where a layer costs nothing [n]."""
        total = self.compute + self.communication
        return np.divide(self.communication, total, out=np.zeros_like(total), where=total > 0)

    @property
    def total_share(self) -> float:
        """Communication over the sum of both, of the whole model."""
        communication = float(self.communication.sum())
        total = communication + float(self.compute.sum())
        return communication / total if total else 0.0

    def to_frame(self) -> pd.DataFrame:
        """One row for each layer.

        Returns
        -------
        pandas.DataFrame
            Columns name, compute, communication and share.

        Examples
        --------
        >>> DataParallelCost(names=("a",), compute=[3.0], communication=[1.0]).to_frame().shape
        (1, 4)
        """
        import pandas as pd

        columns = {"compute": self.compute, "communication": self.communication, "share": self.share}
        return pd.DataFrame({"name": self.names, **columns})


def data_parallel_cost(
    graph: LayerGraph,
    workers: int,
    bandwidth: float,
    *,
    batch: int | None = None,
    flops: float | None = None,
) -> DataParallelCost:
    """Compare the computation of each layer with the exchange of its gradient.

    Parameters
    ----------
    graph : LayerGraph
        The model.
    workers : int
        Replicas m, at least 1.
    bandwidth : float
        Bytes/s of each worker's link.
    batch : int, optional
        Samples of one worker; as many as ``graph`` is of where omitted. Work is taken as proportional.
    flops : float, optional
        FLOP/s of a worker; needed for a graph whose work is in FLOP, refused for one in seconds.

    Returns
    -------
    DataParallelCost
        Seconds (F + B) of computation and 2 (m - 1)/m W/b of ring all-reduce for each layer.

    Notes
    -----
    Latency and overlap are left out: a total share above 1/2 cannot be hidden by any order. The optimizer of
    PipeDream charges twice this communication, for it counts both passes.

    Examples
    --------
    >>> from relparallel.workload import vgg_graph
    >>> cost = data_parallel_cost(vgg_graph(16), 16, 1e9, batch=32, flops=10e12)
    >>> [f"{share:.3f}" for share in (cost.share[0], cost.share[-3], cost.total_share)]
    ['0.008', '0.997', '0.777']
    """
    require_instance(LayerGraph, graph=graph)
    require_int(workers=workers, at_least=1)
    require_real(bandwidth=bandwidth, above=0)
    samples = graph.batch if batch is None else require_int(batch=batch, at_least=1)
    if (flops is None) == (graph.unit == "FLOP"):
        wanted = "be the rate of a worker" if flops is None else "be omitted"
        raise ValueError(f"flops must {wanted} for work in {graph.unit}, got {flops!r}")
    rate = 1.0 if flops is None else require_real(flops=flops, above=0)
    compute = (graph.forward + graph.backward) * (samples / graph.batch / rate)
    communication = 2 * (workers - 1) / workers * graph.parameter_bytes / bandwidth
    return DataParallelCost(names=graph.names, compute=compute, communication=communication)
