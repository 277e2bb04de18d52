"""`Reliability`: the probability that a network works, and the probability that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from relparallel._checks import require_choice, require_int, require_probability

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Method", "Reliability", "Routing"]

Method = Literal["exact", "closed_form", "monte_carlo"]
Routing = Literal["any", "updown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliability:
    """Probability that the terminals can communicate, with its complement summed on its own.

    Parameters
    ----------
    reliability, unreliability : float
        R and U. Both are sums of positive terms: U of 1e-300 has as many correct digits as R of 0.5.
    lower, upper : float
        Bracket of the *un*reliability: equal to it when the method is exact, a confidence interval when it
        samples.
    method : {"exact", "closed_form", "monte_carlo"}
        How it was computed.
    routing : {"any", "updown"}
        What counts as connected: any path, or only valley-free paths (up, then down).
    width : int
        Most vertices that were live at once in the exact programme; 0 where it did not run.
    states : int
        States that the exact programme visited; 0 where it did not run.
    samples : int
        Sampled states of the network; 0 where nothing was sampled.

    Raises
    ------
    TypeError, ValueError
        If a probability is outside [0, 1], the bracket does not hold U, or a name is unknown.

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

    def __post_init__(self) -> None:
        for name in ("reliability", "unreliability", "lower", "upper"):
            object.__setattr__(self, name, require_probability(**{name: getattr(self, name)}))
        if not self.lower <= self.unreliability <= self.upper:
            raise ValueError(
                f"lower and upper must hold unreliability {self.unreliability!r}, "
                f"got [{self.lower!r}, {self.upper!r}]"
            )
        require_choice(("exact", "closed_form", "monte_carlo"), method=self.method)
        require_choice(("any", "updown"), routing=self.routing)
        require_int(width=self.width, states=self.states, samples=self.samples, at_least=0)

    @property
    def exact(self) -> bool:
        """Whether the bracket has width zero."""
        return self.lower == self.upper

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

    def _repr_html_(self) -> str:
        """The table of `to_frame`, probabilities to six digits."""
        return str(self.to_frame().to_html(index=False, float_format="{:.6g}".format))


def exactly(
    reliability: float, unreliability: float, method: Method, routing: Routing = "any", **work: int
) -> Reliability:
    """Make a result without an interval; rounding may have lifted a probability just above 1."""
    up, down = min(float(reliability), 1.0), min(float(unreliability), 1.0)
    return Reliability(
        reliability=up, unreliability=down, lower=down, upper=down, method=method, routing=routing, **work
    )
