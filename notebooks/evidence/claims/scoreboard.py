"""How far predictions of measured runs are off: ``python -m relparallel scoreboard``.

Errors come from ``data/derived/``, where ``python -m relparallel derive`` writes them. Three kinds
are never mixed: *blind*, recorded before any row of a source was fitted; *left out*, predicted
today without the source; and *calibrated*, with the source in the fit. `board` puts them side by
side, one row for each source.
"""

from typing import Final

import numpy as np
import pandas as pd

from evidence.claims._rows import derived
from evidence.claims.memory import bloom_memory, bloom_rows
from evidence.training_steps import measured_runs, refused_runs
from relparallel._tables import folded, text_table
from relparallel.hardware import accelerator, cluster
from relparallel.parallel import memory
from relparallel.parallel.gpu_memory import RESERVE
from relparallel.published import facts
from relparallel.units import GB

_WAYS: Final = {
    "joint": "calibrated",
    "left_out": "source left out",
    "left_out_one_factor": "source left out, its median known",
    "borrowed": "parameters of another accelerator",
    "left_out_software": "software left out",
    "left_out_software_one_factor": "software left out, its median known",
    "constant": "constant MFU",
    "nearest": "MFU of the nearest",
}
_PEERS: Final = {
    "CALC-0001": "Korthikanti",
    "CALC-0011": "PTD-P",
    "CALC-0012": "vTrain, several nodes",
    "CALC-0013": "vTrain, one node",
    "CALC-0016": "BLOOM",
    "PEER-0001": "vTrain, one node",
    "PEER-0002": "vTrain, several nodes",
    "PEER-0003": "SimuMax",
    "PEER-0004": "",
    "PEER-0005": "",
    "PEER-0006": "",
}  # numbers that others give for their own models, and whose runs they judge them by
_SHORT: Final = {
    "source left out": "left out",
    "source left out, its median known": "median known",
    "MFU of the nearest": "nearest run",
}
_KNOWN: Final = ["one run known", "1 learnt", "3 learnt", "5 learnt"]
_SHOWN: Final = ["blind", "left out", "median known", *_KNOWN, "calibrated", "nearest run"]
_ROOM: Final = 80  # columns of what is printed
_KEYS: Final = ["family", "source"]
_BLIND: Final = {0: "blind", 1: "its source in the fit"}  # by whether the fit of the day knew it
_LOSS: Final = "the first choice loses"
_RECORDED: Final = "blind, as recorded"
_COLUMNS: Final = [
    "family",
    "source",
    "used",
    "rows",
    "median",
    "mean",
    "largest",
    "inside",
    "distance",
]


def scoreboard() -> pd.DataFrame:
    """Absolute errors [%] of every source, one row for each way in which its rows were used.

    ``inside``: rows [%] within the 90 % interval that the other sources, or softwares, give;
    ``distance`` of the nearest run, the median (`cross_validate`).
    """
    table = derived("calibration_errors")
    table = table[table["way"].isin(_WAYS)].assign(used=table["way"].map(_WAYS))
    shown = table.rename(columns={"coverage": "inside"})[_COLUMNS]
    shown = pd.concat([shown, _blind()], ignore_index=True)
    shown[["median", "mean", "largest", "inside"]] *= 100
    return shown


def board() -> pd.DataFrame:
    """The scoreboard by family and source [%]: errors by what was known, intervals, choices.

    Runs inside are those of left-out sources, by the
    intervals of each level that the others give; beside them blind runs, by the 90 % interval that
    was recorded with them. The pick is the first of the strategies that were
    measured for one model and cluster; it loses against the best of them.
    """
    table = pd.concat([scoreboard(), _learnt()], ignore_index=True)
    table = table[table["source"] != "all"]
    errors = table.pivot(index=_KEYS, columns="used", values="mean")
    held = derived("interval_coverage").query("left_out == 'publisher'")
    held = held.pivot(index=_KEYS, columns="level", values="held")
    judged = checks().query("used == 'source left out' and source != 'all'").set_index(_KEYS)
    choices = judged.pivot(columns="check", values="mean")[["strategies in order", _LOSS]]
    blind = table[table["used"] == "blind"].set_index(_KEYS)["inside"]
    inside = (100 * held.rename(columns="{:.0%}".format)).join(blind.rename(_RECORDED), how="outer")
    parts = {
        "": table.groupby(_KEYS)[["rows"]].max(),
        "error of a step / %": errors.rename(columns=_SHORT)[_SHOWN],
        "inside / %": inside,
        "choosing / %": choices,
    }
    return pd.concat(parts, axis=1)


