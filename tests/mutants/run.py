"""Wrong changes of the package on purpose: each must be noticed by a test of ``make test``.

``python tests/mutants/run.py [WORD ...]`` applies every mutant of the tables beside this file, or
those whose file has one of the words in its name, in a copy of the checkout, one after the other,
and runs the tests that the mutant names. It fails when one survives.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from reproduce.compiling import drop_outdated

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 2
LEFT_OUT = shutil.ignore_patterns(".*", "figures", "node_modules")


@dataclass(frozen=True)
class Mutant:
    """A wrong change: ``old`` stands once in the file; the tests notice ``new`` in its place."""

    file: str
    old: str
    new: str
    kind: str
    tests: list[str]


def mutants(words: list[str] | None = None) -> list[Mutant]:
    """All mutants, or those of some files."""
    tables = [
        tomllib.loads(path.read_text("utf-8"))
        for path in sorted(Path(__file__).parent.glob("*.toml"))
    ]
    every = [Mutant(**entry) for table in tables for entry in table["mutant"]]
    return [one for one in every if not words or any(word in one.file for word in words)]


def judged(one: Mutant, copy: Path) -> str:
    """Apply a mutant, run its tests, take it back; say what came of it."""
    path = copy / one.file
    sound = path.read_text("utf-8")
    try:
        path.write_text(sound.replace(one.old, one.new), "utf-8")
        drop_outdated((copy / "relparallel", copy / "notebooks" / "chapters"))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--exitfirst",
            "--tb=no",
            "-m",
            "not slow",
            *one.tests,
        ]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=600)
    finally:
        path.write_text(sound, "utf-8")
        drop_outdated((copy / "relparallel", copy / "notebooks" / "chapters"))
    return {0: "SURVIVED", 1: "killed"}.get(
        done.returncode, f"NOT RUN: {done.stdout[-500:]}{done.stderr[-500:]}"
    )


def main(words: list[str]) -> int:
    """Judge the mutants in copies, one for each worker; return 1 when one was not killed."""
    chosen, copies, ended = mutants(words), SimpleQueue[Path](), 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as threads:
        for worker in range(WORKERS):
            copies.put(shutil.copytree(ROOT, Path(folder) / str(worker), ignore=LEFT_OUT))

        def settle(one: Mutant) -> str:
            copy = copies.get()
            try:
                return judged(one, copy)
            finally:
                copies.put(copy)

        for one, came in zip(chosen, threads.map(settle, chosen), strict=True):
            ended += came == "killed"
            print(f"[{ended}/{len(chosen)}] {came}: {one.file}: {one.old} -> {one.new}", flush=True)  # noqa: T201
    return int(ended < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
