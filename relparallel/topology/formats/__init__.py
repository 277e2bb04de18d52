"""Files of other tools: GraphML and SimAI in and out, ns-3 (ASTRA-sim), htsim and BookSim out.

Each module states the grammar of its formats. Every file is written beside its place and moved there when it
is complete; every refusal of a file names the file and the line, what is wrong and what to do.
"""

from relparallel.topology.formats.graphml import read_graphml, write_graphml
from relparallel.topology.formats.simai import lint_simai, read_simai, write_simai
from relparallel.topology.formats.simulators import write_booksim, write_htsim, write_ns3

__all__ = [
    "lint_simai",
    "read_graphml",
    "read_simai",
    "write_booksim",
    "write_graphml",
    "write_htsim",
    "write_ns3",
    "write_simai",
]
