"""A number together with how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from relparallel._checks import require_flag, require_instance, require_real

__all__ = ["Estimate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A metric with a bracket: ``float(estimate)`` is the value.

    Parameters
    ----------
    value, lower, upper : float
        The value and numbers that bracket it; all three are equal where the value is exact. Infinity is
        allowed.
    method : str
        How the value was found.
    exact : bool
        Whether the value is exact.

    Raises
    ------
    TypeError, ValueError
        If lower <= value <= upper does not hold, or an exact value has a wider bracket.

    Examples
    --------
    >>> float(Estimate(value=3, lower=3, upper=3, method="maximum flow", exact=True))
    3.0
    """

    value: float
    lower: float
    upper: float
    method: str
    exact: bool

    def __post_init__(self) -> None:
        for name in ("value", "lower", "upper"):
            number = getattr(self, name)
            require_real(**{name: number}, infinite=True)
            if not isinstance(number, int | float):
                raise TypeError(f"{name} must be one number, got {number!r}")
        require_instance(str, method=self.method)
        require_flag(exact=self.exact)
        if not self.lower <= self.value <= self.upper:
            raise ValueError(f"value must lie in [{self.lower}, {self.upper}], got {self.value}")
        if self.exact and self.lower != self.upper:
            raise ValueError(f"exact must be False where lower {self.lower} < upper {self.upper}, got True")

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        if self.exact:
            return f"Estimate({self.value:g}, exact, {self.method})"
        digits = 6 if math.isfinite(self.value) else 1
        return f"Estimate({self.value:.{digits}g} in [{self.lower:.6g}, {self.upper:.6g}], {self.method})"
