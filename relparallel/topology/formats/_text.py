"""Text files: written whole or not at all, read with line numbers, quantities with units."""

import json
import os
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from string import ascii_letters
from typing import Any, Final

import yaml

from relparallel._checks import require_instance

# powers of ten
_RATES: Final[Mapping[str, int]] = {"bps": 0, "kbps": 3, "mbps": 6, "gbps": 9, "tbps": 12}
_DELAYS: Final[Mapping[str, int]] = {"s": 0, "ms": -3, "us": -6, "ns": -9, "ps": -12}


def require_path(*, path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, which must not be empty or a folder."""
    given = Path(require_instance((str, os.PathLike), path=path))
    if not str(path) or given.is_dir():
        raise ValueError(f"path must name a file, got {str(path)!r}")
    return given


def require_target(*, path: str | os.PathLike[str], endings: tuple[str, ...] = ()) -> Path:
    """Return the path of a writable file: with one of the endings, in a folder that exists."""
    target = require_path(path=path)
    if endings and target.suffix not in endings:
        raise ValueError(
            f"path must end in {', '.join(endings[:-1])} or {endings[-1]}, got {target}"
        )
    if not target.parent.is_dir():
        raise ValueError(f"path must lie in a folder that exists, got {target}")
    return target


def write(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write beside the file and move into place, so nobody sees half of it; links stay links."""
    target = require_target(path=path).resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(text.encode() if isinstance(text, str) else text)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def malformed(path: Path, line: int, wrong: str, remedy: str) -> ValueError:
    """Error that says where a file is wrong, how, and what to do."""
    return ValueError(f"{path}, line {line}: {wrong}; {remedy}")


def decoded(path: Path) -> str:
    """Text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        start = path.read_bytes()[: error.start].count(b"\n") + 1
        raise malformed(path, start, "this is no text in UTF-8", "name a text file") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Words of every line that is not blank, with its number from 1."""
    for number, line in enumerate(decoded(path).splitlines(), start=1):
        if line.strip():
            yield number, line.split()


class _Once(yaml.SafeLoader):  # type: ignore[misc]
    """YAML, of which JSON is a part; a key that stands twice is refused."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        once([(str(key.value), None) for key, _ in node.value])
        return node


def loaded(path: Path) -> Any:
    """Data of a YAML or JSON file, in which no key stands twice; several documents are a list."""
    return data_of(decoded(path), str(path))


def data_of(text: str, name: str) -> Any:
    """The same of a text; errors begin with a name."""
    try:
        if text.lstrip()[:1] in ("{", "["):
            return json.loads(text, object_pairs_hook=once, parse_constant=_refused)
        parts = [part for part in yaml.load_all(text, Loader=_Once) if part is not None]
        return parts if len(parts) > 1 else next(iter(parts), None)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(
            f"{name}: no JSON or YAML that can be read ({error}); correct it"
        ) from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of JSON or YAML whose keys stand there once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands twice")
        found[name] = value
    return found


def _refused(word: str) -> None:
    """NaN and infinities are no JSON."""
    raise ValueError(f"{word} is no number of JSON")


def rate(capacity: float) -> str:
    """Bytes/s as text, every digit kept: ``400Gbps``."""
    return f"{(Decimal(repr(capacity)) * 8).scaleb(-9).normalize():f}Gbps"


def delay(latency: float) -> str:
    """Seconds as text, every digit kept: ``0.0005ms``."""
    return f"{Decimal(repr(latency)).scaleb(3).normalize():f}ms"


def read_rate(text: str) -> float:
    """Bytes/s of a text such as ``400Gbps``, or ``50GBps`` as ns-3 takes it; above 0."""
    if text.endswith("BPS"):
        raise ValueError(f"expected bps for bits or Bps for bytes, got {text}")
    value = _quantity(text, _RATES, "a rate such as 400Gbps") / (1 if text.endswith("Bps") else 8)
    if value <= 0:
        raise ValueError(f"the rate must be above 0, got {text}")
    return float(value)


def read_delay(text: str) -> float:
    """Seconds of a text such as ``0.0005ms``; at least 0."""
    value = _quantity(text, _DELAYS, "a delay such as 0.0005ms")
    if value < 0:
        raise ValueError(f"the delay must be at least 0, got {text}")
    return float(value)


def _quantity(text: str, units: Mapping[str, int], allowed: str) -> Any:
    number = text.rstrip(ascii_letters)
    try:
        return Decimal(number).scaleb(units[text.removeprefix(number).lower()])
    except (InvalidOperation, KeyError):
        raise ValueError(f"expected {allowed}, got {text}") from None
