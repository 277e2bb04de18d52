"""What a kernel reads. Run there as text before the first cell: no package module is loaded."""

import os
import sys
from typing import Any

_READING = ("open", "os.listdir", "os.scandir")


def note(shell: Any, path: str) -> None:
    """Write to ``path`` after each cell what was read: files, modules, folders ending in ``/``."""
    import matplotlib.font_manager  # noqa: F401  (builds its list once, where its notice lands in no notebook)

    found = set[str]()

    def listen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _READING and isinstance(arguments[0], str | os.PathLike):
            reader = sys._getframe(1).f_code.co_filename
            if not reader.startswith("<frozen importlib"):  # modules are noted as such
                found.add(os.path.realpath(arguments[0]) + ("" if event == "open" else "/"))

    def write(_: object) -> None:
        tops = ("relparallel", "chapters", "evidence")
        ours = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] in tops]
        modules = {os.path.realpath(module.__file__) for module in ours if module.__file__}
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(found | modules)))

    sys.addaudithook(listen)
    shell.events.register("post_run_cell", write)