def peers() -> pd.DataFrame:
    """What others give as the error of their own models, and ours [%] on runs of the same source."""
    rows = []
    for name, source in _PEERS.items():
        fact = facts()[name]
        rows.append((fact.system, fact.quantity, fact.value, fact.inputs_text, source, fact.source))
    table = pd.DataFrame(rows, columns=["model", "number", "/ %", "of", "source", "where"])
    ours = board()["error of a step / %"].droplevel("family")[["left out", "calibrated"]]
    return table.join(ours.add_prefix("ours, "), on="source")


def blind_records() -> pd.DataFrame:
    """Predictions written down before a run was fitted, by day: runs, inside, their errors [%].

    ``inside`` counts runs within the 90 % interval that was recorded with them. A run is blind where
    no run of its source on its kind of accelerator was in the fit of that day; the others stand
    apart, and are runs that a fit had not seen of a source that it had. "all" sums the days.
    """
    rows = _recorded()
    rows = pd.concat([rows, rows.assign(recorded="all")])
    table = rows.groupby(["used", "recorded"]).agg(
        runs=("size", "size"),
        inside=("within", "sum"),
        mean=("size", "mean"),
        bias=("error", "median"),
    )
    table[["mean", "bias"]] *= 100
    return table.assign(share=100 * table["inside"] / table["runs"])


def _recorded() -> pd.DataFrame:
    """Every prediction of the record, which nothing changes."""
    rows = derived("blind_errors")
    return rows.assign(
        used=rows["known"].map(_BLIND),
        size=rows["error"].abs(),
        within=rows["measured"].between(rows["low"], rows["high"]),
    )


def _blind() -> pd.DataFrame:
    """Recorded errors by source, apart where others of its runs were in the fit."""
    rows = _recorded()
    return pd.concat([_summary(own).assign(used=used) for used, own in rows.groupby("used")])[
        _COLUMNS
    ]


def _summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors by family and source."""
    table = rows.groupby(["family", "source"]).agg(
        rows=("size", "size"),
        median=("size", "median"),
        mean=("size", "mean"),
        largest=("size", "max"),
        inside=("within", "mean"),
    )
    return table.reset_index().assign(distance=np.nan)


def _learnt() -> pd.DataFrame:
    """Errors [%] of a source's other runs once k are known, its publisher in no fit."""
    sets = derived("learning").query("learnt > 0")
    sets["family"] = [accelerator(name).family for name in sets["accelerator"]]
    by = [sets[name] for name in (*_KEYS, "learnt")]
    sums = sets[["one_factor", "error"]].mul(100 * sets["rows"], axis=0).groupby(by).sum()
    rows = sets["rows"].groupby(by).sum()
    table = sums.div(rows, axis=0).assign(rows=rows).reset_index()
    known = table[table["learnt"] == 1]
    known = known.assign(used="one run known", mean=known["one_factor"])
    learnt = table.assign(used=table["learnt"].map("{} learnt".format), mean=table["error"])
    return pd.concat([known, learnt])[[*_KEYS, "used", "rows", "mean"]]


def checks() -> pd.DataFrame:
    """Left-out sources: strategies in order, what the first choice loses, thousands of GPUs [%].

    Pairs as in `strategy_order`; beside those of the MFU of the nearest run. What is lost is told
    of groups of strategies for one model and cluster.
    """
    table = derived("prediction_checks")
    table["used"] = table["way"].map(_WAYS)
    lost = derived("choices").rename(columns={"groups": "rows", "lost": "mean"})
    lost = lost.assign(check=_LOSS, used=_WAYS["left_out"])
    table = pd.concat([table, lost], ignore_index=True)
    table[["mean", "largest"]] *= 100
    return table[["check", *_KEYS, "used", "rows", "mean", "largest"]]


