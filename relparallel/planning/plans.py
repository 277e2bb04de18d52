"""From a model and a cluster to the best strategies, each with its interval, memory and reason.

`plan` asks `optimize.joint` and shows the answer in the units of an engineer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from relparallel._checks import (
    Result,
    meant,
    require_column,
    require_flag,
    require_instance,
    require_int,
)
from relparallel._notices import told
from relparallel.hardware import Cluster
from relparallel.optimize.joint_plans import JointPlan, joint
from relparallel.optimize.joint_report import as_row
from relparallel.optimize.joint_search import Choice, JointSearch
from relparallel.parallel import Strategy, memory, notation
from relparallel.parallel.gpu_memory import StageMemory
from relparallel.parallel.prices import pricing
from relparallel.parallel.stages import dealt_layers, in_chunks
from relparallel.planning.cluster_files import clusters_of, from_files
from relparallel.planning.days import Day, day_of
from relparallel.planning.doubt import Doubt, order_of, ranked, vendors
from relparallel.planning.inputs import (
    assumptions,
    given_margin,
    model_of,
    network_of,
    require_room,
    usual_batch,
)
from relparallel.planning.launching import save_plan, save_trace, why_not
from relparallel.planning.own_logs import OwnLog, bounds_of, by_formula, own_log, source_of
from relparallel.planning.own_measurements import asked_with
from relparallel.planning.ranking import Row, exactly
from relparallel.planning.table import (
    as_html,
    as_latex,
    as_lines,
    as_text,
    drawn,
    in_reading_order,
    notes_of,
    warned,
)
from relparallel.topology import Topology
from relparallel.units import DAY, GB, MINUTE
from relparallel.workload import Transformer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAMEWORKS: Final[Mapping[str, Any]] = {"schedule": ("1f1b", "interleaved_1f1b")}
"""Schedules that training frameworks offer today; `plan` asks for these unless told otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Plan(Result):
    """The best strategies of a model on one or several clusters, and questions one asks next."""

    name: str  # of the model
    model: Transformer
    global_batch: int  # sequences of a step
    # the first row on each cluster, in the order in which they were given, and what is known of it
    found: tuple[JointPlan, ...]
    doubts: tuple[Doubt, ...] = field(repr=False)
    price: tuple[float, ...] | None  # of a GPU-hour of each cluster, in any currency
    strategies: int  # rows of the table for each cluster
    notes: tuple[str, ...]  # warnings, then what was assumed
    warnings: tuple[str, ...]  # those of the notes that may change a decision
    rank: str  # by what rows are ranked
    log: OwnLog | None = field(repr=False)  # an own one, if it says what fails
    question: Mapping[str, Any] = field(repr=False)  # arguments of `joint`, for what is asked later

    @property
    def best(self) -> JointPlan:
        """First row on the cluster where it gives most tokens that count per unit of money.

        Of vendors that nobody can put in order, that which was given first (`clusters`).
        """
        return self.found[int(self._order[0])]

    @property
    def _order(self) -> NDArray[np.intp]:
        """Places of clusters, those of vendors without an order together, the best of them first."""
        groups = vendors(self.found)[0]
        return np.lexsort((-np.array(self._worth), np.array([*map(groups.index, groups)])))

    @property
    def _worth(self) -> list[float]:
        """Tokens of each cluster that count, per unit of money where there are prices."""
        kept = [one.goodput for one in self.found]
        if log := self._log:
            kept = [one.throughput * log.of(one.search, one.choice).share for one in self.found]
        kept = [one * doubt.rows[0].kept for one, doubt in zip(kept, self.doubts, strict=True)]
        if self.price is None:
            return kept
        each = zip(kept, self.found, self.price, strict=True)
        return [goodput / (one.cluster.paid * price) for goodput, one, price in each]

    @property
    def _log(self) -> OwnLog | None:
        """The log, if rows are ranked by its replay."""
        return self.log if self.rank == "replay" else None

    def _score(self, search: JointSearch, choice: Choice) -> float:
        """By what rows are ranked."""
        score = choice.score if self._log is None else self._log.score(search, choice)
        place = [one.cluster for one in self.found].index(search.sites[choice.site].cluster)
        return score * self.doubts[place].kept(search, choice, score)

    @property
    def strategy(self) -> Strategy:
        """The best one."""
        return self.best.strategy

    def stages(self) -> StageMemory:
        """Bytes on a GPU of every pipeline stage of the best strategy."""
        machine = self._costs(self.best, self.best.choice).machine
        return memory(
            self.model,
            self.strategy,
            self.global_batch,
            software=machine.software.name,
            precision=self.question.get("storage") or machine.precision,
            dropout=self.question.get("dropout"),
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each strategy, the best of each cluster first; the units stand in the names.

        Rows are the best of every split into TP, PP and EP, in order; a published layout and an own
        run have a place too. Twins, which differ in sharding, spares and how they use replicas, are one
        row; each with its best recovery. Step and MFU are predictions; tokens and cost count what is
        expected to stay of a predicted gain (`ranking`) and rank rows, those that nobody has run last. A
        measured speed has no interval. Steps of a model on a cluster err alike: the probability to be
        the best of its cluster, and the share of the tokens that a row is expected to lose to that, count
        it.
        With an own failure log, its replay stands beside the formula's relative goodput.
        """
        prices = self.price or (np.nan,) * len(self.found)
        rows, groups = [], vendors(self.found)[0]
        for place in sorted(range(len(groups)), key=lambda place: groups.index(groups[place])):
            doubt, price = self.doubts[place], prices[place]
            chances = zip(doubt.rows, doubt.probability, doubt.loss, strict=True)
            for each, probability, loss in list(chances)[: doubt.count]:
                row = self._row(each, price, 1 - each.score / doubt.rows[0].score)
                reason = row.pop("reason")
                row |= {"best with probability": float(probability), "expected loss": float(loss)}
                rows.append(row | {"reason": reason})
        table = pd.DataFrame(rows)
        costs = ["cost of 1e9 tokens", "cost from", "cost to"]
        table = in_reading_order(table)
        return table if self.price is not None else table.drop(columns=costs)

    def clusters(self) -> pd.DataFrame:
        """One row for the best of each cluster, the best first, with the chance that this order is right.

        Best by tokens a day, or by tokens for the money where there are prices. Steps on one kind
        of accelerator err alike, kinds err apart, each as its interval says. Where too few runs of
        that kind of model were measured on the accelerators of a vendor, or those of another are
        borrowed, its rows stand together, and no chance is given against others'.
        """
        best, beats = order_of(self.found, self._worth)
        places = self._order
        prices = self.price or (np.nan,) * len(self.found)
        rows = [self._row(self.doubts[k].rows[0], prices[k], 0.0) for k in places]
        table = pd.DataFrame(rows).drop(columns="reason").dropna(axis=1, how="all")
        table["before the next with probability"] = [*beats[places[:-1], places[1:]], np.nan]
        table["best cluster with probability"] = best[places]
        return table.set_index("cluster")

    @property
    def day(self) -> Day:
        """What makes days of the best strategy differ, should its steps be as predicted."""
        return day_of(self.best.search, self.best.choice)

    def _row(self, each: Row, price: float, loses: float) -> dict[str, Any]:
        """One row in the units of an engineer, with 90 % intervals."""
        one, choice, search = each.one, each.choice, each.one.search
        site, step = search.sites[choice.site], search.step(choice)
        row, strategy = as_row(search, choice), site.fastest.grid[choice.row]
        around = bounds_of(search, choice, self.log)
        low, high = around.pop("goodput")
        seconds, tokens = search.question.tokens / choice.throughput, row["goodput"] * DAY / 1e9
        whole = choice.throughput * DAY / 1e9 * each.kept
        quick, slow = (seconds, seconds) if step is None else step.interval()
        fewest, most = (
            search.question.tokens * share * DAY / 1e9 * each.kept
            for share in (low / slow, high / quick)
        )
        paid, expected = price * site.cluster.paid * 24, tokens * each.kept
        costs = self._costs(one, choice)
        held = costs.peak(costs.split(site.fastest.grid.choices[[choice.row]]))
        day, alike = day_of(search, choice), f" (as {each.twins} more)" * bool(each.twins)
        why = "best" if loses == 0 else f"{'loses' if loses > 0 else 'gains'} {abs(loses):.2%}"
        why += ", better splits are left out for it" * each.skips
        replayed = () if self.log is None else self.log.of(search, choice)
        return {
            "cluster": row["cluster"],
            "strategy": notation(strategy),
            "group": each.group,
            "layers of chunks": in_chunks(dealt_layers(self.model, strategy)),
            "state copies": row["copies"],
            "recovery": choice.policy,
            "spare nodes": site.spares,
            "checkpoint every [min]": choice.state.interval / MINUTE,
            **around,
            "memory [GB]": float(held[0]) / GB,
            "of [GB]": costs.available / GB,
            "step [s]": seconds,
            "step from": quick,
            "step to": slow,
            "MFU": np.nan if step is None else step.mfu,
            "nearest run": "" if step is None else f"{step.nearest}, {step.distance:.1f} away",
            "relative goodput": choice.state.share,
            "goodput from": low,
            "goodput to": high,
            **dict(zip(("replayed goodput", "replay from", "replay to"), replayed, strict=False)),
            "predicted 1e9 tokens": tokens,
            "1e9 tokens a day": expected,
            "tokens from": fewest,
            "tokens to": most,
            "median day": day.median * whole,
            "day from": day.low * whole,
            "day to": day.high * whole,
            "cost of 1e9 tokens": paid / expected,
            "cost from": paid / most,
            "cost to": paid / fewest if fewest else np.inf,
            "reason": why + alike,
        }

    def _costs(self, one: JointPlan, choice: Choice) -> Any:
        """What prices a choice's strategies; if measured, what is asked where no speed is known."""
        site = one.search.sites[choice.site]
        return site.fastest.costs or pricing(self.model, site.job, self.global_batch)

    @property
    def to_measure(self) -> tuple[Strategy, ...]:
        """The two strategies on the best cluster whose runs say most of the choice (`learn`)."""
        return self.doubts[self.found.index(self.best)].to_measure

    def why_not(self, strategy: Strategy | str, cluster: int | None = None) -> str:
        """Say why a strategy is not the answer: a rule it breaks, bytes it lacks, or what it loses.

        ``cluster`` is the place of the cluster among those that were given, that of the best where
        omitted. A text is one as `read_launch` takes it, words, arguments or a file; without a
        data-parallel degree it has the one that fills the cluster.
        """
        place = self.found.index(self.best) if cluster is None else cluster
        require_int(cluster=place, at_least=0, at_most=len(self.found) - 1)
        return why_not(self, self.found[place], strategy)

    def _with(self, asked: Strategy, one: JointPlan, spares: int) -> JointPlan:
        """The joint optimum among strategies with exactly these fields."""
        question = {**self.question, "limits": exactly(asked), "spares": spares}
        question |= {"network": one.network, "memory_margin": 0.0}
        found = joint(self.model, one.cluster, global_batch=self.global_batch, **question)
        return found if self._log is None else self._log.best(found, self.strategies)

    def explain(self) -> str:
        """What is in doubt and was assumed, the best answer, and what other values would lose."""
        said, best = as_lines(notes_of(self), 10**4), by_formula(self.best)
        if best.choice != self.best.choice:
            said.append(f"By {'the formula' if self._log else 'predictions'} alone:")
        return "\n".join([*said, best.explain()])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw tokens a day of every row with its interval."""
        return drawn(self.to_frame(), ax)

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the passes of a step of the best strategy as JSON that Chrome and Perfetto open."""
        save_trace(self, path)

    def save(self, path: str | PathLike[str], form: str | None = None) -> tuple[str, ...]:
        """Write the plan by the ending of a path, and return what the file has no word for.

        The table as .csv, .json, .tex or .html, drawn as .svg, .pdf or .png. The best strategy for
        a launcher, with spares and checkpoints: .sh or .args of Megatron-LM, .sbatch or .slurm,
        .toml of torchtitan, .yaml or .txt, overrides of Megatron-Bridge. ``form`` names one of
        "megatron", "nvrx", "slurm", "torchtitan" and "bridge" where an ending fits several.
        `read_launch` reads them back, with what stands in comments alone.
        """
        return save_plan(self, path, form)

    def to_latex(self) -> str:
        """The table turned as a ``longtable`` with ``booktabs`` rules, and the notes as a list."""
        return as_latex(self.to_frame(), notes_of(self))

    def to_text(self, width: int | None = None) -> str:
        """Table turned, in blocks of a width, the terminal's if omitted; notes below."""
        log = None if self.log is None else self.log.log
        return f"{self._head}\n\n{as_text(self.to_frame(), notes_of(self), width, log)}"

    __str__ = to_text

    @property
    def _head(self) -> str:
        size = f"{self.model.parameters / 1e9:,.1f}e9 parameters"
        return f"{self.name} ({size}), batch {self.global_batch:,}"

    def _repr_html_(self) -> str:
        log = None if self.log is None else self.log.log
        return f"<p>{self._head}</p>{as_html(self.to_frame(), notes_of(self), log)}"

    def __repr__(self) -> str:
        best = self.best
        return (
            f"<Plan {self.name} on {best.cluster.gpus:,} GPUs: {notation(best.strategy)}, "
            f"{best.policy}, "
            f"{best.goodput * DAY / 1e9:.4g}e9 tokens a day, relative goodput {best.share:.2%}>"
        )


@told
@from_files
def plan(
    model: str | PathLike[str] | Transformer,
    cluster: str | PathLike[str] | Cluster | Sequence[str | Cluster],
    *,
    gpus: int | Sequence[int] | None = None,
    global_batch: int | None = None,
    sequence: int | None = None,
    rates: Any = "llama3",
    price: float | Sequence[float] | None = None,
    network: Any = None,
    measured: Any = None,
    only_measured: bool = False,
    like: str | None = None,
    memory_margin: float | None = None,
    strategies: int = 5,
    limits: Mapping[str, Any] | None = None,
    ignore: Sequence[str] = (),
    rank: str = "independent",
    **options: Any,
) -> Plan:
    """Find the best strategies of a model on a cluster, with speed, memory, reliability and cost.

    Parameters
    ----------
    model : str, path or Transformer
        A name of `workload.transformers`, a ``config.json`` of Hugging Face, or the sizes.
    cluster : str, path, Cluster, or sequence of them
        A name of `hardware.clusters`, a file as of `read_cluster`, over whose other fields what is
        given here wins, or the nodes. Several are compared.
    gpus : int or sequence of int, optional
        GPUs of each cluster that is given by a name of `hardware.clusters` or a file.
    global_batch : int, optional
        Sequences of a step. Where omitted, 4e6 to 16.8e6 tokens, as Llama 3, divisible by the nodes
        where they are no more than that; the notes say so.
    sequence : int, optional
        Tokens of a sequence. Where omitted, what the model was published with; of a file what it
        says, at most 8,192, since it says what can be read. The notes say which.
    rates : str, ComponentRates, FailureLog or tuple of ComponentClass
        What fails, as in `failure_model`: "llama3" is the failure table of Meta's run on 16,384
        H100. An own log is replayed on every row beside the formula.
    price : float or sequence of float, optional
        Of a GPU-hour, one for all or each cluster. Without it no cost is shown.
    network : {"two-level", "rail-optimised", "dual-plane", "rail-only"}, path or Topology, optional
        A network whose parts fail too; without it, the two levels of links of the cluster.
    measured : path, DataFrame, sequence of Run, Mapping or Learned, optional
        Own runs, which correct what is predicted of all strategies: as of `learn`, model, cluster
        and batch being those of the plan where a table has no such column; the log of a run that
        says its strategy and batch; tokens/s by strategy; or what `learn` gave. The software is that
        of most runs on the accelerator unless it is named.
    only_measured : bool
        Whether to choose among the strategies of these runs alone, by their measured speeds.
    like : {"measured"}, optional
        Leaves out what nobody has run: degrees above those of all measured runs of that kind of
        model (dense or mixture) on GPUs as fast or faster, and of own runs.
    memory_margin : float, optional
        Share of a GPU's memory that rows leave free, 0.05 where omitted; `why_not` counts the whole.
    strategies : int
        Rows of the table for each cluster, so many, or all that there are: the best of every split
        into TP, PP and EP, in order.
    limits : Mapping, optional
        Values of axes of `StrategyGrid` besides the schedules that frameworks have, 1F1B and
        interleaved 1F1B; ``{"schedule": SCHEDULES}`` asks for all.
    ignore : sequence of str
        Fields of a ``config.json`` that change nothing, as in `read_config`.
    rank : {"independent", "events", "replay"}
        By what rows are ranked: the formula for nodes that fail independently; with an own log, the
        formula for its `shared_events`, or its replay.
    **options
        Of `optimize.joint`: policies, checkpoints, storage_bandwidth, spares, repair, restart, pause,
        horizon, software, precision, executor.

    Returns
    -------
    Plan
        A table with 90 % intervals; ``clusters()`` side by side; `why_not` of any other strategy;
        memory by stage; files and a trace.

    Notes
    -----
    Interval of the step: left-out runs of the calibration. Of the relative goodput: chance of the
    failures over ``horizon`` (30 days), at rates as given; with an own log also the doubt that so
    few failures and repairs leave about both, which the best checkpoint interval and the spares
    have too. Tokens a day take both bounds together. The days of one run differ besides, by failures,
    slow GPUs and noise of steps as in series of MLPerf Training: that is not added, since the first
    days measured take the doubt about the mean away and leave this.

    An own log is replayed 20 times, whole, from random times on, nodes in a random order; a failure
    takes the node that it names; the interval is that of the mean of six parts of it (Student's t).
    Copies of a log that watched fewer nodes stand side by side and share nothing. Nodes down together
    that hold all copies of a shard are seen by "events" alone. "replay" looks among the first rows by
    the formula and the best of every recovery with eight numbers of spares.

    Examples
    --------
    >>> found = plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512)
    >>> found.strategy.gpus, found.stages().fits(found.best.cluster).fits
    (64, True)
    >>> print(found.why_not("TP1 PP1 DP64"))  # doctest: +ELLIPSIS
    TP1 PP1 DP64: ... does not fit: stage 0 needs ...
    """
    refuse_unknown(options)
    require_int(strategies=strategies, at_least=1)
    require_instance((Mapping, type(None)), limits=limits)
    require_instance((str, PathLike, Topology, type(None)), network=network)
    require_flag(only_measured=only_measured)
    margin = given_margin(only_measured, like, memory_margin)
    log = own_log(rank, rates, options)
    name, sizes, notes = model_of(model, sequence, ignore)
    machines = clusters_of(cluster, gpus)
    paid = None if price is None else require_column("price", price, len(machines), above=0)
    if global_batch is None:
        global_batch, said = usual_batch(sizes, machines)
        notes.append(said)
    notes += assumptions(rates, options, machines)
    for one in machines:
        require_room(name, sizes, one, options)
    executor = options.pop("executor", None)  # it may be gone when a plan is asked again
    given = {"model": sizes, "batch": global_batch, **options}
    question = {"rates": rates, **source_of(log, rank, machines), **options}
    question |= asked_with(measured, only_measured, given, machines)
    question["limits"] = limits if only_measured else {**FRAMEWORKS, **(limits or {})}
    asked = {"global_batch": global_batch, "executor": executor, **question}
    asked |= {} if only_measured else {"memory_margin": margin}
    how = strategies, like, log if rank == "replay" else None
    doubts = tuple(
        ranked(sizes, one, {**asked, "network": network_of(network, one)}, *how) for one in machines
    )
    found = tuple(one.first for one in doubts)
    notes += dict.fromkeys(note for one in doubts for note in one.notes)
    warnings, notes = warned(found, notes, log)
    return Plan(
        name=name,
        model=sizes,
        global_batch=global_batch,
        found=found,
        doubts=doubts,
        price=paid if paid is None else tuple(paid.tolist()),
        strategies=strategies,
        notes=(*warnings, *notes),
        warnings=tuple(warnings),
        rank=rank,
        log=log,
        question=question,
    )


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Refuse options that neither `plan` nor what it asks takes, by name."""
    known = {
        *signature(plan).parameters,
        *signature(joint).parameters,
        *signature(pricing).parameters,
    }
    for name in options:
        if name not in known - {"model", "options", "workload"}:
            raise TypeError(f"plan takes no option {name!r}{meant(known, name)}")
