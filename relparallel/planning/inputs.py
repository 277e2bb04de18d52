"""What a plan is asked about: models, clusters, networks and strategies, by name or from files."""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from relparallel._checks import among, require_instance, require_int
from relparallel.hardware import Cluster, accelerator, cluster as named_cluster, clusters
from relparallel.planning.networks import network_of_gpus
from relparallel.topology import Topology, rail_only, read
from relparallel.training import redundant_fabric
from relparallel.units import GBIT
from relparallel.workload import Transformer, read_config, transformer, transformers

FABRICS: Final = ("two-level", "rail-optimised", "dual-plane", "rail-only")
"""Networks by name: leaves for whole servers; a leaf for each rail; two planes of those; rails alone."""

USUAL: Final = 8192
"""Tokens of a sequence where a file says what a model can read: as Llama 3 was trained on, section 3.4."""


def read_cluster(path: str | PathLike[str]) -> tuple[Cluster, ...]:
    r"""Read clusters from a table.

    Parameters
    ----------
    path : str or path
        A CSV file with one cluster in each row, or a JSON or flat YAML file with one or a list of them.
        Fields: accelerator and gpus; network_gbit, of a node in one direction [Gbit/s]; and, where they
        differ from what stands here, gpus_per_node (8), nodes_per_switch, nodes_per_rack (1) and name.

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
    try:
        text = where.read_text(encoding="utf-8-sig")
        if where.suffix == ".csv":
            rows: Any = list(csv.DictReader(text.splitlines(), strict=True))
        else:
            rows = json.loads(text) if where.suffix == ".json" else _flat_yaml(text)
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise ValueError(f"path must name a CSV, JSON or YAML file, got {where} ({error})") from None
    rows = rows if isinstance(rows, list) else [rows]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"path must hold clusters by their fields, got {where}")
    return tuple(_cluster_of(row, where, number) for number, row in enumerate(rows, 1))


def _flat_yaml(text: str) -> list[dict[str, str]]:
    """Mappings without nesting, or a list of them: all the YAML that a cluster needs."""
    rows: list[dict[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not bare or bare == "---":
            continue
        found = re.fullmatch(r"(- )? *(\w+):\s+(['\"]?)([^'\"{}\[\]]+)\3", bare)
        if found is None:
            raise ValueError(f"line {number} is no 'field: value': {line[:80]!r}")
        if found[1] or not rows:
            rows.append({})
        rows[-1][found[2]] = found[4].strip()
    return rows


def _cluster_of(row: dict[Any, Any], path: Path, number: int) -> Cluster:
    """One cluster of a file."""
    allowed = (
        "name", "accelerator", "gpus", "gpus_per_node", "network_gbit", "nodes_per_switch", "nodes_per_rack",
    )  # fmt: skip
    given = {key: value for key, value in row.items() if value not in (None, "")}
    if wrong := [key for key in given if key not in allowed]:
        raise ValueError(f"path must have the fields {', '.join(allowed)}, got {wrong[0]!r:.80} in {path}")
    try:
        node = int(given.get("gpus_per_node", 8))
        gpus, bandwidth = int(given["gpus"]), float(given["network_gbit"]) * GBIT
        if gpus % node:
            raise ValueError(f"gpus must fill nodes of {node}, got {gpus}")
        return Cluster(
            nodes=gpus // node, gpus_per_node=node, network_bandwidth=bandwidth,
            accelerator=accelerator(str(given["accelerator"])), name=str(given.get("name", path.stem)),
            nodes_per_switch=int(given.get("nodes_per_switch", 1)),
            nodes_per_rack=int(given.get("nodes_per_rack", 1)),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"path must hold whole clusters, got {path}, cluster {number}: {said}") from None


def model_of(
    model: Any, sequence: int | None, ignore: Sequence[str] = ()
) -> tuple[str, Transformer, list[str]]:
    """Name, sizes, and what was assumed of a model."""
    notes: list[str] = []
    file = isinstance(model, (str, PathLike)) and Path(model).suffix == ".json"
    if ignore and not file:
        raise ValueError(f"ignore must be left out unless model is a config.json, got {ignore!r:.80}")
    if isinstance(model, Transformer):
        found, name = model, "own model"
    elif model in transformers():
        found, name = transformer(model), model
        if sequence is None:
            notes = [f"sequences of {found.sequence:,} tokens, with which the model was published"]
    elif file:
        read = read_config(model, sequence=sequence, ignore=ignore)
        if sequence is None and read.model.sequence > USUAL:  # what a model can read is not what it trains on
            said = f"sequences of {USUAL:,} tokens are taken; the file allows {read.model.sequence:,}"
            read = read_config(model, sequence=USUAL, ignore=ignore)
            read = replace(read, notes=(*read.notes, said))
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
        raise ValueError(f"gpus must be one number for each of {len(several)} clusters, got {gpus!r:.80}")
    found: list[Cluster] = []
    for one, size in zip(several, sizes, strict=True):
        if isinstance(one, Cluster):
            found.append(one)
        elif one in clusters():
            if size is None:
                raise ValueError(f"gpus must be given for the cluster {one}, got None")
            found.append(named_cluster(one, size))
        elif isinstance(one, (str, PathLike)) and Path(one).suffix in (".csv", ".json", ".yaml", ".yml"):
            found += read_cluster(one)
        else:
            require_instance((str, PathLike, Cluster), cluster=one)
            raise ValueError(f"cluster must be a CSV, JSON or YAML file, or {among(clusters(), str(one))}")
    if gpus is not None and not any(isinstance(one, str) and one in clusters() for one in several):
        raise ValueError(f"gpus must be left out unless a cluster is given by name, got {gpus!r:.80}")
    for one in found:
        if one.accelerator is None or one.network_bandwidth is None:
            raise ValueError(f"cluster must have an accelerator and a network_bandwidth, got {one!r:.200}")
    return tuple(found)


def usual_batch(model: Transformer, gpus: int) -> int:
    """Sequences of about 4e6 tokens, at least one for each GPU, as a power of two."""
    wanted = max(4e6 / model.sequence, gpus)
    return int(2 ** np.ceil(np.log2(wanted)))


def network_of(network: str | PathLike[str] | Topology | None, cluster: Cluster) -> Topology | None:
    """The GPUs of a cluster on a network by name, as fast as its links are, from a file, or as it is."""
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
            known = f"one of {', '.join(map(repr, FABRICS))}, or a file of a network"
            raise ValueError(f"network must be {known}, got {str(network)!r:.80}")
        return network_of_gpus(read(network), cluster)
    if network == "rail-only":
        t = rail_only(domains=servers, gpus_per_domain=gpus)
        return replace(t, capacity=np.where(t.is_kind("nvswitch")[t.edges].any(axis=1), nvlink, card))
    leaf = next(size for size in (32, 16, 8, 4, 2, 1) if servers % size == 0)
    rails, planes = 1 if network == "two-level" else gpus, 2 if network == "dual-plane" else 1
    return redundant_fabric(
        servers, rails=rails, planes=planes, gpus=gpus, servers_per_leaf=leaf, card=card, nvlink=nvlink
    )
