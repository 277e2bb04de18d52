"""Plans of several models on several clusters, of several sizes and failure tables, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import product
from os import PathLike
from typing import Any, Final

import pandas as pd

from relparallel._checks import require_column, require_int
from relparallel._notices import doing, told
from relparallel.hardware import Cluster, clusters as published
from relparallel.planning.cluster_files import arguments_of, cluster_files
from relparallel.planning.doubt import order_of, vendors
from relparallel.planning.inputs import model_of
from relparallel.planning.plans import plan, refuse_unknown
from relparallel.sweep import map_chunks
from relparallel.training.failing_parts import rate_table

_COST: Final = "cost of 1e9 tokens"
_WHY: Final = "why not"


@told
def study(
    models: Any,
    clusters: Any,
    gpus: int | Sequence[int] | None = None,
    rates: Any = None,
    *,
    price: float | Sequence[float] | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Plan every model on every cluster, of every size and under every failure table.

    Parameters
    ----------
    models, clusters, rates : one or a sequence of them, or Mapping of str to them
        As of `plan`; a Mapping names what has no name of its own. Without rates, what fails is the
        log of a cluster file that has one, else as in "llama3".
    gpus : int or sequence of int, optional
        Sizes of each cluster that is given by a name of `hardware.clusters`; others have their own.
    price : float or sequence of float, optional
        Of a GPU-hour, one for all or one for each of ``clusters``; those of cluster files where
        omitted.
    executor : concurrent.futures.Executor, optional
        Makes several plans at a time: a pool, or a dask cluster by ``Client(...).get_executor()``.
        The table does not depend on it.
    **options
        Of `plan`, for all; they win over what cluster files say.

    Returns
    -------
    pandas.DataFrame
        A row for each: the best strategy in the units of `plan`, with 90 % intervals; the
        probability that this cluster is the best for the model (most tokens a day, or for the
        money) under that failure table, among those of one of ``gpus``, or of sizes of their own;
        and ``why not`` where there is no plan. Not a number between vendors that `Plan.clusters`
        does not put in order; ``attrs["notes"]`` then says why.

    Examples
    --------
    >>> table = study(["gpt3-6.7b", "gpt3-175b"], "a100-80gb-selene", gpus=16, price=2.0)
    >>> table["strategy"][0], table["why not"][1]  # doctest: +ELLIPSIS
    ('TP1 PP1 DP16 ...', 'cluster must hold the training state of gpt3-175b, 2,794 GB, got ...')
    """
    refuse_unknown(options)
    reading = options.get("sequence"), options.pop("ignore", ())
    sizes = _each("models", models, lambda one: _model(one, *reading))
    given = options if rates is None else {**options, "rates": rates}
    tables = _each(
        "rates",
        "llama3" if rates is None else rates,
        lambda one: (rate_table(one, Cluster(nodes=1)), one)[1],
    )
    asked = list(product(sizes, _machines(clusters, gpus, price, given), tables))
    questions = [(sizes[model], *machine, tables[table]) for model, machine, table in asked]
    answers = map_chunks(
        partial(_answer, options), questions, executor, lambda _, said: ({_WHY: said}, None)
    )
    rows, alike, notes = list[dict[str, Any]](), dict[Any, list[int]](), dict[str, None]()
    for (model, place, table), (row, found) in zip(asked, answers, strict=True):
        name, machine, size, said = place
        if found is not None:
            alike.setdefault((model, table, size), []).append(len(rows))
        fails = "own log" if "rates" in said else table
        head = {"model": model, "cluster": name, "gpus": size or machine.gpus, "rates": fails}
        rows.append(head | row)
    for places in alike.values():
        plans, these = [answers[k][1] for k in places], [rows[k] for k in places]
        worth = [1 / row[_COST] if _COST in row else row["1e9 tokens a day"] for row in these]
        for row, chance in zip(these, order_of(plans, worth)[0], strict=True):
            row["best cluster with probability"] = chance
        if why := vendors(plans)[1]:
            notes[why] = None
            for row, one in zip(these, plans, strict=True):
                row["vendor"] = one.cluster.accelerator.vendor
    table = pd.DataFrame(rows)
    table = table[[*table.columns.drop(_WHY), _WHY]]
    table.attrs["notes"] = [*notes]
    return table


def _answer(options: Mapping[str, Any], question: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
    """Best of a plan as a row, and what it is compared by; or why there is no plan."""
    model, name, machine, size, said, rates = question
    of = model if isinstance(model, str) else f"{model.parameters:.3g} parameters"
    doing(f"{of} on {name}")
    try:
        found = plan(model, machine, gpus=size, **{"rates": rates, **said, **options})
    except ValueError as error:
        return {_WHY: str(error)}, None
    row = found.clusters().drop(columns="before the next with probability").iloc[0]
    return {**row, _WHY: ""}, found.best


def _model(one: Any, sequence: int | None, ignore: Any) -> Any:
    """A published name, or sizes: by workers no file is read."""
    name, sizes, _ = model_of(one, sequence, ignore)
    return one if one == name else sizes


def _machines(
    clusters: Any, gpus: Any, price: Any, given: Mapping[str, Any]
) -> list[tuple[str, Any, Any, dict[str, Any]]]:
    """Name, cluster, size where the cluster is only a name, and arguments of `plan` of its own."""
    sizes = gpus if isinstance(gpus, (list, tuple)) and gpus else [gpus]

    def sized(one: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
        if isinstance(one, str) and one in published():
            return [(one, require_int(gpus=size, at_least=1), {}) for size in sizes]
        files = cluster_files(one, {})
        return [(file.cluster, None, arguments_of([file], False, given)) for file in files]

    found = _each("clusters", clusters, sized)
    if price is not None:
        prices = require_column("price", price, len(found), above=0).tolist()
        for several, paid in zip(found.values(), prices, strict=True):
            for _, _, said in several:
                said["price"] = paid
    machines = [
        (name if size or len(several) == 1 else machine.name, machine, size, said)
        for name, several in found.items()
        for machine, size, said in several
    ]
    free = [name for name, *_, said in machines if "price" not in said]
    if 0 < len(free) < len(machines):
        raise ValueError(f"price must be said of every cluster or of none, got none of {free[0]}")
    if gpus is not None and not any(size for _, _, size, _ in machines):
        raise ValueError(f"gpus must be left out unless a cluster is given by name, got {gpus!r}")
    return machines


def _each(argument: str, given: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    """One or several by name, as they are read; what is wrong with them names the argument."""
    several = given if isinstance(given, (list, tuple, Mapping)) else [given]
    if not isinstance(given, Mapping):
        text = (str, PathLike)
        given = {str(x) if isinstance(x, text) else getattr(x, "name", ""): x for x in several}
    try:
        if not several or len(given) < len(several) or "" in given:
            raise ValueError("each must have a name of its own, as in a Mapping")
        return {name: read(one) for name, one in given.items()}
    except (TypeError, ValueError) as error:
        raise type(error)(f"{argument}: {error}, got {several!r:.80}") from None
