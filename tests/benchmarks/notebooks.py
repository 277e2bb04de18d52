"""Seconds per notebook, two at a time: what `make figures` says at start before it has run here.

Run it by ``make bench``, or ``python tests/benchmarks/notebooks.py --last`` after a quiet ``make
figures`` of a fresh clone; it writes ``data/benchmarks/notebooks.csv``.
"""

import runpy
import sys
from pathlib import Path

from reproduce import run_figures
from reproduce.record import Project

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "data" / "benchmarks" / "notebooks.csv"
WRITE = runpy.run_path(str(Path(__file__).with_name("run.py")))["write"]


def measured() -> list[dict[str, object]]:
    """Seconds of the last run of every notebook that has run on this machine."""
    names = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    seconds = {name: Project(root=ROOT).expected(name) for name in names}
    return [
        {"notebook": name, "seconds": known} for name, known in seconds.items() if known is not None
    ]


if __name__ == "__main__":
    if "--last" not in sys.argv:
        run_figures(root=ROOT, force=True, jobs=2)
    WRITE(measured(), OUTPUT)
