"""Cluster files: nodes, links, price, failure log and own runs in one; an option wins over a field."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from math import inf
from os import PathLike, path as paths
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import yaml

from relparallel._checks import among, meant, require_instance, require_int
from relparallel.hardware import (
    Accelerator,
    Cluster,
    accelerator,
    cluster as named_cluster,
    clusters,
)
from relparallel.hardware.machines import nearest
from relparallel.planning.cluster_fields import (
    EACH,
    FIELDS,
    LOG,
    MACHINE,
    QUESTION,
    number,
    rates,
    whole,
    word,
)
from relparallel.published import shipped_rows
from relparallel.topology.formats._text import loaded, require_target, write
from relparallel.training import read_failure_log
from relparallel.training.log_files import dialect_of, read_rows
from relparallel.units import GB, GBIT

_DEVICE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": word,
    "peak": rates,
    "matmul": rates,
    "memory": number,
    "memory_bandwidth": number,
    "node_link": number,
    "multiprocessors": whole,
    "host_link": number,
}
OWN: Final = "own"
"""Takes the place of a cluster on the command line where options say all."""
_TWIN: Final = {"gpus": "nodes", "nodes": "gpus"}
_ARGUMENT: Final = {name: field.argument or name for name, field in QUESTION.items()} | (
    dict.fromkeys(LOG, "rates")
)
"""Of `plan`, by field."""
Planner = TypeVar("Planner", bound=Callable[..., Any])


class ClusterFile(NamedTuple):
    """Fields of one cluster, from a file or the command line; options have won over some."""

    fields: Mapping[str, Any]
    made: Cluster | None = None  # which has no fields
    path: Path | None = None
    number: int = 1  # in the file
    won: tuple[str, ...] = ()  # which options, over what

    def under(self, options: Mapping[str, Any]) -> "ClusterFile":
        """The same where options say so; GPUs take the place of nodes, and nodes that of GPUs."""
        if self.made:
            return self
        options = {name: value for name, value in options.items() if value is not None}
        if "gpus" in options:
            require_int(gpus=options["gpus"], at_least=1)
        kept, won = dict(self.fields), []
        for name, value in options.items():
            twin = _TWIN.get(name, "")
            if kept.get(name, value) != value:
                won.append(f"{name} {_plain(value)} for {_plain(kept[name])}")
            elif name not in kept and twin in kept:
                won.append(f"{name} {_plain(value)} for {twin} {kept[twin]}")
            if twin not in options:
                kept.pop(twin, None)
        return self._replace(fields=kept | options, won=(*self.won, *won))

    @property
    def cluster(self) -> Cluster:
        """The nodes and their links."""
        try:
            return self.made or _cluster_of(self.fields, self.path.stem if self.path else OWN)
        except (TypeError, ValueError) as error:
            if self.path is None:
                raise
            raise _broken(self.path, self.number, error) from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fields as a new YAML file, each with what it says; it is read back as they are."""
        target = require_new(path)
        fields = dict(self.fields)
        if "cluster" not in fields:
            fields["name"] = self.cluster.name
        lines = ["# Paths are relative to this file; options of the command line win over it."]
        for name in (name for name in FIELDS if name in fields):
            value = fields[name]
            if isinstance(value, Path):
                value = Path(paths.relpath(value, target.parent)).as_posix()
            text = yaml.safe_dump(value, default_flow_style=True, width=inf, allow_unicode=True)
            text = text.removesuffix("...\n").rstrip("\n")
            lines.append(f"{name}: {text}  # {FIELDS[name].about}")
        write(target, "\n".join([*lines, ""]))


