"""What a plan is asked about: models, clusters, networks and strategies, by name or from files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from relparallel._checks import among, require_instance, require_int
from relparallel.hardware import (
    Accelerator,
    Cluster,
    accelerator,
    cluster as named_cluster,
    clusters,
)
from relparallel.hardware.machines import nearest
from relparallel.optimize.joint_question import STORAGE
from relparallel.parallel.gpu_memory import PRECISIONS
from relparallel.planning.networks import network_of_gpus
from relparallel.topology import Topology, rail_only, read
from relparallel.topology.formats._text import loaded
from relparallel.training import FailureLog, redundant_fabric
from relparallel.training.log_files import read_rows
from relparallel.units import GB, GBIT
from relparallel.workload import Transformer, read_config, transformer, transformers

FABRICS: Final = ("two-level", "rail-optimised", "dual-plane", "rail-only")
"""Networks by name: leaves for whole servers; a leaf per rail; two planes of those; rails alone."""

USUAL: Final = 8192
"""Tokens of a sequence where a file says what a model can read: Llama 3's training, section 3.4."""
_COUNTS: Final = (
    "gpus_per_node",
    "nodes_per_switch",
    "nodes_per_rack",
    "gpus_per_tray",
    "nvlink_trays",
    "spare_trays",
)
_OPTIONAL: Final = ("name", "host_link", *_COUNTS)


def read_cluster(path: str | PathLike[str]) -> tuple[Cluster, ...]:
    r"""Read clusters from a table.

    Parameters
    ----------
    path : str or path
        A CSV file with one cluster in each row, or a JSON or YAML file with one or a list of them.
        Fields: accelerator and gpus; network_gbit, of a node in one direction [Gbit/s]; and, where
        they differ from what stands here, gpus_per_node (8), nodes_per_switch, nodes_per_rack (1),
        gpus_per_tray (all of a node), nvlink_trays, spare_trays (none) and name, as in
        `hardware.Cluster`. In JSON and YAML, accelerator may also be an own one: the fields of
        `hardware.Accelerator` in its units [FLOP/s, bytes, bytes/s]. It borrows the calibration of
        the family that its name begins with, as in "h100-mine", else that of the next in peak rate;
        steps on it say so.

    Returns
    -------
    tuple of Cluster
        In the order of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = path.write_text("name,accelerator,gpus,network_gbit\nmine,h100-80gb,512,3200\n")
    >>> read_cluster(path)[0].nodes
    64
    """
    where = Path(require_instance((str, PathLike), path=path))
    table = read_rows(where, head=True) if where.suffix == ".csv" else None
    try:
        rows: Any = loaded(where) if table is None else table.to_dict("records")
    except OSError as error:
        raise ValueError(
            f"path must name a CSV, JSON or YAML file, got {where} ({error})"
        ) from None
    rows = rows if isinstance(rows, list) else [rows]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"path must hold clusters by their fields, got {where}")
    return tuple(_cluster_of(row, where, number) for number, row in enumerate(rows, 1))


def _whole(value: Any) -> int:
    """A whole number of a file."""
    number = _number(value)
    if not number.is_integer():
        raise ValueError(f"expected a whole number, got {value!r:.80}")
    return int(number)


def _number(value: Any) -> float:
    """A number of a file; YAML takes 989e12 for a word."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"expected a number, got {value!r:.80}")
    return float(value)


def _word(value: Any) -> str:
    """A text of a file."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"expected a text, got {value!r:.80}")
    return str(value)


def _rates(value: Any) -> dict[str, float]:
    """Rates by number format."""
    if not isinstance(value, dict) or not value:
        raise TypeError(f"expected rates by number format, such as bf16: 989e12, got {value!r:.80}")
    return {_word(key): _number(rate) for key, rate in value.items()}


def _device(value: Any) -> Accelerator:
    """An accelerator by name, or an own one by its fields."""
    if not isinstance(value, dict):
        return accelerator(_word(value))
    return Accelerator(**{"name": "own accelerator"} | _fields(value, _DEVICE))


