"""Joint choices in tables and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relparallel._checks import require_instance
from relparallel.optimize.joint_search import Choice, JointSearch, Site
from relparallel.optimize.joint_strategies import KEY
from relparallel.parallel import Strategy
from relparallel.units import MINUTE

if TYPE_CHECKING:
    import pandas as pd

    from relparallel.optimize.joint_plans import JointPlan

CHOSEN = ("policy", "checkpoint", "spares", *KEY, "copies", "cluster")


def in_degrees(strategy: Strategy) -> str:
    """Name a strategy by its degrees.

    Parameters
    ----------
    strategy : Strategy
        Any.

    Returns
    -------
    str
        Short enough for a table.

    Examples
    --------
    >>> in_degrees(Strategy(tensor=8, pipeline=16, data=128))
    'tp8 pp16 cp1 dp128'
    """
    s = require_instance(Strategy, strategy=strategy)
    return f"tp{s.tensor} pp{s.pipeline} cp{s.context} dp{s.data}"


def told(search: JointSearch, choice: Choice) -> dict[str, Any]:
    """One choice as a row."""
    site = search.sites[choice.site]
    fast = site.fastest
    return {
        "cluster": _name(search, site), **({"network": site.fabric} if site.fabric else {}),
        **{name: int(fast.grid.choices[name][choice.row]) for name in KEY},
        "copies": int(fast.copies[choice.row]), "spares": site.spares, "policy": choice.policy,
        "checkpoint": choice.checkpoint, "interval": choice.outlook.interval, "throughput": choice.throughput,
        "share": choice.outlook.share, "goodput": choice.throughput * choice.outlook.share,
        "tenth percentile": choice.throughput * choice.tenth, "score": choice.score,
    }  # fmt: skip


def _name(search: JointSearch, site: Site) -> str:
    """Of the cluster of a site, by its place among the clusters where it has none."""
    every = list(dict.fromkeys(id(one.cluster) for one in search.sites))
    same = [one for one in search.sites if one.cluster.name == site.cluster.name]
    if site.cluster.name and len({id(one.cluster) for one in same}) == 1:
        return site.cluster.name
    return f"{site.cluster.name or 'cluster'} {every.index(id(site.cluster))}"


def alternatives(search: JointSearch, winner: Choice) -> pd.DataFrame:
    """Best choice with another value of each axis, and what it loses."""
    import pandas as pd

    rows, best = [], told(search, winner)
    for axis in CHOSEN:
        rows += _row(search, axis, winner, _without(search, axis, best[axis]))
    for fabric in dict.fromkeys(site.fabric for site in search.sites):
        if fabric != best.get("network", ""):
            rows += _row(search, "network", winner, _on(search, fabric))
    return pd.DataFrame(rows)


def on_each_fabric(search: JointSearch) -> pd.DataFrame:
    """Best choice on every fabric."""
    import pandas as pd

    found = [_on(search, name) for name in dict.fromkeys(site.fabric for site in search.sites)]
    kept = [(one, search.sites[one.site]) for one in found if one is not None]
    goodput = [one.throughput * one.outlook.share for one, _ in kept]
    return pd.DataFrame(
        {
            "fabric": [site.fabric for _, site in kept],
            "best": [in_degrees(site.fastest.grid[one.row]) for one, site in kept],
            "policy": [one.policy for one, _ in kept],
            "throughput": [one.throughput for one, _ in kept],
            "unhindered": [one.outlook.unhindered for one, _ in kept],
            "goodput": goodput,
            "price of a token": [site.price / each for (_, site), each in zip(kept, goodput, strict=True)],
        }
    ).set_index("fabric")


def _row(search: JointSearch, axis: str, winner: Choice, found: Choice | None) -> list[dict[str, Any]]:
    """A choice with another value of an axis, if there is one."""
    if found is None:
        return []
    other = told(search, found)
    return [{"axis": axis, "value": other[axis], "loses": 1 - found.score / winner.score, **other}]


def _on(search: JointSearch, fabric: str) -> Choice | None:
    """Best choice on a network."""
    return search.best(lambda site, row: site.fabric == fabric)


def _without(search: JointSearch, axis: str, value: Any) -> Choice | None:
    """Best choice with any other value of an axis."""
    if axis == "policy":
        policies = tuple(name for name in search.recoveries if name != value)
        return search.best(policies=policies) if policies else None
    if axis == "checkpoint":
        checkpoints = tuple(name for name in search.checkpoints if name != value)
        return search.best(checkpoints=checkpoints) if checkpoints else None
    if axis == "copies":
        return search.best(lambda site, row: bool(site.fastest.copies[row] != value))
    if axis == "spares":
        return search.best(lambda site, row: bool(site.spares != value))
    if axis == "cluster":
        return search.best(lambda site, row: _name(search, site) != value)
    return search.best(lambda site, row: bool(site.fastest.grid.choices[axis][row] != value))


def sentences(plan: JointPlan) -> list[str]:
    """Why the best choice is the best."""
    search, best = plan.search, told(plan.search, plan.choice)
    seen, fast = plan.choice.outlook, plan.fastest
    reliable = {k: v for k, v in _factors(seen).items() if v < 1}
    lines = [
        f"Best {search.objective}: {_named(best)}.",
        f"{plan.throughput:,.0f} tokens/s without failures, {plan.goodput:,.0f} with them "
        f"({plan.share:.2%}; {plan.tenth:.2%} or more in nine runs of ten): "
        + ", ".join(f"{name} {value:.2%}" for name, value in reliable.items())
        + ".",
        f"Every strategy was asked: {'; '.join(f'{n:,} {fate}' for fate, n in plan.counts.items())}.",
        f"{len(search.evaluated):,} joint choices were evaluated; no other can reach the best: "
        f"their bounds are at or below it.",
    ]
    if fast.choice == plan.choice:
        lines.append("The fastest strategy is the best here: planning by throughput alone is right.")
    else:
        other = told(search, fast.choice)
        quicker = fast.throughput / plan.throughput - 1
        lines.append(
            f"The fastest strategy, {_changed(other, best)}, is {quicker:.2%} faster without failures and "
            f"keeps {fast.share:.2%} of that: it loses {plan.price_of_speed:.2%}."
        )
        lines.append(
            f"It loses most by what it is worst in: {_worst(_factors(fast.choice.outlook), _factors(seen))}."
        )
    lines.append("The best with another value, axis by axis:")
    for _, row in plan.alternatives().iterrows():
        lines.append(
            f"- {row['axis']} {row['value']}: loses {row['loses']:.3%}, {_changed(dict(row), best)}."
        )
    return lines


def _factors(seen: Any) -> dict[str, float]:
    """Factors of a share, in words."""
    return {
        "speed with nodes missing": seen.running, "speed with parts degraded": seen.unhindered,
        "not paused": seen.unpaused, "kept by checkpoints": seen.kept,
    }  # fmt: skip


def _worst(mine: dict[str, float], best: dict[str, float]) -> str:
    """Factor in which a choice is furthest behind."""
    name = min(mine, key=lambda factor: mine[factor] / best[factor] if best[factor] else 1.0)
    return f"{name} {mine[name]:.2%} against {best[name]:.2%}"


def _named(row: dict[str, Any]) -> str:
    """A choice in words."""
    degrees = ", ".join(f"{name} {row[name]}" for name in (*KEY, "copies"))
    wired = f" with {row['network']}" if "network" in row else ""
    return (
        f"{degrees} on {row['cluster']}{wired}, {row['spares']} spares, policy {row['policy']}, checkpoints "
        f"{row['checkpoint']} every {row['interval'] / MINUTE:.1f} min"
    )


def _changed(row: dict[str, Any], best: dict[str, Any]) -> str:
    """What differs from the best."""
    axes = (*CHOSEN, "network") if "network" in best else CHOSEN
    changed = [f"{name} {row[name]}" for name in axes if row[name] != best[name]]
    return "with " + ", ".join(changed) if changed else "of the same kind"
