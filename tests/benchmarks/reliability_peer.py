"""One probability by graphillion, in a process that loads nothing else.

Reads edges, terminals, traversal, the links' probability and the seconds to repeat for, as JSON from the
standard input; prints the median seconds of the processor, the answer, and the peak memory at the start and
after the first call, in MB, as JSON.
"""

import json
import re
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Repeat the evaluation and print what it took."""
    sets, given = import_module("graphillion").GraphSet, json.load(sys.stdin)
    edges = [tuple(edge) for edge in given["edges"]]
    base, times = peak_mb(), []
    while sum(times) < given["span"]:
        start = time.process_time()
        sets.set_universe(edges, traversal=given["traversal"])
        answer = sets.reliability(dict.fromkeys(edges, given["up"]), given["terminals"])
        times.append(time.process_time() - start)
        if len(times) == 1:
            peak = peak_mb()
    found = {"seconds": statistics.median(times), "answer": float(answer), "peak_mb": peak, "base_mb": base}
    print(json.dumps(found))  # noqa: T201


def peak_mb() -> float:
    """Largest memory of this process so far, MB; getrusage also counts the parent's before the fork."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


if __name__ == "__main__":
    main()
