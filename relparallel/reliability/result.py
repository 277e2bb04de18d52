"""`Reliability`: the probability that a network works, and the probability that it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from itertools import repeat
from operator import call
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from relparallel._checks import (
    Result,
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
)

if TYPE_CHECKING:
    import pandas as pd

    from relparallel.reliability.sensitivity.importance import Importance

Method = Literal[
    "exact",
    "closed_form",
    "bounds",
    "monte_carlo",
    "crude",
    "permutation",
    "splitting",
    "recursive",
    "zero_variance",
    "karp_luby",
]
Estimator = Literal[
    "auto", "crude", "permutation", "splitting", "recursive", "zero_variance", "karp_luby"
]
Routing = Literal["any", "updown"]
_METHODS = get_args(Method)
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliability(Result):
    """Probability that the terminals can communicate, with its complement summed on its own.

    Parameters
    ----------
    reliability, unreliability : float
        R and U. Both are sums of positive terms: U of 1e-300 has as many correct digits as R of
        0.5. `fractions.Fraction` where the question was asked in fractions; then they add up to 1.
    lower, upper : float
        Bracket of the *un*reliability: equal to it when the method is exact, a confidence interval
        when it samples.
    method : {"exact", "closed_form", "bounds", "monte_carlo"} or name of an estimator
        How it was computed. With "bounds" the unreliability is the middle of a bracket that holds
        for certain.
    routing : {"any", "updown"}
        What counts as connected: any path, or only up-down paths (up, then down).
    width : int
        Most vertices that were live at once in the frontier DP; 0 where it did not run.
    states : int
        States that the frontier DP visited; 0 where it did not run.
    samples : int
        Sampled states of the network; 0 where nothing was sampled.
    reason : str
        Why this method was chosen, with the numbers that decided; empty where the caller chose.

    Examples
    --------
    >>> Reliability(reliability=0.75, unreliability=0.25, lower=0.25, upper=0.25, method="exact",
    ...             routing="any").exact
    True
    """

    reliability: float
    unreliability: float
    lower: float
    upper: float
    method: Method
    routing: Routing
    width: int = 0
    states: int = 0
    samples: int = 0
    reason: str = field(default="", compare=False)
    _parts: Callable[..., Importance] | None = field(
        init=False, default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("reliability", "unreliability", "lower", "upper"):
            value = getattr(self, name)
            if type(value) is not float or not 0.0 <= value <= 1.0:
                object.__setattr__(self, name, _chance(name, value))
        if not self.lower <= self.unreliability <= self.upper:
            raise ValueError(
                f"lower and upper must hold unreliability {self.unreliability!r}, "
                f"got [{self.lower!r}, {self.upper!r}]"
            )
        require_choice(_METHODS, method=self.method)
        require_choice(("any", "updown"), routing=self.routing)
        require_instance(str, reason=self.reason)
        require_int(width=self.width, states=self.states, samples=self.samples, at_least=0)

    @property
    def exact(self) -> bool:
        """Whether the bracket has width zero."""
        return self.lower == self.upper

    def importance(self, *, perfect: bool = False) -> Importance:
        """Importance of each link and node, by a sweep forth and back or by classes of alike parts.

        Parameters
        ----------
        perfect : bool, optional
            Whether to include parts that never fail; it can take much longer.

        Returns
        -------
        Importance
            Birnbaum's measure and what follows from it; ``to_frame()`` is the table.

        Notes
        -----
        By one sweep back through the frontier DP for all parts together; or, where a fabric is
        wider, by the exact sum of its lumped states or closed form, once more for each class of
        identical parts. It takes seconds, not a few times an evaluation, and has six digits of what
        is a billionth of the unreliability without the part, none where rounding may be all of it:
        then it is 0. At most twelve groups of shared risk of several parts are gone through by
        their states.

        Examples
        --------
        >>> import networkx as nx
        >>> from relparallel.reliability import evaluate
        >>> bridge = nx.Graph(["sa", "sb", "ab", "at", "bt"])
        >>> parts = evaluate(bridge, ("s", "t"), link_up=0.9).importance()
        >>> for name, chance in zip(parts.names, parts.birnbaum):
        ...     print(*name, f"{chance:.4f}")
        s a 0.1062
        s b 0.1062
        a b 0.0162
        a t 0.1062
        b t 0.1062
        """
        require_flag(perfect=perfect)
        if self._parts is None:
            raise ValueError(
                "method must be 'exact' for importance: evaluate(graph, ..., method='exact') with "
                "routing "
                "'any' and chances that are floats; or a closed form must apply; "
                f"got {self.method!r}, {self.routing!r}"
            )
        return self._parts(perfect=perfect)

    def to_frame(self) -> pd.DataFrame:
        """One row: the table that a notebook shows."""
        import pandas as pd

        return pd.DataFrame(
            {
                "reliability": [self.reliability],
                "unreliability": [self.unreliability],
                "lower": [self.lower],
                "upper": [self.upper],
                "method": [self.method],
                "routing": [self.routing],
            }
        )


def _chance(name: str, value: Any) -> Any:
    """A probability as a float, or the fraction that it is."""
    if isinstance(value, Fraction):
        require_probability(**{name: float(value)})
        return value
    return require_probability(**{name: value})


def explained(found: Reliability, reason: str) -> Reliability:
    """The result, which nobody has seen yet, with the reason why its method was chosen."""
    object.__setattr__(found, "reason", reason)
    return found


def bracketed(
    lower: float,
    upper: float,
    routing: Routing,
    reason: str = "",
    *,
    width: int = 0,
    states: int = 0,
) -> Reliability:
    """Make a result of certified bounds of the unreliability; its value is their middle."""
    middle = (lower + upper) / 2
    return Reliability(
        reliability=1 - middle,
        unreliability=middle,
        lower=lower,
        upper=upper,
        method="bounds",
        routing=routing,
        width=width,
        states=states,
        reason=reason,
    )


def exactly(
    reliability: Any,
    unreliability: Any,
    method: Method,
    routing: Routing = "any",
    *,
    width: int = 0,
    states: int = 0,
    reason: str = "",
) -> Reliability:
    """Make a result without an interval; rounding may have lifted a probability just above 1."""
    up, down = _at_most_one(reliability), _at_most_one(unreliability)
    return unchecked(
        Reliability, up, down, down, down, method, routing, width, states, 0, reason, None
    )


def _at_most_one(chance: Any) -> Any:
    """A fraction as it is, everything else as a float."""
    if type(chance) is float:
        return 1.0 if chance > 1.0 else chance
    return chance if isinstance(chance, Fraction) else min(float(chance), 1.0)


def unchecked(kind: type[_Kind], *values: Any) -> _Kind:
    """A frozen dataclass with these values of all fields in their order; nothing is checked twice.

    That saves 5 us of the 40 to 65 that the exact reliability of ten to twenty nodes takes.
    """
    found = object.__new__(kind)
    any(map(call, _setters(kind), repeat(found), values))  # type: ignore[arg-type]
    return found


@cache
def _setters(kind: type[Any]) -> list[Any]:
    """What sets each field of a dataclass with slots."""
    return [getattr(kind, each.name).__set__ for each in fields(kind)]
