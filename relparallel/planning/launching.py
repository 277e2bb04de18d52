"""A plan in the words of launchers: files that they take, and strategies asked about in their words."""

import json
import math
from typing import Any, Final

from relparallel._checks import require_choice, require_instance
from relparallel.parallel import Strategy, notation, read_launch, step_time
from relparallel.parallel.launch_files import FORMS, launch_file
from relparallel.parallel.launchers import Launch
from relparallel.parallel.step import StepTime, step_timeline
from relparallel.parallel.timeline import Timeline
from relparallel.planning.table import ENDINGS, notes_of, save_table
from relparallel.topology.formats._text import require_target, write
from relparallel.units import DAY

EVERY: Final = (*ENDINGS, ".html", *dict.fromkeys(end for ends in FORMS.values() for end in ends))
"""Endings of files that `Plan.save` writes."""


def save_plan(plan: Any, path: Any, form: str | None) -> tuple[str, ...]:
    """Write a plan by the ending of a path, and return what the file has no word for."""
    where = require_target(path=path, endings=EVERY)
    form = form_of(where.suffix, form, plan.best.policy != "restart")
    if form is None:
        if where.suffix == ".html":
            write(where, "<!doctype html>\n<meta charset=utf-8>\n" + plan._repr_html_())
        else:
            save_table(path, plan.to_frame(), notes_of(plan))
        return ()
    told, more = _launch_of(plan)
    sizes = plan.model.layers, plan.model.mtp_layers
    head = (repr(plan).strip("<>"), *more)
    text, lost = launch_file(told, form, where.suffix, sizes, head)
    write(where, text)
    return (*more, *lost)


def save_trace(plan: Any, path: Any) -> None:
    """Write a step of the best strategy for Chrome and Perfetto."""
    best = plan.best
    machine = plan._costs(best, best.choice).machine
    options = {"software": machine.software.name, "precision": machine.precision}
    line = step_timeline(plan.model, plan.strategy, best.cluster, plan.global_batch, **options)
    write(path, json.dumps({"traceEvents": _events(line), "displayTimeUnit": "ms"}))


def form_of(ending: str, form: str | None, standing_by: bool) -> str | None:
    """The form of a file; None: the table."""
    fits = [name for name, endings in FORMS.items() if ending in endings]
    if form is None:
        return "nvrx" if standing_by and "nvrx" in fits else next(iter(fits), None)
    if require_choice(tuple(FORMS), form=form) not in fits:
        raise ValueError(f"path must end in {' or '.join(FORMS[form])} for {form}, got {ending}")
    return form


def _launch_of(plan: Any) -> tuple[Launch, tuple[str, ...]]:
    """The best of a plan, its hosts as a launcher counts them; and what no launcher is told."""
    one, host = plan.best, plan.best.cluster.tray
    seconds = one.search.question.tokens / one.throughput
    every = max(round(one.interval / seconds), 1) if math.isfinite(one.interval) else None
    more = []
    if every is None:
        more.append("no checkpoint interval: nothing that fails loses state")
    if one.policy == "elastic":
        more.append(
            "recovery elastic: the plan goes on with fewer replicas, as torchft does; the launcher "
            "waits for as many nodes as the job has"
        )
    if len(one.every) > 1:
        more.append(f"checkpoints {one.checkpoint}: the interval is that of the first level")
    told = Launch(
        one.strategy,
        host=host,
        spares=(one.cluster.paid - one.strategy.gpus) // host,
        save_every=every,
        global_batch=plan.global_batch,
    )
    return told, tuple(more)


def why_not(plan: Any, one: Any, strategy: Strategy | str) -> str:
    """Why a strategy is not the answer on a cluster."""
    if isinstance(strategy, Strategy):
        told = Launch(strategy)
    else:
        require_instance(str, strategy=strategy)
        told = read_launch(strategy, one.cluster.gpus, plan.model.layers)
    said = [_why_not(plan, one, told)]
    if told.passed:
        some = ", ".join(told.passed[:6]) + ", ..." * (len(told.passed) > 6)
        said.append(f"Passed over, since no strategy has it: {some}.")
    if told.global_batch not in (None, plan.global_batch):
        said.append(f"The batch is the plan's {plan.global_batch:,}, not {told.global_batch:,}.")
    return "\n".join(said)


