"""What a plan is asked about: models, clusters, networks and strategies, by name or from files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from relparallel._checks import (
    among,
    require_choice,
    require_instance,
    require_int,
    require_number,
)
from relparallel.hardware import Cluster
from relparallel.optimize.joint_question import STORAGE
from relparallel.parallel.gpu_memory import PRECISIONS, kept_by
from relparallel.parallel.machine_parameters import described, software
from relparallel.planning.networks import network_of_gpus
from relparallel.topology import Topology, rail_only, read
from relparallel.training import FailureLog, redundant_fabric
from relparallel.units import GB
from relparallel.workload import Transformer, read_config, transformer, transformers

FABRICS: Final = ("two-level", "rail-optimised", "dual-plane", "rail-only")
"""Networks by name: leaves for whole servers; a leaf per rail; two planes of those; rails alone."""

MARGIN: Final = 0.05
"""Share of the memory of a GPU that stays free: for fragments, and what no formula has."""

USUAL: Final = 8192
"""Tokens of a sequence where a file says what a model can read: Llama 3's training, section 3.4."""

LARGEST: Final = 2**24
"""Most tokens of a step that nobody asked for: Llama 3's 16M, table 4."""


def assumptions(rates: Any, options: Mapping[str, Any], machines: Sequence[Cluster]) -> list[str]:
    """What is said of failures, of storage that nothing was said of, and of spare trays."""
    said = [f"parts fail as in the table {rates!r}"] if isinstance(rates, str) else []
    if isinstance(rates, FailureLog):
        told = [rates.reading] * bool(rates.incidents)
        said = [*(note for note in rates.notes if note != rates.reading), *told]
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
        found, name, notes = read.model, read.name, list(read.notes)
        # what a model can read is not what it trains on
        if sequence is None and found.sequence > USUAL:
            allowed = f"the file allows {found.sequence:,}"
            found = replace(found, sequence=USUAL)
            notes = [note for note in notes if not note.startswith("sequences of")]
            notes.append(f"sequences of {USUAL:,} tokens are taken; {allowed}")
    else:
        require_instance((str, PathLike), model=model)
        raise ValueError(f"model must be a config.json, or {among(transformers(), str(model))}")
    if sequence is not None:
        found = replace(found, sequence=require_int(sequence=sequence, at_least=1))
    return name, found, notes


def usual_batch(model: Transformer, machines: Sequence[Cluster]) -> tuple[int, str]:
    """Sequences of 4e6 to 16.8e6 tokens that all nodes can share evenly, and what is said of them.

    One for each GPU, or twice and so on until there are 4e6 tokens. Where those are more than
    Llama 3's, as many as the nodes of a cluster times a divisor of their GPUs; of more nodes, a
    divisor of their number: replicas take several.
    """
    sizes = np.array([(one.nodes, one.gpus) for one in machines], dtype=object)  # of any length
    nodes, gpus = np.lcm.reduce(sizes)
    most = min(gpus, max(LARGEST // model.sequence, 1))
    even = (n for n in range(1, most + 1) if gpus % n == 0)
    batch = max(n for n in even if n % nodes == 0 or nodes % n == 0)
    while batch * model.sequence < 4e6:
        batch *= 2
    shared = "a multiple of the nodes" if batch % nodes == 0 else "a sequence takes several nodes"
    tokens = f"{batch * model.sequence / 1e6:.3g}e6 tokens (4e6 to 16.8e6)"
    return batch, f"{batch:,} sequences a step, {tokens}, {shared}"


def given_margin(only_measured: bool, like: str | None, memory_margin: float | None) -> float:
    """Share of the memory that stays free; what would do nothing with measured speeds is refused."""
    for name, value in {"like": like, "memory_margin": memory_margin}.items():
        if only_measured and value is not None:
            raise ValueError(f"{name} must be left out with only_measured, got {value!r:.80}")
    require_choice((None, "measured"), like=like)
    margin = MARGIN if memory_margin is None else memory_margin
    return float(require_number(memory_margin=margin, at_least=0, at_most=0.9))


def require_room(
    name: str, model: Transformer, cluster: Cluster, options: Mapping[str, Any]
) -> None:
    """Refuse a cluster that cannot hold one copy of the training state on all its GPUs together.

    Of weights that stay as they are, as with adapters, only they count.
    """
    kept, said = PRECISIONS["mixed"], options.get("software")
    if isinstance(said, str) and "+adapters" in said and described(said):
        kept = kept_by(software(said), model, options.get("precision") or "bf16")[0]
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
    if require_instance((str, PathLike, Topology), network=network) not in FABRICS:
        if not isinstance(network, Topology) and not Path(network).is_file():
            raise ValueError(
                f"network must be a file of a network, or {among(FABRICS, str(network))}"
            )
        return network_of_gpus(network if isinstance(network, Topology) else read(network), cluster)
    servers, gpus = cluster.nodes, cluster.gpus_per_node
    assert cluster.network_bandwidth is not None
    assert cluster.accelerator is not None
    card, nvlink = cluster.network_bandwidth / gpus, cluster.accelerator.node_link
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