def read_cluster(path: str | PathLike[str]) -> tuple[Cluster, ...]:
    r"""Read clusters from a cluster file, or several from a table.

    Parameters
    ----------
    path : str or path
        A CSV file with one cluster in each row, or a JSON or YAML file with one or a list of them.
        Fields: accelerator and gpus, or nodes; network_gbit, of a node in one direction [Gbit/s];
        and, where they differ from what stands here, gpus_per_node (8), nodes_per_switch,
        nodes_per_rack (1), gpus_per_tray (all of a node), nvlink_trays, spare_trays (none) and
        name, as in `hardware.Cluster`; or cluster, a name of `hardware.clusters`, which has what is
        not said. In JSON and YAML, accelerator may also be an own one: the fields of
        `hardware.Accelerator` in its units [FLOP/s, bytes, bytes/s]. It borrows the calibration of
        the family that its name begins with, as in "h100-mine", else that of the next in peak rate;
        steps on it say so. What a file says besides (price, failures, measured and others that
        ``relparallel plan --help`` lists, without the dashes) is for `plan`.

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
    return tuple(one.cluster for one in _read(Path(require_instance((str, PathLike), path=path))))


def require_new(path: str | PathLike[str], clusters: int = 1) -> Path:
    """Path of a cluster file that is to be written, of one cluster, over no other."""
    target = require_target(path=path, endings=(".yaml", ".yml"))
    if target.exists():
        raise ValueError(f"path must name a new file, got {target}, which is there already")
    if clusters != 1:
        raise ValueError(f"a cluster file is of one cluster, got {clusters} for {target}")
    return target


def clusters_of(cluster: Any, gpus: Any) -> tuple[Cluster, ...]:
    """Clusters by name, from files, or as they are."""
    found = tuple(one.cluster for one in cluster_files(cluster, {"gpus": gpus}))
    for one in found:
        if one.accelerator is None or one.network_bandwidth is None:
            raise ValueError(
                f"cluster must have an accelerator and a network_bandwidth, got {one!r:.200}"
            )
    return found


def cluster_files(cluster: Any, options: Mapping[str, Any]) -> list[ClusterFile]:
    """Clusters by name, from files or as they are; options win, of lists each its own."""
    several = cluster if isinstance(cluster, (list, tuple)) else [cluster]
    found = [file for one in several for file in _files_of(one)]
    if not found:
        raise ValueError(f"cluster must be at least one cluster, got {cluster!r}")
    if options.get("gpus") is not None and all(one.made for one in found):
        raise ValueError(
            f"gpus must be left out unless a cluster has a name or a file, got "
            f"{options['gpus']!r:.80}"
        )
    shares = [dict(options) for _ in found]
    for name in EACH:
        given = options.get(name)
        each = list(given) if isinstance(given, (list, tuple)) else [given]
        each *= len(found) if len(each) == 1 else 1
        if len(each) != len(found):
            raise ValueError(
                f"{name} must be one number for each of {len(found)} clusters, got {given!r:.80}"
            )
        for share, value in zip(shares, each, strict=True):
            share[name] = value
    return [one.under(share) for one, share in zip(found, shares, strict=True)]


def _files_of(one: Any) -> list[ClusterFile]:
    """The clusters of a file, or one by its name or as it is."""
    if isinstance(one, ClusterFile):
        return [one]
    if isinstance(require_instance((str, PathLike, Cluster), cluster=one), Cluster):
        return [ClusterFile({}, one)]
    if one not in clusters() and Path(one).suffix in (".csv", ".json", ".yaml", ".yml"):
        return _read(Path(one))
    return [ClusterFile({} if one == OWN else {"cluster": str(one)})]


def read_fields(row: Mapping[Any, Any], folder: Path | None = None) -> dict[str, Any]:
    """Values of fields, each as its kind; files are looked for in a folder."""
    found = _fields(row, {name: field.read for name, field in FIELDS.items()})
    beside = folder or Path()
    if "network" in found and (beside / found["network"]).is_file():
        found["network"] = Path(found["network"])
    return {
        name: beside / value if isinstance(value, Path) else value for name, value in found.items()
    }


def arguments_of(
    files: Sequence[ClusterFile], config: bool, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of `plan` that files say and a call does not; ``config``: its model is a config.json."""
    said = [one.fields for one in files]
    shared: dict[str, Any] = {}
    for name in (name for name, argument in _ARGUMENT.items() if argument not in given):
        values = [fields.get(name) for fields in said]
        if name == "price" and None not in values:
            shared[name] = values
        elif other := [value for value in values if value != values[0]]:
            raise ValueError(
                f"{name} must be the same for clusters that are compared, price apart, got "
                f"{_plain(values[0])} and {_plain(other[0])}; study takes each as it is"
            )
        elif values[0] is not None:
            shared[name] = values[0]
    found = {_ARGUMENT[name]: value for name, value in shared.items() if name in QUESTION}
    if "storage" in shared:
        found["storage_bandwidth"] *= GB
    log = {name: shared[name] for name in LOG if name in shared}
    if not log:
        return found
    if "failures" not in log:
        raise ValueError(f"{', '.join(log)} tell of a log: name it with failures")
    if "watched" not in log:
        raise ValueError("watched must say how many nodes the failure log covers, got none")
    path, nodes = log.pop("failures"), log.pop("watched")
    if "ignore" in found and "ignore" in dialect_of("failures", log.get("dialect"), path)[1].takes:
        log["ignore"] = found["ignore"]
    if not config:
        found.pop("ignore", None)
    return found | {"rates": read_failure_log(path, population=nodes, **log)}


