"""What a design promises, and the registry of all designs.

A design is one function in a module of `relparallel.topology.designs`. Its decorator names its
closed forms, its symmetries, how it is drawn, the sizes it comes in and its paper; its closed forms
check its arguments::

    @design(
        closed_form=_ring,
        symmetries=_ring_moves,
        layout="ring",
        sizes=lambda hosts: [{"n": hosts}],
        paper="someone2026ring",
    )
    def ring(n: int) -> Topology:
        form = planned("ring", n)
        ...
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from relparallel._checks import Result, require_choice
from relparallel.topology import designs
from relparallel.topology._arrays import IntArray
from relparallel.topology.parts import Design

if TYPE_CHECKING:
    import pandas as pd

    from relparallel.topology.fabric import Topology

Builder = TypeVar("Builder", bound=Callable[..., Any])


class Rule(NamedTuple):
    """A builder and what belongs to it, each of its parameters but ``rng``: see `design`."""

    builder: Callable[..., Any]
    closed_form: Callable[..., Description]
    symmetries: Callable[..., Sequence[IntArray]] | None
    layout: str
    stripes: Callable[[Topology], IntArray] | None
    grid: Callable[..., tuple[int, ...]] | None
    sizes: Callable[[int], Iterable[dict[str, Any]]] | None
    paper: str


_RULES: Final[dict[str, Rule]] = {}
_MOST: Final = 2**26  # nodes and cables of one topology: about 10 GB of arrays


@dataclass(frozen=True, kw_only=True, slots=True)
class Description(Result):
    """What a design promises, by closed forms; None where no closed form is known."""

    design: str = ""  #: name of the builder
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: its arguments
    nodes: Mapping[str, int]  #: number of nodes of each kind; the first kind are the hosts
    # : cables at a node of a kind, or every number that occurs
    degrees: Mapping[str, int | tuple[int, ...]]
    links: int  #: cables
    diameter: int | None = None  #: largest distance of two hosts [links]
    diameter_bound: int | None = None  #: upper bound of it, where it is known equal to it
    # : mean distance of two different hosts [links]; None of one host
    mean_hops: float | None = None
    bisection: int | None = None  #: fewest cables between two halves of the hosts
    # : fewest cable-disjoint paths between two hosts; 0 of one host
    host_connectivity: int | None = None

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return next(iter(self.nodes.values()))

    @property
    def switches(self) -> int:
        """Number of nodes that are no hosts."""
        return sum(self.nodes.values()) - self.hosts

    @property
    def meta(self) -> Design:
        """Where a topology built to this comes from."""
        return Design(name=self.design, parameters=self.parameters, paper=_RULES[self.design].paper)

    def to_frame(self) -> pd.DataFrame:
        """Value of every quantity whose form is known."""
        import pandas as pd

        whole = (
            "hosts",
            "switches",
            "links",
            "diameter",
            "diameter_bound",
            "mean_hops",
            "bisection",
        )
        rows = {name: getattr(self, name) for name in (*whole, "host_connectivity")}
        known = {name.replace("_", " "): value for name, value in rows.items() if value is not None}
        return pd.DataFrame({"value": pd.Series(known, dtype=object)}).rename_axis("quantity")


def design(
    *,
    closed_form: Callable[..., Description],
    symmetries: Callable[..., Sequence[IntArray]] | None = None,
    layout: str = "tiers",
    stripes: Callable[[Topology], IntArray] | None = None,
    grid: Callable[..., tuple[int, ...]] | None = None,
    sizes: Callable[[int], Iterable[dict[str, Any]]] | None = None,
    paper: str = "",
) -> Callable[[Builder], Builder]:
    """Register the decorated builder as the design of its name.

    ``closed_form`` checks the parameters and gives the `Description`, without a name and with
    parameters only where they differ from the arguments; ``symmetries`` permutations of the nodes,
    each of which is proved before it is used, and None of a random design. ``layout`` names how it is
    drawn; ``stripes`` the colour of every cable: 0 grey, 1 blue, 2 orange,
    3 purple, 4 sky, 5 vermilion for light. ``grid`` gives, where hosts are numbered in an array
    whose lines meet at switches, all its lengths but the first. ``sizes`` gives, for a number of
    hosts from about 20 on, parameters among which the network of that size is; those that break a
    rule of the paper are passed over. ``paper`` is a citation key.
    """

    def register(builder: Builder) -> Builder:
        _RULES[builder.__name__] = Rule(
            builder, closed_form, symmetries, layout, stripes, grid, sizes, paper
        )
        return builder

    return register


def rules() -> Mapping[str, Rule]:
    """What is registered of every design, by name."""
    _load_designs()
    return _RULES


@cache
def _load_designs() -> None:
    for module in pkgutil.iter_modules(designs.__path__):
        import_module(f"{designs.__name__}.{module.name}")


def names() -> tuple[str, ...]:
    """Names of all designs, each that of its builder.

    Returns
    -------
    tuple of str
        In alphabetical order.

    Examples
    --------
    >>> {"bcube", "dcell", "fat_tree", "torus"} <= set(names())
    True
    """
    return tuple(sorted(rules()))


def describe(design: str, **parameters: Any) -> Description:
    """Closed forms of a design, without building it.

    Parameters
    ----------
    design : str
        Name of the builder, one of `names`.
    **parameters
        Arguments of the builder; those with a default may be left out.

    Returns
    -------
    Description
        Counts, degrees, diameter, mean distance, bisection and connectivity.

    Notes
    -----
    With N hosts: fat-tree mean [2(k/2-1) + 4(k/2)(k/2-1) + 6(N-k^2/4)]/(N-1), leaf-spine [2(h-1) +
    4(N-h)]/(N-1), BCube 2(k+1)(1-1/n) N/(N-1), torus sum_i floor(k_i^2/4)/k_i N/(N-1). Bisection:
    fat-tree k^3/8, BCube N/2 for n = 2 (not for every even n), torus 2N/max k_i for an even longest
    dimension of 4 or more (N/2 for one of 2), leaf-spine min(hosts_per_leaf, spines) leaves/2 for
    an even number of leaves.

    References
    ----------
    Al-Fares et al., SIGCOMM 2008; Guo et al., SIGCOMM 2008 and 2009; Arjona Aroca and Fernandez
    Anta, "Bisection (band)width of product networks with application to data centers", arXiv
    1202.6291, 2012.

    Examples
    --------
    >>> describe("dcell", n=6, k=3).hosts
    3263442
    """
    require_choice(names(), design=design)
    require_parameters(design, rules()[design].closed_form, parameters)
    return _described(design, **parameters)


def require_parameters(design: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse a parameter that the function does not know, and ask for one that it needs."""
    expected = signature(function).parameters
    needed = {name for name, p in expected.items() if p.default is Parameter.empty}
    if not needed <= given.keys() <= expected.keys():
        names = ", ".join(given) or "none"
        raise ValueError(f"parameters of {design} must be {', '.join(expected)}, got {names}")


def planned(design: str, *arguments: Any) -> Description:
    """Closed forms of a network that is about to be built; refused where it is too large to be."""
    form = _described(design, *arguments)
    size = sum(form.nodes.values()) + form.links
    if size > _MOST:
        given = ", ".join(f"{name}={value!r}" for name, value in form.parameters.items())
        raise ValueError(
            f"{', '.join(form.parameters)} must give at most {_MOST} nodes and cables to build "
            "(describe() "
            f"needs no building), got {design} with {given}, which give {size}"
        )
    return form


def _described(design: str, *arguments: Any, **parameters: Any) -> Description:
    """Closed forms with the name and the parameters; a known diameter is its own bound."""
    form = _RULES[design].closed_form
    given = signature(form).bind(*arguments, **parameters)
    given.apply_defaults()
    found = form(*given.args, **given.kwargs)
    return replace(
        found,
        design=design,
        parameters=found.parameters or given.arguments,
        diameter_bound=found.diameter if found.diameter_bound is None else found.diameter_bound,
    )
