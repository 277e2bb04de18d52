"""How often all copies of a part are down together."""

from relparallel._checks import require_int
from relparallel.training._arguments import require_rate, require_time


def joint_loss_rate(groups: int, copies: int, rate: float, repair: float) -> float:
    """How often all copies of a part come to be down at once, in any of many groups.

    Parameters
    ----------
    groups, copies : int
        Groups, such as cards with two ports, and the parts of a group; one that works is enough.
    rate, repair : float
        Failures per part and second while it works; mean time until it works again [s], above 0.

    Returns
    -------
    float
        Losses per second: groups copies U^copies/repair with U = rate repair/(1 + rate repair),
        exact for independent parts, for every loss ends with the repair of any of the copies.

    References
    ----------
    Barlow, Proschan, "Statistical theory of reliability", 1975, section 7.2: frequency of system
    failures.

    Examples
    --------
    >>> from relparallel.training import published_network_rates
    >>> link = published_network_rates()["cable"]
    >>> round(30 * 86400 * joint_loss_rate(3000, 2, link, repair=86400.0), 7)
    6.5e-05
    """
    require_int(groups=groups, copies=copies, at_least=1, at_most=10**9)
    load = float(require_rate(rate=rate)) * float(require_time(repair=repair, positive=True))
    return float(groups * copies * (load / (1 + load)) ** copies / repair)
