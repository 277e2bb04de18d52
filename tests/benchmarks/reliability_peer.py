"""One probability by graphillion, in a process that loads nothing else.

Reads edges, terminals, traversal, the links' probability and the seconds to repeat for, as JSON
from the standard input; prints the median seconds of the processor and of the clock, the answer,
and the memory as in `reliability.py`, as JSON.
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
    base, times = memory_mb("VmHWM"), []
    while sum(wall for _, wall in times) < given["span"]:
        start = time.process_time(), time.perf_counter()
        sets.set_universe(edges, traversal=given["traversal"])
        answer = sets.reliability(dict.fromkeys(edges, given["up"]), given["terminals"])
        times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        if len(times) == 1:
            peak, libraries = memory_mb("VmHWM"), memory_mb("RssFile")
    seconds, wall = map(statistics.median, zip(*times, strict=True))
    found = {
        "answer": float(answer),
        "peak_mb": peak,
        "base_mb": base,
        "private_mb": peak - libraries,
    }
    print(json.dumps(found | {"seconds": seconds, "wall": wall}))  # noqa: T201


def memory_mb(field: str) -> float:
    """Memory of this process so far, MB; getrusage also counts the parent's before the fork."""
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


if __name__ == "__main__":
    main()
