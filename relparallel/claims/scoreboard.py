"""How far predictions of measured runs are off: ``python -m relparallel scoreboard``.

Errors come from ``data/derived/``, where ``python -m relparallel derive`` writes them: in the fit,
with a whole source or software left out, and blind, recorded before any of a source's rows was
fitted.
"""

from typing import Final

import numpy as np
import pandas as pd

from relparallel._latex import folded, text_table
from relparallel.claims._rows import derived
from relparallel.claims.memory import bloom_memory, bloom_rows
from relparallel.hardware import cluster
from relparallel.parallel import memory
from relparallel.parallel.measured_runs import measured_runs, refused_runs
from relparallel.parallel.memory import RESERVE
from relparallel.published import facts
from relparallel.units import GB

_WAYS: Final = {
    "joint": "calibrated",
    "left_out": "source left out",
    "left_out_one_factor": "source left out, one factor",
    "borrowed": "parameters of another accelerator",
    "unfitted": "blind",
    "left_out_software": "software left out",
    "left_out_software_one_factor": "software left out, one factor",
    "constant": "constant MFU",
    "nearest": "MFU of the nearest",
}
_PEERS: Final = {
    "PTD-P": "CALC-0011",
    "BLOOM": "CALC-0016",
    "vTrain, several nodes": "CALC-0012",
    "vTrain, one node": "CALC-0013",
}
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
    ``distance`` of the nearest run, the median (`cross_validate`). Peers: another model with its
    author's calibration, Calculon, as published.
    """
    table = derived("calibration_errors")
    table = table[table["way"].isin(_WAYS)].assign(used=table["way"].map(_WAYS))
    table = table[(table["way"] != "unfitted") | (table["source"] != "all")]
    seen = (table["way"] == "unfitted") & table["source"].str.fullmatch(
        "Megatron-Bridge MoE, G?B200"
    )
    shown = table.assign(used=table["used"].mask(seen, "one number fitted"))
    shown = shown.rename(columns={"coverage": "inside"})[_COLUMNS]
    return _percent(pd.concat([shown, _blind(), _peers(table)]))


def _blind() -> pd.DataFrame:
    """Errors recorded before any row of a source was fitted; B200, GB200 by H100's parameters."""
    rows = derived("blind_errors")
    known = rows.groupby(["family", "source"])["calibration_sha256"].transform("first")
    rows = rows[rows["calibration_sha256"] == known].copy()  # later rows: the source was in the fit
    rows["size"] = rows["error"].abs()
    rows["within"] = rows["measured"].between(rows["low"], rows["high"])
    return _summary(rows).assign(used="blind")[_COLUMNS]


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


def _peers(table: pd.DataFrame) -> pd.DataFrame:
    """Mean errors of Calculon: on its own rows from its predictions, on the others as recorded."""
    pairs = [
        (float(fact.value_text), float(fact.inputs["calculon_prediction"]))
        for fact in facts("parallelism-cost").values()
        if fact.id.startswith("KORTH-0") and fact.quantity == "iteration time"
    ]
    size = [abs(predicted / measured - 1) for measured, predicted in pairs]
    means = {"Korthikanti": float(np.mean(size))}
    means |= {source: float(facts()[row].value_text) / 100 for source, row in _PEERS.items()}
    counted = table[table["way"] == "joint"].set_index("source")["rows"]
    rows = [("a100", source, "Calculon", counted[source], mean) for source, mean in means.items()]
    return pd.DataFrame(rows, columns=["family", "source", "used", "rows", "mean"])


def _percent(table: pd.DataFrame) -> pd.DataFrame:
    """Shares in per cent."""
    table = table.reset_index(drop=True)
    table[["median", "mean", "largest", "inside"]] *= 100
    return table


def checks() -> pd.DataFrame:
    """Left-out sources' strategies in right order [% of pairs]; errors [%] on thousands of GPUs.

    Pairs as in `strategy_order`; beside those of the MFU of the nearest run.
    """
    table = derived("prediction_checks")
    table[["mean", "largest"]] *= 100
    table["used"] = table["way"].map(_WAYS)
    return table[["check", "family", "source", "used", "rows", "mean", "largest"]]


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
    """The errors in a sentence, the tables and the notes, as wide as the terminal."""
    table = scoreboard()
    left = table[(table["used"] == "source left out") & (table["source"] == "all")]
    said = "; ".join(
        f"{row.family} {row.mean:.1f} % of {row.rows} runs, {row.inside:.0f} % inside the 90 % "
        "interval"
        for row in left.itertuples()
    )
    parts = [folded(f"Mean absolute errors of step times, a whole source left out: {said}.")]
    for family, own in table.groupby("family"):
        own = own.drop(columns="family").sort_values(["source", "used"])
        parts.append(f"{family}: absolute errors of step times / %\n{_shown(own)}")
    for check, own in checks().groupby("check"):
        parts.append(f"{check} / %\n{_shown(own.drop(columns='check'))}")
    kept = memory_scoreboard().reset_index()
    parts.append(
        f"memory: errors of the fullest GPU's peak, and right verdicts / %\n{_shown(kept)}"
    )
    return "\n\n".join([*parts, "\n".join(map(folded, notes()))])


def _shown(table: pd.DataFrame) -> str:
    return text_table(
        table.columns, table.astype(object).where(table.notna(), "").to_numpy().tolist()
    )
