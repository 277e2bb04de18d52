"""What has changed since the last plan from a cluster file: rate of failures, drift, best strategy."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relparallel.parallel import notation
from relparallel.planning.plans import Plan
from relparallel.topology.formats._text import once, write
from relparallel.units import DAY


def since_last(found: Plan, path: Path, model: str, options: Mapping[str, Any]) -> str:
    """Say what has changed since the same question was last asked of a file; keep what it is now.

    Kept beside the file, in words, by model and options. A record that cannot be read is told and
    written anew.
    """
    beside = path.with_name(f"{path.stem}.last.json")
    asked = " ".join([model, *(f"{name}={options[name]}" for name in sorted(options))])
    try:
        kept = _kept(beside)
        said = f"first plan of {asked} from {path}"
    except ValueError as error:
        kept, said = {}, f"{beside} cannot be read and is written anew ({error})"
    now = _state(found)
    if asked in kept:
        before = kept[asked]
        lines = [f"since the last plan from {path}, {before.pop('date', 'of an unknown date')}:"]
        for name in dict.fromkeys([*now, *before]):
            new, old = now.get(name, "none"), before.get(name, "none")
            lines.append(f"  {name}: {new}" + (", as then" if new == old else f"; then {old}"))
        said = "\n".join(lines)
    kept[asked] = {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", **now}
    try:
        write(beside, json.dumps(kept, indent=1))
    except (OSError, ValueError) as error:
        return f"{said}\nnot kept for the next: {error}"
    return f"{said}\nkept for the next in {beside}"


def _kept(path: Path) -> dict[str, dict[str, str]]:
    """Records by question."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"), object_pairs_hook=once)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    for record in found.values() if isinstance(found, dict) else [found]:
        if not isinstance(record, dict) or not all(isinstance(x, str) for x in record.values()):
            raise ValueError(f"expected texts by question and name, got {record!r:.60}")
    return dict(found)


def _state(found: Plan) -> dict[str, str]:
    """What is compared, in words."""
    said, best = {}, found.best
    if found.log is not None:
        log, rate = found.log.log, found.log.log.rate_interval()
        value, low, high = (1000 * DAY * x for x in (rate.value, rate.lower, rate.upper))
        many = f"{log.incidents} failures in {log.span / DAY:.4g} days"
        said["failures per 1000 node-days"] = f"{value:.4g} ({low:.2g} to {high:.2g}), {many}"
    learned = found.question.get("learned")
    if learned is not None:
        for (family, software), runs, factor, low, high in learned.factors().itertuples():
            name = f"measured over predicted time, {software} on {family}"
            said[name] = f"{factor:.3f} ({low:.3f} to {high:.3f}), {runs} runs"
    row = found.to_frame().iloc[0]
    said["best"] = f"{notation(best.strategy)}, {best.policy}, {best.spares} spare nodes"
    tokens = (f"{row[name]:.4g}" for name in ("1e9 tokens a day", "tokens from", "tokens to"))
    said["1e9 tokens a day"] = "{} ({} to {})".format(*tokens)
    return said
