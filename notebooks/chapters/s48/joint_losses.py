"""How often all copies of a part are down together."""


def joint_loss_rate(groups: int, copies: int, rate: float, repair: float) -> float:
    """How often a second all copies of a part come to be down at once, in any of many groups.

    Such as cards with two ports, of which one that works is enough. A part fails ``rate`` times a
    second while it works and works again after ``repair`` seconds: groups copies U^copies/repair
    with U = rate repair/(1 + rate repair), exact for independent parts, for every loss ends with
    the repair of any of the copies. Barlow, Proschan, "Statistical theory of reliability", 1975,
    section 7.2: frequency of failures.

    >>> from relparallel.training import published_network_rates
    >>> link = published_network_rates()["cable"]
    >>> round(30 * 86400 * joint_loss_rate(3000, 2, link, repair=86400.0), 7)
    6.5e-05
    """
    load = rate * repair
    return float(groups * copies * (load / (1 + load)) ** copies / repair)
