"""`Reliability`: the probability that a network works, and the probability that it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from relparallel._checks import (
    Result,
    require_choice,
    require_flag,
    require_instance,
    require_int,
    require_probability,
)
from relparallel._notices import told

if TYPE_CHECKING:
    import pandas as pd

    from relparallel.reliability.sensitivity.importance import Importance

Method = Literal["exact", "closed_form", "bounds"]
_METHODS = get_args(Method)
_TIGHT = 1e-9  # width of a bracket over its value, or one minus it


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliability(Result):
    """Probability that the terminals can communicate, with its complement summed on its own.

    Parameters
    ----------
    reliability, unreliability : float
        R and U. Both are sums of positive terms: U of 1e-300 has as many correct digits as R of
        0.5.
    lower, upper : float
        Bracket of the unreliability: equal to it when the method is exact.
    method : {"exact", "closed_form", "bounds"}
        How it was computed. With "bounds" the unreliability is the middle of a bracket that holds
        for certain.
    width : int
        Most vertices that were live at once in the frontier DP; 0 where it did not run.
    states : int
        States that the frontier DP visited; 0 where it did not run.
    reason : str
        What the method found, and before it why others were passed over.

    Examples
    --------
    >>> parts = {"reliability": 0.75, "unreliability": 0.25, "lower": 0.25, "upper": 0.25}
    >>> Reliability(**parts, method="exact").exact
    True
    """

    reliability: float
    unreliability: float
    lower: float
    upper: float
    method: Method
    width: int = 0
    states: int = 0
    reason: str = field(default="", compare=False)
    _parts: Callable[..., Importance] | None = field(
        init=False, default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("reliability", "unreliability", "lower", "upper"):
            value = getattr(self, name)
            if type(value) is not float or not 0.0 <= value <= 1.0:
                object.__setattr__(self, name, require_probability(**{name: value}))
        if not self.lower <= self.unreliability <= self.upper:
            raise ValueError(
                f"lower and upper must hold unreliability {self.unreliability!r}, "
                f"got [{self.lower!r}, {self.upper!r}]"
            )
        require_choice(_METHODS, method=self.method)
        require_instance(str, reason=self.reason)
        require_int(width=self.width, states=self.states, at_least=0)

    @property
    def exact(self) -> bool:
        """Whether the bracket has width zero."""
        return self.lower == self.upper

    @property
    def tight(self) -> bool:
        """Whether the bracket is exact, or so narrow that no reader sees it."""
        return self.upper - self.lower <= _TIGHT * min(self.unreliability, self.reliability)

    @told
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
        By one sweep back through the frontier DP for all parts together. Where a fabric is wider,
        once for each class of identical parts: by its closed form, to six digits of what is a
        hundred-thousandth of the unreliability of the fabric, or else by bounds with a part of the
        class down and up, to two digits. What does not show is 0. At most twelve groups of shared
        risk of several parts are gone through by their states.

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
            raise ValueError("importance needs a result of `evaluate`, got one made by hand")
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
            }
        )


def explained(found: Reliability, reason: str) -> Reliability:
    """The result, which nobody has seen yet, with the reason why its method was chosen."""
    object.__setattr__(found, "reason", reason)
    return found


def bracketed(
    lower: float, upper: float, reason: str = "", value: float | None = None, width: int = 0
) -> Reliability:
    """Make a result of certified bounds of the unreliability; its value is their middle."""
    value = (lower + upper) / 2 if value is None else value
    return Reliability(
        reliability=1 - value,
        unreliability=value,
        lower=lower,
        upper=upper,
        method="bounds",
        width=width,
        reason=reason,
    )


def exactly(
    reliability: Any,
    unreliability: Any,
    method: Method,
    *,
    width: int = 0,
    states: int = 0,
    reason: str = "",
) -> Reliability:
    """Make a result without an interval; rounding may have lifted a probability just above 1."""
    up, down = min(float(reliability), 1.0), min(float(unreliability), 1.0)
    return Reliability(
        reliability=up,
        unreliability=down,
        lower=down,
        upper=down,
        method=method,
        width=width,
        states=states,
        reason=reason,
    )
