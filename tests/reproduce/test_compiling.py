"""Kernels are compiled ahead, and dropped when what they call has changed."""

import io
import subprocess
import sys

import pytest

from reproduce import compiling


@pytest.mark.slow
def test_every_example_runs():
    names = [name for name, _ in compiling.examples()]
    assert len(set(names)) == len(names)
    for _, call in compiling.examples():
        call()


def test_each_item_says_what_was_compiled(monkeypatch):
    import numba

    def kernel(x):
        return x + 1

    kernel.__module__ = "relparallel.kernel"
    compiled = numba.njit(kernel)
    monkeypatch.setattr(compiling, "examples", lambda: iter([("a", lambda: compiled(1))] * 2))
    stream = io.StringIO()
    compiling.warm(stream)
    first, second = stream.getvalue().splitlines()
    assert first.startswith("[1/2] a ... 1 kernels compiled (")
    assert second == "[2/2] a ... ready"


def test_an_interrupted_item_is_begun_again(monkeypatch):
    calls = []

    def interrupted():
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(compiling, "examples", lambda: iter([("a", interrupted)]))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            compiling.warm(io.StringIO())
    assert len(calls) == 2


def test_a_kept_kernel_is_dropped_when_what_it_calls_has_changed(tmp_path):
    """numba compares it with its own file alone, and would go on with the old callee."""
    package = tmp_path / "kernels"
    package.mkdir()
    inner, head = package / "inner.py", "import numba\n"
    inner.write_text(head + "@numba.njit(cache=True)\ndef g(x):\n    return x + 1\n")
    outer = "from .inner import g\n@numba.njit(cache=True)\ndef f(x):\n    return g(x)\n"
    (package / "outer.py").write_text(head + outer)
    (package / "other.py").write_text(head + "@numba.njit(cache=True)\ndef h(x):\n    return x\n")

    def answer() -> str:
        code = "from kernels.outer import f; from kernels.other import h; print(f(h(1)))"
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert answer() == "2\n"
    assert compiling.drop_outdated((package,)) == []
    inner.write_text(inner.read_text().replace("+ 1", "+ 10"))
    assert {path.name.partition(".")[0] for path in compiling.drop_outdated((package,))} == {
        "inner",
        "outer",
    }
    assert answer() == "11\n"