def _why_not(plan: Any, one: Any, told: Launch) -> str:
    """The same of what a launcher is told."""
    asked = told.strategy
    name, best = notation(asked), notation(one.strategy)
    if one.step is None:
        return _among_measured(plan, one, asked)
    same, name = name == best, name + f" on {one.cluster.name}" * (len(plan.found) > 1)
    options = {k: v for k, v in plan.question.items() if k in ("software", "precision")}
    beside = told.beside(plan.model)
    name += "".join(f" {word} {value}" for word, value in beside.items())
    predict = getattr(plan.question.get("learned"), "predict", step_time)
    batch = plan.global_batch
    try:
        step = predict(
            plan.model, asked, one.cluster, batch, network=one.network, **options, **beside
        )
    except ValueError as error:
        # what stands beside a strategy may run where no step is predicted
        return f"{name} {'has no predicted step' if beside else 'cannot run'}: {error}"
    if not step.fits:
        return f"{name}: {_speed(step)}; {step.notes[-2]}; {step.notes[-1]}."
    nodes, rest = divmod(asked.gpus, one.cluster.gpus_per_node)
    if rest:
        return f"{name}: {_speed(step)}; it fills no whole nodes."
    try:
        other = plan._with(asked, one, one.cluster.nodes - nodes)
    except ValueError:  # it fits by what stands beside it alone
        if not beside:
            raise
        longer = step.total / one.step.total - 1
        return f"{name}: {_speed(step)}: {longer:.2%} longer than {best}; only by that it fits."
    assert other.step is not None  # no speed was measured
    slower = 1.0 if not beside else step.total / other.step.total
    step = step if beside else other.step
    said = f"{name}: {_speed(step)}, relative goodput {other.share:.2%} with {other.policy}"
    if same and not beside:
        return f"{said}; it is the best."
    worth = plan._score(other.search, other.choice) / slower
    lost = 1 - worth / plan._score(one.search, one.choice)
    if lost <= 0:
        better = f"{-lost:.2%} better than" if lost < -1e-9 else "as good as"
        return f"{said}; {better} {best}, the best of those that the plan was asked about."
    return (
        f"{said}, {other.goodput / slower * DAY / 1e9:.4g}e9 tokens a day: {lost:.2%} less than "
        f"{best}, whose step takes {one.step.total:.4g} s and which keeps {one.share:.2%} with "
        f"{one.policy}."
    )


def _among_measured(plan: Any, one: Any, asked: Strategy) -> str:
    """Say what a strategy loses among those of measured speed."""
    name = notation(asked)
    found = one.search.best(lambda site, row: bool(site.fastest.grid[row] == asked))
    if found is None:
        return f"{name} is not among the measured strategies."
    said = (
        f"{name}: {found.throughput:,.0f} tokens/s measured, relative goodput "
        f"{found.state.share:.2%}"
    )
    lost = 1 - plan._score(one.search, found) / plan._score(one.search, one.choice)
    if lost <= 0:
        return f"{said} with {found.policy}; it is the best."
    return f"{said} with {found.policy}: {lost:.2%} less than {notation(one.strategy)}."


def _speed(step: StepTime) -> str:
    """A step in words, with its interval and use of the peak."""
    low, high = step.interval()
    return f"{step.total:.4g} s per step ({low:.4g} to {high:.4g}), MFU {step.mfu:.1%}"


def _events(line: Timeline) -> list[dict[str, Any]]:
    """Passes of a timeline as events of Chrome and Perfetto [us], stages as threads."""
    columns = (
        line.kind,
        line.item,
        line.part,
        line.resource,
        line.start * 1e6,
        line.duration * 1e6,
    )
    events: list[dict[str, Any]] = [
        {
            "name": f"{kind} {item + 1}",
            "cat": kind,
            "ph": "X",
            "pid": 0,
            "tid": stage,
            "ts": round(start, 3),
            "dur": round(length, 3),
            "args": {"micro-batch": item + 1, "chunk": part},
        }
        for kind, item, part, stage, start, length in zip(
            *(c.tolist() for c in columns), strict=True
        )
    ]
    return events + [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": k, "args": {"name": f"stage {k}"}}
        for k in range(line.resources)
    ]
