"""What has changed since the last plan from a cluster file: rate of failures, drift, best strategy."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relparallel.parallel import notation
from relparallel.planning.plans import Plan
from relparallel.topology.formats._text import loaded, write
from relparallel.units import DAY


def since_last(found: Plan, path: Path, model: str, options: Mapping[str, Any]) -> str:
    """Say what has changed since the same question was last asked of a file; keep what it is now.

    Kept beside the file, in words, by model and options. A record that cannot be read is told and
    written anew.
    """
    beside = path.with_name(f"{path.stem}.last.json")
    asked = " ".join([model, *(f"{name}={options[name]}" for name in sorted(options))])
    said = f"first plan of {asked} from {path}"
    try:
        kept = loaded(beside) if beside.exists() else {}
        for record in kept.values() if isinstance(kept, dict) else [kept]:
            if not isinstance(record, dict) or {*map(type, record.values())} - {str}:
                raise ValueError(f"expected texts by question and name, got {record!r:.60}")
    except (OSError, ValueError) as error:
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


def _state(found: Plan) -> dict[str, str]:
    """What is compared, in words."""
    best = found.best
    said = {"GPUs and batch": f"{best.cluster.gpus:,} and {found.global_batch:,}"}
    if found.log is not None:
        log, rate = found.log.log, found.log.log.rate_interval()
        value, low, high = (1000 * DAY * x for x in (rate.value, rate.lower, rate.upper))
        many = f"{log.incidents} failures in {log.span / DAY:.4g} days"
        said["failures per 1000 node-days"] = f"{value:.4g} ({low:.2g} to {high:.2g}), {many}"
    if (learned := found.question.get("learned")) is not None:
        for (family, software), runs, factor, low, high in learned.factors().itertuples():
            name = f"measured over predicted time, {software} on {family}"
            said[name] = f"{factor:.3f} ({low:.3f} to {high:.3f}), {runs} runs"
    speed = found.to_frame()[["1e9 tokens a day", "tokens from", "tokens to"]].iloc[0]
    said["best"] = f"{notation(best.strategy)}, {best.policy}, {best.spares} spare nodes"
    said["1e9 tokens a day"] = "{:.4g} ({:.4g} to {:.4g})".format(*speed)
    return said
