"""Files of other tools: graphs, scheduler and simulator networks; formats are added in `FORMATS`.

Each module states the grammar of its formats. Every file is written beside its place and moved
there when it is complete; every refusal of a file names the file and the line, what is wrong and
what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from relparallel._checks import require_choice
from relparallel.topology.fabric import Topology
from relparallel.topology.formats import _text
from relparallel.topology.formats.discovered import (
    read_containerlab,
    read_ibnetdiscover,
    read_nvidia_smi,
)
from relparallel.topology.formats.graphml import read_graphml, write_graphml
from relparallel.topology.formats.graphs import read_gml, read_json, read_sndlib
from relparallel.topology.formats.schedulers import (
    UNMEASURED as UNMEASURED,
    read_slurm,
    read_topograph,
)
from relparallel.topology.formats.simai import read_ns3, read_simai, write_simai
from relparallel.topology.formats.simulators import write_booksim, write_htsim, write_ns3

if TYPE_CHECKING:
    import networkx as nx


class Format(NamedTuple):
    """How files are read, written and, by a pattern searched in them, recognised."""

    read: Callable[..., Topology] | None = None
    sign: str = "(?!)"
    words: tuple[str, ...] = ()
    """What such a file has, for one that nothing recognises."""
    write: Callable[..., None] | None = None


_LAB: Final = r"(?s:^topology: *(#[^\n]*)?$.*?^\s+nodes: *($|\{|#))|\btopology\"?: *\{"
FORMATS: Final[Mapping[str, Format]] = {  # recognised in this order
    "sndlib": Format(read_sndlib, r"\A\s*<[^\0]*sndlib", ("sndlib", "<node", "<link")),
    "graphml": Format(read_graphml, r"\A\s*<", ("<graphml", "<node", "<edge"), write_graphml),
    "ibnetdiscover": Format(
        read_ibnetdiscover,
        r'(?m:^\s*(Switch|Ca|Rt)\s+\d+\s+"[SHR]-)',
        ("Switch", '"S-', '"H-', "guid="),
    ),
    "nvidia-smi": Format(
        read_nvidia_smi,
        r"(?m:^\s*(\x1b?\[[\d;]*m)?GPU\d+\b[^\n]*\n\s*GPU\d+\s+\w+)",
        ("GPU0", "NV", "SYS", "Affinity"),
    ),
    "containerlab": Format(
        read_containerlab, f"(?m:{_LAB})", ("topology:", "nodes:", "links:", "endpoints:")
    ),
    "json": Format(
        read_json,
        r"\A\s*\{(?=[^\0]*\"nodes\")[^\0]*\"(links|edges)\"",
        ('"nodes"', '"links"', '"source"'),
    ),
    "topograph": Format(
        read_topograph,
        r"\A\s*[\[{]|(?m:^kind: *(Node|List)\b)",
        ("kind: Node", "metadata:", "labels:", "topology."),
    ),
    "slurm": Format(
        read_slurm,
        r"(?im:^\s*(switchname|block(name|sizes))\s*=)|(?m:^-? *(topology|tree|block):)",
        ("SwitchName=", "Nodes=", "Switches="),
    ),
    "gml": Format(read_gml, r"(?m:^\s*graph\s*\[)", ("graph [", "node [", "edge [")),
    "ns3": Format(read_ns3, r"\A\s*(\d+[ \t]+){2}\d+\s*\n", ("Gbps", "ms 0"), write_ns3),
    "simai": Format(read_simai, r"\A\s*(\d+[ \t]+){5}\S", write=write_simai),
    "htsim": Format(write=write_htsim),
    "booksim": Format(write=write_booksim),
}
READERS: Final = {name: form.read for name, form in FORMATS.items() if form.read}
WRITERS: Final = {name: form.write for name, form in FORMATS.items() if form.write}


def read(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Topology:
    """Topology of a file.

    Parameters
    ----------
    path : str or path-like
        The file.
    format : str, optional
        "graphml", "gml", "json" (node-link, of networkx), "sndlib" (XML), "slurm"
        (``topology.conf`` or ``topology.yaml``), "topograph" (labels of Kubernetes nodes, also
        those of AWS, Google and Oracle), "ibnetdiscover", "nvidia-smi" (``topo -m``: the inside of
        a node), "containerlab", "ns3" (ASTRA-sim, HPCC) or "simai". Told by what stands in the file
        where omitted.
    **options
        Of graphs and simulators: ``strict=False`` also reads a network in several parts, a graph
        with cables from a node to itself (they are left out), or a file with faults that its
        simulator passes over. SimAI: ``gpus_forward=True`` where GPUs pass traffic on between
        NVLink and network. nvidia-smi: ``accelerator``, by name, or ``link_bandwidth`` of an NVLink
        in one direction [bytes/s]. ibnetdiscover: ``devices``, a regular expression of those that are
        of the network, such as "mlx5_[0-3]". containerlab: ``hosts``, one of their names.

    Returns
    -------
    Topology
        From GraphML with every attribute, equal to what was written; labels are the ids of a file
        of another tool. Directed graphs of another tool: arcs in opposite directions are one cable,
        arcs in the same direction parallel ones. From SimAI GPUs, NVSwitches and switches under the
        ids of the file; ``pod`` of a GPU is its server, ``tier`` of a switch its distance from the
        GPUs. From schedulers the nodes are hosts, and switches that no other joins stay apart.
        ``graph_attributes["notes"]`` says what was left out or assumed.

    References
    ----------
    SimAI, ``astra-sim-alibabacloud/inputs/topo/gen_Topo_Template.py`` and ``docs/Tutorial.md``.

    Examples
    --------
    >>> import tempfile
    >>> from relparallel.topology import fat_tree
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(fat_tree(k=4), f"{folder}/tree")
    ...     read(f"{folder}/tree") == fat_tree(k=4)
    True
    """
    if format is None:
        text = _text.decoded(_text.require_path(path=path))
        format = next((name for name, form in FORMATS.items() if re.search(form.sign, text)), None)
        if format is None:
            raise ValueError(
                f"path must be a file of a network: {', '.join(READERS)}, got {path}{_nearest(text)}"
            )
    return READERS[require_choice(tuple(READERS), format=format)](path, **options)


def _nearest(text: str) -> str:
    """The format that most words of are there, and what it lacks."""
    shares = {
        name: sum(word in text for word in form.words) / len(form.words)
        for name, form in FORMATS.items()
        if form.words
    }
    name = max(shares, key=lambda one: shares[one])
    lacking = " and ".join(word for word in FORMATS[name].words if word not in text)
    lacks = f"it lacks {lacking}" if lacking else "its head is missing"
    return f"; nearest is {name}: {lacks}" if shares[name] else ""


def write(
    topology: Topology | nx.Graph[Any],
    path: str | os.PathLike[str],
    format: str = "graphml",
    **options: Any,
) -> None:
    """Write a topology as a file of another tool.

    Parameters
    ----------
    topology : Topology or networkx.Graph
        The network. GraphML keeps every attribute. In the other formats hosts come first; they say
        nothing of kinds and rails. htsim: two or three tiers that it wires in the same way, cables
        of whole nanoseconds and Gbit/s, alike in each tier. BookSim: connected, one capacity, no
        parallel cables.
    path : str or path-like
        File to write; it is replaced only when the new one is complete.
    format : {"graphml", "simai", "ns3", "htsim", "booksim"}, optional
        ns-3 is the file of ASTRA-sim and HPCC, htsim a ``.topo`` file, BookSim a ``network_file``
        of anynet.
    **options
        SimAI: ``gpus_per_server`` (8), a divisor of the hosts, and ``gpu_type`` ("H100"), one word.
        htsim: ``switch_latency`` (0) [s]. BookSim: ``cycle`` (1e-9) [s], to which latencies are
        rounded.

    References
    ----------
    ASTRA-sim network back-end ns-3, reader of ``TOPOLOGY_FILE`` in ``scratch/common.h``; Broadcom
    csg-htsim, ``sim/datacenter/fat_tree_topology.cpp``; BookSim 2, ``src/networks/anynet.cpp``
    (Jiang et al., ISPASS 2013).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from relparallel.topology import leaf_spine
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(leaf_spine(leaves=1, spines=1, hosts_per_leaf=1), f"{folder}/topo", "ns3")
    ...     print(Path(f"{folder}/topo").read_text())
    3 2 2
    1 2
    0 1 400Gbps 0ms 0
    1 2 400Gbps 0ms 0
    """
    WRITERS[require_choice(tuple(WRITERS), format=format)](topology, path, **options)
