"""Reports of joint choices: tables, and sentences that say why the best one is the best."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.optimize.joint_sites import Site
from relparallel.optimize.joint_strategies import DEGREES
from relparallel.parallel import notation
from relparallel.training.factors import FACTORS
from relparallel.units import DAY, MINUTE

AXES = ("policy", "checkpoint", "spares", *DEGREES, "copies", "cluster", "network")


def as_row(search: JointSearch, choice: Choice) -> dict[str, Any]:
    """One choice as a row of a table."""
    site = search.sites[choice.site]
    fast, state = site.fastest, choice.state
    return {
        "cluster": _name(search, site),
        **({"network": site.fabric} if site.fabric else {}),
        **{name: int(fast.grid.choices[name][choice.row]) for name in DEGREES},
        "copies": int(fast.copies[choice.row]),
        "spares": site.spares,
        "policy": choice.policy,
        "checkpoint": choice.checkpoint,
        "interval": state.interval,
        "throughput": choice.throughput,
        **_step(search, choice),
        "share": state.share,
        "goodput": choice.throughput * state.share,
        "tenth percentile": choice.throughput * choice.tenth,
        "score": choice.score,
    }


def _step(search: JointSearch, choice: Choice) -> dict[str, float]:
    """What is known of a computed throughput: 90 % interval [tokens/s], and use of the peak."""
    step = search.step(choice)
    if step is None:
        return {}
    slow, fast = step.interval(0.9)[::-1]
    return {
        "from": search.question.tokens / slow,
        "to": search.question.tokens / fast,
        "MFU": step.mfu,
    }


def _name(search: JointSearch, site: Site) -> str:
    """Of the cluster of a site, by its place among the clusters where it has none."""
    every = list(dict.fromkeys(id(one.cluster) for one in search.sites))
    same = {id(one.cluster) for one in search.sites if one.cluster.name == site.cluster.name}
    if site.cluster.name and len(same) == 1:
        return site.cluster.name
    return f"{site.cluster.name or 'cluster'} {every.index(id(site.cluster))}"


def alternatives(search: JointSearch, best: Choice) -> pd.DataFrame:
    """Best choice with another value of each axis, and what it loses."""
    chosen, found = as_row(search, best), []
    for axis in AXES[:-1]:
        found.append((axis, _without(search, axis, chosen[axis])))
    for fabric in dict.fromkeys(site.fabric for site in search.sites):
        if fabric != chosen.get("network", ""):
            found.append(("network", _on(search, fabric)))
    rows = [(axis, as_row(search, one), one.score) for axis, one in found if one is not None]
    return pd.DataFrame(
        [
            {"axis": axis, "value": row[axis], "loses": 1 - score / best.score, **row}
            for axis, row, score in rows
        ]
    )


def _on(search: JointSearch, fabric: str) -> Choice | None:
    """Best choice on a network."""
    return search.best(lambda site, row: site.fabric == fabric)


def _without(search: JointSearch, axis: str, value: Any) -> Choice | None:
    """Best choice with any other value of an axis."""
    if axis == "policy":
        others = tuple(name for name in search.recoveries if name != value)
        return search.best(policies=others) if others else None
    if axis == "checkpoint":
        others = tuple(name for name in search.checkpoints if name != value)
        return search.best(checkpoints=others) if others else None
    values: dict[str, Callable[[Site, int], Any]] = {
        "copies": lambda site, row: site.fastest.copies[row],
        "spares": lambda site, row: site.spares,
        "cluster": lambda site, row: _name(search, site),
    }

    def on_axis(site: Site, row: int) -> Any:
        return site.fastest.grid.choices[axis][row]

    of = values.get(axis, on_axis)
    return search.best(lambda site, row: bool(of(site, row) != value))


def on_each_fabric(search: JointSearch) -> pd.DataFrame:
    """Best choice on every fabric."""
    rows = []
    for fabric in dict.fromkeys(site.fabric for site in search.sites):
        one = _on(search, fabric)
        if one is not None:
            site, goodput = search.sites[one.site], one.throughput * one.state.share
            rows.append(
                {
                    "fabric": fabric,
                    "best": notation(site.fastest.grid[one.row], short=True),
                    "policy": one.policy,
                    "throughput": one.throughput,
                    **_step(search, one),
                    "degraded parts": one.state.degraded_parts,
                    "goodput": goodput,
                    "price of a token": site.price / goodput,
                }
            )
    return pd.DataFrame(rows).set_index("fabric")


def report(search: JointSearch, best: Choice, fastest: Choice, counts: pd.Series) -> list[str]:
    """Say why the best choice is the best, and what the fastest strategy and the others lose."""
    row, share = as_row(search, best), best.state.share
    factors = {name: getattr(best.state, name) for name in FACTORS}
    step = search.step(best)
    known = (
        ""
        if step is None
        else f" (90 % interval {row['from']:,.0f} to {row['to']:,.0f}, MFU {row['MFU']:.1%})"
    )
    lines = [
        f"Best {search.question.objective}: {_described(row)}.",
        f"{best.throughput:,.0f} tokens/s without failures{known}, {best.throughput * share:,.0f} "
        "with them "
        f"({share:.2%}; {best.tenth:.2%} or more in nine runs of ten): "
        + ", ".join(f"{_spelled(name)} {value:.2%}" for name, value in factors.items() if value < 1)
        + ".",
        f"Every strategy was asked: {'; '.join(f'{n:,} {fate}' for fate, n in counts.items())}.",
        f"{len(search.evaluated):,} joint choices were evaluated; no other can reach the best: "
        f"their bounds are at or below it.",
        *(f"{note[0].upper()}{note[1:]}." for note in (step.notes if step else ())),
        f"The job as a whole fails {search.sites[best.site].failures.job_rate * DAY:.2g} times a "
        "day: in "
        "proportion to its GPUs by a published table or a log, as given by classes.",
    ]
    if events := search.question.source:
        lines.append(
            f"Nodes fail in events of {events.mean_size:.3g} in the mean and {len(events.sizes)} at "
            f"most, at {'one rate' if len(events.phases) == 1 else 'rates that drift'}."
        )
    if fastest == best:
        lines.append(
            "The fastest strategy is the best here: planning by throughput alone is right."
        )
    else:
        worst = min(
            FACTORS, key=lambda name: getattr(fastest.state, name) / max(factors[name], 1e-300)
        )
        lines.append(
            f"The fastest strategy, {_changed(as_row(search, fastest), row)}, is "
            f"{fastest.throughput / best.throughput - 1:.2%} faster without failures and keeps "
            f"{fastest.state.share:.2%} of that: it loses {1 - fastest.score / best.score:.2%}."
        )
        lines.append(
            f"It loses most by {_spelled(worst)}: {getattr(fastest.state, worst):.2%} against "
            f"{factors[worst]:.2%}."
        )
    lines.append("The best with another value, axis by axis:")
    for _, other in alternatives(search, best).iterrows():
        lines.append(
            f"- {other['axis']} {other['value']}: loses {other['loses']:.3%}, "
            f"{_changed(dict(other), row)}."
        )
    return lines


def _spelled(factor: str) -> str:
    """Name of a factor in a sentence."""
    return factor.replace("_", " ")


def _described(row: dict[str, Any]) -> str:
    """A choice in words."""
    degrees = ", ".join(f"{name} {row[name]}" for name in (*DEGREES, "copies"))
    wired = f" with {row['network']}" if "network" in row else ""
    every = f"every {row['interval'] / MINUTE:.1f} min"
    if row["interval"] == float("inf"):
        every = "never written (no failure that counts sends the job back to one)"
    return (
        f"{degrees} on {row['cluster']}{wired}, {row['spares']} spares, policy {row['policy']}, "
        "checkpoints "
        f"{row['checkpoint']} {every}"
    )


def _changed(row: dict[str, Any], best: dict[str, Any]) -> str:
    """What differs from the best."""
    changed = [f"{name} {row[name]}" for name in AXES if name in best and row[name] != best[name]]
    return "with " + ", ".join(changed) if changed else "of the same kind"