_DEVICE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": _word,
    "peak": _rates,
    "matmul": _rates,
    "memory": _number,
    "memory_bandwidth": _number,
    "node_link": _number,
    "multiprocessors": _whole,
    "host_link": _number,
}
_CLUSTER: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": _word,
    "accelerator": _device,
    "gpus": _whole,
    "network_gbit": _number,
    **dict.fromkeys(_COUNTS, _whole),
}


def _fields(row: dict[Any, Any], known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Values of fields, each as its kind."""
    found = {}
    for key, value in row.items():
        if key not in known:
            raise ValueError(f"fields must be among {', '.join(known)}, got {key!r:.80}")
        if value == "":  # an empty cell
            continue
        try:
            found[key] = known[key](value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{key}: {error}") from None
    if lacking := [key for key in known if key not in found and key not in _OPTIONAL]:
        raise ValueError(f"{lacking[0]!r} is missing")
    return found


def _cluster_of(row: dict[Any, Any], path: Path, number: int) -> Cluster:
    """One cluster of a file."""
    try:
        given: dict[str, Any] = {"name": path.stem, "gpus_per_node": 8} | _fields(row, _CLUSTER)
        gpus, node = given.pop("gpus"), given["gpus_per_node"]
        if node < 1 or gpus % node:
            near = f": {nearest(gpus, node)}" if min(node, gpus) > 0 else ""
            raise ValueError(f"gpus must fill nodes of {node}, got {gpus}{near}")
        return Cluster(
            nodes=gpus // node, network_bandwidth=given.pop("network_gbit") * GBIT, **given
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"path must hold whole clusters, got {path}, cluster {number}: {error}"
        ) from None


def assumptions(rates: Any, options: Mapping[str, Any], machines: Sequence[Cluster]) -> list[str]:
    """What is said of failures, of storage that nothing was said of, and of spare trays."""
    said = [f"parts fail as in the table {rates!r}"] if isinstance(rates, str) else []
    if isinstance(rates, FailureLog):
        said = [*(note for note in rates.notes if note != rates.reading), rates.reading]
    if not {"checkpoints", "storage_bandwidth"} & options.keys():
        rate = STORAGE * max(one.gpus for one in machines) / GB
        said.append(f"checkpoints are written at {rate:,.0f} GB/s, Llama 3's storage by the GPUs")
    for one in machines:
        if one.spare_trays:
            kept = f"{one.spare_trays} spare trays besides the {one.gpus_per_node // one.tray}"
            said.append(
                f"each node of {one.name or 'the cluster'} has {kept} of the job; a failed tray "
                "takes one first"
            )
    return said


def model_of(
    model: Any, sequence: int | None, ignore: Any = ()
) -> tuple[str, Transformer, list[str]]:
    """Name, sizes, and what was assumed of a model."""
    notes: list[str] = []
    file = isinstance(model, (str, PathLike)) and Path(model).suffix == ".json"
    if require_instance((list, tuple), ignore=ignore) and not file:
        raise ValueError(
            f"ignore must be left out unless model is a config.json, got {ignore!r:.80}"
        )
    if isinstance(model, Transformer):
        found, name = model, "own model"
    elif isinstance(model, str) and model in transformers():
        found, name = transformer(model), model
        if sequence is None:
            notes = [f"sequences of {found.sequence:,} tokens, with which the model was published"]
    elif file:
        read = read_config(model, sequence=sequence, ignore=ignore)
        # what a model can read is not what it trains on
        if sequence is None and read.model.sequence > USUAL:
            said = (
                f"sequences of {USUAL:,} tokens are taken; the file allows {read.model.sequence:,}"
            )
            read = read_config(model, sequence=USUAL, ignore=ignore)
            read = read._replace(
                notes=(*(n for n in read.notes if not n.endswith("as asked")), said)
            )
        found, name, notes = read.model, read.name, list(read.notes)
    else:
        require_instance((str, PathLike), model=model)
        raise ValueError(f"model must be a config.json, or {among(transformers(), str(model))}")
    if sequence is not None:
        found = replace(found, sequence=require_int(sequence=sequence, at_least=1))
    return name, found, notes


def clusters_of(cluster: Any, gpus: Any) -> tuple[Cluster, ...]:
    """Clusters by name, from files, or as they are."""
    several = cluster if isinstance(cluster, (list, tuple)) else [cluster]
    sizes = list(gpus) if isinstance(gpus, (list, tuple)) else [gpus] * len(several)
    if not several:
        raise ValueError(f"cluster must be at least one cluster, got {cluster!r}")
    if len(sizes) != len(several):
        raise ValueError(
            f"gpus must be one number for each of {len(several)} clusters, got {gpus!r:.80}"
        )
    found: list[Cluster] = []
    for one, size in zip(several, sizes, strict=True):
        if isinstance(one, Cluster):
            found.append(one)
        elif isinstance(one, str) and one in clusters():
            if size is None:
                raise ValueError(f"gpus must be given for the cluster {one}, got None")
            found.append(named_cluster(one, size))
        elif isinstance(one, (str, PathLike)) and Path(one).suffix in (
            ".csv",
            ".json",
            ".yaml",
            ".yml",
        ):
            found += read_cluster(one)
        else:
            require_instance((str, PathLike, Cluster), cluster=one)
            raise ValueError(
                f"cluster must be a CSV, JSON or YAML file, or {among(clusters(), str(one))}"
            )
    if gpus is not None and not any(isinstance(one, str) and one in clusters() for one in several):
        raise ValueError(
            f"gpus must be left out unless a cluster is given by name, got {gpus!r:.80}"
        )
    for one in found:
        if one.accelerator is None or one.network_bandwidth is None:
            raise ValueError(
                f"cluster must have an accelerator and a network_bandwidth, got {one!r:.200}"
            )
    return tuple(found)


def usual_batch(model: Transformer, gpus: int) -> int:
    """Sequences of about 4e6 tokens, at least one for each GPU, as a power of two."""
    wanted = max(4e6 / model.sequence, gpus)
    return int(2 ** np.ceil(np.log2(wanted)))


def require_room(name: str, model: Transformer, cluster: Cluster) -> None:
    """Refuse a cluster that cannot hold one copy of the training state on all its GPUs together."""
    kept = PRECISIONS["mixed"]
    state = model.parameters * (kept.parameter_bytes + kept.gradient_bytes + kept.optimizer_bytes)
    assert cluster.accelerator is not None
    room = cluster.gpus * cluster.accelerator.memory
    if state > room:
        least = int(np.ceil(state / cluster.accelerator.memory))
        raise ValueError(
            f"cluster must hold the training state of {name}, {state / GB:,.0f} GB, got "
            f"{cluster.gpus:,} "
            f"GPUs with {room / GB:,.0f} GB together: give more than {least:,}"
        )


def network_of(network: str | PathLike[str] | Topology | None, cluster: Cluster) -> Topology | None:
    """A cluster's GPUs on a network by name, as fast as its links are, from a file, or as it is."""
    if network is None:
        return None
    require_instance((str, PathLike, Topology), network=network)
    servers, gpus = cluster.nodes, cluster.gpus_per_node
    assert cluster.network_bandwidth is not None
    assert cluster.accelerator is not None
    card, nvlink = cluster.network_bandwidth / gpus, cluster.accelerator.node_link
    if isinstance(network, Topology):
        return network_of_gpus(network, cluster)
    if network not in FABRICS:
        if not Path(network).is_file():
            raise ValueError(
                f"network must be a file of a network, or {among(FABRICS, str(network))}"
            )
        return network_of_gpus(read(network), cluster)
    if network == "rail-only":
        t = rail_only(domains=servers, gpus_per_domain=gpus)
        return replace(
            t, capacity=np.where(t.is_kind("nvswitch")[t.edges].any(axis=1), nvlink, card)
        )
    leaf = next(size for size in (32, 16, 8, 4, 2, 1) if servers % size == 0)
    rails, planes = 1 if network == "two-level" else gpus, 2 if network == "dual-plane" else 1
    return redundant_fabric(
        servers,
        rails=rails,
        planes=planes,
        gpus=gpus,
        servers_per_leaf=leaf,
        card=card,
        nvlink=nvlink,
    )
