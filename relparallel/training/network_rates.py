"""How often network parts fail, and how often all copies of one are down at once."""

from __future__ import annotations

from relparallel._checks import require_int
from relparallel.published import facts
from relparallel.training._arguments import require_rate, require_time
from relparallel.units import DAY

_MONTH = 30 * DAY


def published_network_rates() -> dict[str, float]:
    """Failures of links and switches in Alibaba's clusters.

    Returns
    -------
    dict of str to float
        Per link between a card and its ToR ("cable"), and per ToR switch ("switch") [1/s]; a month has 30
        days.

    References
    ----------
    Qian et al., "Alibaba HPN", SIGCOMM 2024: 0.057 % of links and 0.051 % of ToR switches per month (rows
    HPN-001 and HPN-002 of the published facts, marked as not confirmed).

    Examples
    --------
    >>> {name: round(rate * 30 * 86400, 5) for name, rate in published_network_rates().items()}
    {'cable': 0.00057, 'switch': 0.00051}
    """
    rows = facts("training-reliability")
    named = {"cable": "HPN-001", "switch": "HPN-002"}
    return {name: float(rows[row].value_text) / _MONTH for name, row in named.items()}


def joint_loss_rate(groups: int, copies: int, rate: float, repair: float) -> float:
    """How often all copies of a part come to be down at once, in any of many groups.

    Parameters
    ----------
    groups : int
        Groups of copies, such as cards with two ports.
    copies : int
        Parts of a group; one that works is enough.
    rate : float
        Failures per part and second while it works.
    repair : float
        Mean time until a failed part works again [s], above 0.

    Returns
    -------
    float
        Losses per second.

    Notes
    -----
    groups copies U^copies/repair with U = rate repair/(1 + rate repair): every loss ends with the repair of
    any of the copies. Exact for independent parts; about groups 2 rate^2 repair for two copies. O(1).

    References
    ----------
    Barlow, Proschan, "Statistical theory of reliability", 1975, section 7.2: frequency of system failures.

    Examples
    --------
    >>> link = published_network_rates()["cable"]
    >>> round(30 * 86400 * joint_loss_rate(3000, 2, link, repair=86400.0), 7)
    6.5e-05
    """
    require_int(groups=groups, copies=copies, at_least=1, at_most=10**9)
    load = float(require_rate(rate=rate)) * float(require_time(repair=repair, positive=True))
    return float(groups * copies * (load / (1 + load)) ** copies / repair)
