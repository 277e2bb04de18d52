"""What can be asked about by name, as tables for a terminal: models, clusters and accelerators, software."""

from collections.abc import Callable, Mapping
from typing import Final

from relparallel._latex import text_table
from relparallel.hardware import accelerator, accelerators
from relparallel.parallel.calibration import calibration, software, softwares
from relparallel.published import shipped_rows
from relparallel.units import GB, TFLOP
from relparallel.workload import transformer, transformers


def _models() -> str:
    heads = ("model", "layers", "hidden", "heads", "parameters [1e9]", "active [1e9]", "sequence")
    rows = []
    for name in transformers():
        m = transformer(name)
        sizes = (f"{m.parameters / 1e9:.4g}", f"{m.active_parameters / 1e9:.4g}")
        rows.append((name, m.layers, m.hidden, m.heads, *sizes, m.sequence))
    return text_table(heads, rows)


def _clusters() -> str:
    fields = ("cluster", "accelerator", "gpus_per_node", "network_gbit")
    rows = [[row[name] for name in fields] for row in shipped_rows("clusters.csv")]
    chips = []
    for name in accelerators():
        chip = accelerator(name)
        peaks = ", ".join(f"{number} {rate / TFLOP:.4g}" for number, rate in chip.peak.items())
        chips.append((name, peaks, f"{chip.memory / GB:.4g}", f"{chip.node_link / GB:g}"))
    first = text_table(("cluster", "accelerator", "GPUs of a node", "network of a node [Gbit/s]"), rows)
    heads = ("accelerator", "peak [TFLOP/s]", "memory [GB]", "link inside a node [GB/s]")
    return f"{first}\n\n{text_table(heads, chips)}"


def _software() -> str:
    runs: dict[str, set[str]] = {name: set() for name in softwares()}
    for name in accelerators():
        known = calibration(name)
        for measured in () if known.borrowed else known.factors:
            runs[measured].add(known.family)
    rows = []
    for name in softwares():
        one = software(name)
        kind = "fused" if one.fused_attention else "flash" if one.flash_attention else "stores scores"
        rows.append((name, one.year, kind, one.gradient_bytes, ", ".join(sorted(runs[name])) or "none"))
    heads = ("software", "year", "attention", "gradients sent [bytes]", "measured on")
    return text_table(heads, rows)


LISTS: Final[Mapping[str, Callable[[], str]]] = {
    "models": _models, "clusters": _clusters, "software": _software,
}  # fmt: skip
"""By the command that prints them."""