def memory_scoreboard() -> pd.DataFrame:
    """Memory peaks, verdicts whether a run fits, by source: rows, errors [%] and right verdicts."""
    rows = [("BLOOM", *_bloom(fact.id)) for fact in bloom_rows()]
    for run in (run for run in measured_runs() if run.memory):
        need = memory(
            run.model,
            run.strategy,
            run.global_batch,
            software=run.software,
            precision=run.precision,
        )
        error = float(need.peak.max()) / run.memory - 1
        kind = " MoE" if run.model.experts > 1 else ""
        rows.append((run.source + kind, error, need.fits(run.cluster).fits))
    table = pd.DataFrame(rows, columns=["source", "error", "right"])
    table["size"] = table["error"].abs()
    counted = table.groupby("source").agg(
        rows=("right", "size"),
        peaks=("size", "count"),
        median=("size", "median"),
        mean=("size", "mean"),
        largest=("size", "max"),
        bias=("error", "median"),
        verdicts=("right", "mean"),
    )
    shares = ["median", "mean", "largest", "bias", "verdicts"]
    counted[shares] *= 100
    return counted


def _bloom(name: str) -> tuple[float, bool]:
    """Error of a peak that the driver reports, and whether it is known which runs fitted."""
    fact = facts()[name]
    need, reported = bloom_memory(fact), fact.inputs["mem_GB"]
    fits = need.fits(cluster("a100-80gb-jean-zay", gpus=384)).fits
    held = float(need.total.max()) + RESERVE
    error = held / (reported / GB * 2**30) - 1 if isinstance(reported, float) else np.nan
    return error, fits == (fact.value_text != "OOM")


def notes() -> list[str]:
    """What to know beside errors: parameters strained or without evidence, and rows left aside."""
    said = [
        "llm-analysis asks for the share of the peak rate and predicts none: constant MFU stands "
        "for it"
    ]
    table = derived("parameter_evidence")
    for family, own in table.groupby("family"):
        kinds = {
            "at their bound": own["at_bound"],
            "more than two standard deviations from their prior": (own["away"].abs() > 2)
            & ~own["at_bound"],
            "on which the runs say nothing": own["left"] > 0.9,
        }
        for what, chosen in kinds.items():
            if chosen.any():
                said.append(f"{family}: parameters {what}: {', '.join(own['parameter'][chosen])}")
    refused = refused_runs().groupby(["source", "reason"]).size().reset_index(name="rows")
    said += [
        f"{row.source}: {row.rows} rows not scored: {row.reason}" for row in refused.itertuples()
    ]
    return said


def report() -> str:
    """The errors in a sentence, the tables and the notes, in 80 columns."""
    table = scoreboard()
    left = table[(table["used"] == "source left out") & (table["source"] == "all")]
    said = "; ".join(
        f"{row.family} {row.mean:.1f} % of {row.rows} runs, {row.inside:.0f} % inside the 90 % "
        "interval"
        for row in left.itertuples()
    )
    parts = [folded(f"Mean absolute errors of step times, a whole source left out: {said}.", _ROOM)]
    every = table[table["source"] == "all"].rename(columns={"used": "runs"})
    ways = every.pivot(index="family", columns="runs", values="mean").rename(columns=_SHORT)
    ways = ways.rename(columns={"calibrated": "fitted", "constant MFU": "constant"})
    shown = ways[["left out", "median known", "fitted", "nearest run", "constant"]]
    shown.insert(0, "runs", every.groupby("family")["rows"].max())
    head = "mean absolute errors of step times / % (each source: --csv FILE)"
    parts.append(f"{head}\n{_shown(shown.reset_index())}")
    days = blind_records().reset_index()
    parts.append(f"recorded before the runs were fitted / %\n{_shown(days)}")
    for check, own in checks().query("source == 'all'").groupby("check"):
        parts.append(f"{check} / %\n{_shown(own.drop(columns=['check', 'source']))}")
    known = board()["error of a step / %"][["left out", *_KNOWN]].dropna()
    parts.append(f"errors once own runs are known / %\n{_shown(known.reset_index())}")
    others = peers().drop(columns=["of", "where"]).round(2)
    parts.append(f"other models, as they or we found / %\n{_shown(others)}")
    kept = memory_scoreboard().reset_index()
    parts.append(
        f"memory: errors of the fullest GPU's peak, and right verdicts / %\n{_shown(kept)}"
    )
    return "\n\n".join([*parts, *(folded(note, _ROOM) for note in notes())])


def _shown(table: pd.DataFrame) -> str:
    cells = table.astype(object).where(table.notna(), "").to_numpy().tolist()
    return text_table(table.columns, cells, _ROOM)
