"""Processes that end with their parent, however it ends, and a folder that goes with the last of them."""

import ctypes
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of Linux
_OWN_NAME, _OWN_USERS, _OWN_NETWORK = 0x4000000, 0x10000000, 0x40000000  # CLONE_NEW* of Linux
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS and IFF_UP of Linux


def fork(function: Callable[..., object], *arguments: Any) -> int:
    """Call a function in a child that is killed when this process ends; the child's number."""
    parent, child = os.getpid(), os.fork()
    if child:
        return child
    try:
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # the parent gets it too, and ends its children
        _die_with_parent()
        if os.getppid() == parent:  # else it ended before it was watched
            function(*arguments)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh interpreter: its children are quick to start, since it holds little."""
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_die_with_parent) as pool:
        return pool.submit(function, *arguments).result()


def isolate() -> bool:
    """Leave this process and its later children the loopback as their network, if they may."""
    import fcntl  # not on Windows

    unshare, own = ctypes.CDLL(None).unshare, _OWN_NAME | _OWN_NETWORK
    if unshare(own) and unshare(own | _OWN_USERS):
        return False
    socket.sethostname("localhost")
    with socket.socket() as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh", b"lo", _UP))
    return True


def kill(child: int) -> None:
    """End a child and wait for its end."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def answers(function: Callable[..., object], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a function with every set of arguments, side by side in processes of their own."""
    children, pipes = [], []
    try:
        for arguments in calls:
            ours, theirs = Pipe(duplex=False)
            children.append(fork(_answer, theirs, function, *arguments))
            theirs.close()
            pipes.append(ours)
        return [pipe.recv() for pipe in pipes]
    except EOFError:
        raise ChildProcessError("a process died; it said why above, if it could") from None
    finally:
        for child in children:
            kill(child)


def _answer(pipe: Connection, function: Callable[..., object], *arguments: Any) -> None:
    pipe.send(function(*arguments))


def require(backend: str) -> None:
    """Refuse to rehearse where it cannot be done cleanly."""
    if sys.platform != "linux":
        raise ValueError("a rehearsal needs Linux, where processes can end with their parent")
    if backend == "torchft" and not answers(isolate, [()])[0]:
        raise ValueError("torchft listens on all networks, and no process may have its own here")


@contextmanager
def stage(backend: str = "sockets") -> Iterator[Path]:
    """Give a folder that lasts as long as this process and its children; load PyTorch once for all.

    A janitor removes it: a process that reads a pipe which all of them hold and nobody writes to.
    """
    require(backend)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # that nodes die is no news
    if backend != "sockets":
        import_module("torch").set_num_threads(1)
    if backend == "torchft":
        import_module("torchft")  # not before PyTorch, which is to load lazily
    path = tempfile.mkdtemp(prefix="rehearsal-")
    watched, held = os.pipe()
    janitor = os.fork()
    if not janitor:
        os.setsid()  # out of reach of Ctrl-C
        os.close(held)
        os.read(watched, 1)
        shutil.rmtree(path, ignore_errors=True)
        os._exit(0)
    os.close(watched)
    try:
        yield Path(path)
    finally:
        os.close(held)
        os.waitpid(janitor, 0)