def from_files(planner: Planner) -> Planner:
    """`plan` of clusters whose files may say the other arguments too; those of the call win."""
    usual = planner.__kwdefaults__ or {}
    names = {argument: name for name, argument in reversed(_ARGUMENT.items())}  # rates: failures

    @wraps(planner)
    def asked(model: Any, cluster: Any, *, gpus: Any = None, **given: Any) -> Any:
        given = {k: v for k, v in given.items() if v is not None or usual.get(k) is not None}
        files = cluster_files(cluster, {"gpus": gpus})
        config = isinstance(model, (str, PathLike)) and Path(model).suffix == ".json"
        said = arguments_of(files, config, given)
        found = planner(model, [one.cluster for one in files], **said, **given)
        notes = []
        for one in files:
            lost = [names[name] for name in given if names.get(name) in one.fields]
            won = [*one.won, *(f"{name} as given for {_plain(one.fields[name])}" for name in lost)]
            notes += [f"options win over {one.path}: {', '.join(won)}"] * bool(won)
        return replace(found, notes=(*notes, *found.notes))

    return cast(Planner, asked)


def _read(path: Path) -> list[ClusterFile]:
    """Clusters of a file by their fields."""
    try:
        csv = path.suffix == ".csv"
        rows: Any = read_rows(path, head=True).to_dict("records") if csv else loaded(path)
    except OSError as error:
        raise ValueError(f"path must name a CSV, JSON or YAML file, got {path} ({error})") from None
    rows = rows if isinstance(rows, list) else [rows]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"path must hold clusters by their fields, got {path}")
    found = []
    for place, row in enumerate(rows, 1):
        try:
            found.append(ClusterFile(read_fields(row, path.parent), None, path, place))
        except (TypeError, ValueError) as error:
            raise _broken(path, place, error) from None
    return found


def _broken(path: Path, number: int, error: Exception) -> ValueError:
    return ValueError(f"path must hold whole clusters, got {path}, cluster {number}: {error}")


def _fields(row: Mapping[Any, Any], known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Values of fields, each as its kind."""
    found = {}
    for key, value in row.items():
        if key not in known:
            raise ValueError(
                f"fields must be among {', '.join(known)}, got {key!r:.80}{meant(known, key)}"
            )
        if isinstance(value, str) and value == "":  # an empty cell
            continue
        try:
            found[key] = known[key](value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{key}: {error}") from None
    return found


def _device(value: Any) -> Accelerator:
    """An accelerator by name, or an own one by its fields."""
    if not isinstance(value, dict):
        return accelerator(value)
    found = {"name": "own accelerator"} | _fields(value, _DEVICE)
    if lacking := [name for name in _DEVICE if name not in found and name != "host_link"]:
        raise ValueError(f"{lacking[0]!r} is missing")
    return Accelerator(**found)


def _cluster_of(fields: Mapping[str, Any], name: str) -> Cluster:
    """The cluster of fields, those of a published one where it is named."""
    given = {key: fields[key] for key in MACHINE if key in fields}
    base, gpus, nodes, network = (
        given.pop(key, None) for key in ("cluster", "gpus", "nodes", "network_gbit")
    )
    size = nodes if gpus is None else gpus
    if base is None:
        start = Cluster(nodes=1, name=name)
        own = {"accelerator": given.get("accelerator"), "gpus": size, "network_gbit": network}
        for key in (key for key, value in own.items() if value is None):
            raise ValueError(f"{name}: {key!r} is missing")
    else:
        if base not in clusters():
            raise ValueError(
                f"cluster must be a CSV, JSON or YAML file, or {among(clusters(), base)}"
            )
        if size is None:
            raise ValueError(f"gpus must be given for the cluster {base}, got None")
        full = next(row for row in shipped_rows("clusters.csv") if row["cluster"] == base)
        start = named_cluster(base, given.get("gpus_per_node", gpus or int(full["gpus_per_node"])))
    node = given.setdefault("gpus_per_node", start.gpus_per_node)
    if base is not None and node != start.gpus_per_node and network is None:
        raise ValueError(
            f"network_gbit must say what a node of {node} GPUs has, for {base} has nodes of "
            f"{start.gpus_per_node}"
        )
    gpus = nodes * node if gpus is None else gpus
    if node < 1 or gpus % node:
        near = f": {nearest(gpus, node)}" if min(node, gpus) > 0 else ""
        raise ValueError(f"gpus must fill nodes of {node}, got {gpus}{near}")
    if nodes is not None and nodes * node != gpus:
        raise ValueError(f"nodes must be {gpus // node} of {node} GPUs for {gpus}, got {nodes}")
    given |= _fields(
        {key: given[key] for key in given if key == "accelerator"}, {"accelerator": _device}
    )
    if network is not None:
        given["network_bandwidth"] = network * GBIT
    return replace(start, nodes=gpus // node, **given)


def _plain(value: Any) -> Any:
    """A value as one reads it."""
    return f"{value:g}" if isinstance(value, float) else value
