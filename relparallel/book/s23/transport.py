"""What lossless and lossy links cost: headroom, credits, headers, losses, timeouts.

Sizes are bytes, rates bytes/s, lengths metres.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import bare, require_choice, require_number, require_probability, require_real

_FIBRE: Final = 4.76e-9  # s per metre of cable
_HEADERS: Final = {
    # Preamble, Ethernet, checksum and gap; then IPv4 and UDP, or the global route header; then transport.
    "rocev2": 8 + 14 + 4 + 12 + 20 + 8 + 12 + 4, "roce": 8 + 14 + 4 + 12 + 40 + 12 + 4,
    "tcp": 8 + 14 + 4 + 12 + 20 + 20, "infiniband": 8 + 12 + 4 + 2,
}  # fmt: skip


def pfc_headroom(rate: ArrayLike, length: ArrayLike, mtu: float = 9216.0, response: float = 3840.0) -> Any:
    """Return what a buffer must still take after it has asked for a pause, so that nothing is lost.

    Parameters
    ----------
    rate, length : array_like
        Of the link [bytes/s] and of the cable [m].
    mtu, response : float
        Largest packet of both directions, and what is sent while a pause is processed [bytes].

    Returns
    -------
    float or numpy.ndarray
        Bytes: 2 C L 4.76 ns/m + 2 MTU + response. A packet that has just begun delays the pause, one more
        may begin before it works, and the cable is full both ways. IEEE 802.1Qbb, annex O.

    Examples
    --------
    >>> round(pfc_headroom(100e9 / 8, 100.0))
    34172
    """
    speed, cable = require_real(rate=rate, above=0), require_real(length=length, at_least=0)
    packet, late = require_number(mtu=mtu, above=0), require_number(response=response, at_least=0)
    return bare(2 * np.asarray(speed) * np.asarray(cable) * _FIBRE + 2 * packet + late)


def credit_rate(
    buffer: ArrayLike, rate: float, length: float, packet: float = 4096.0, response: float = 0.0
) -> Any:
    """Return the throughput of a link whose sender needs a credit for every packet.

    Parameters
    ----------
    buffer, packet : array_like, float
        Of the receiver, for one lane, and of one packet [bytes].
    rate, length : float
        Of the link [bytes/s] and of the cable [m].
    response : float
        Seconds from the last byte of a packet to the return of its credit.

    Returns
    -------
    float or numpy.ndarray
        Bytes/s: min(C, k P/t) with k = floor(buffer/P) credits and t = P/C + 2 L 4.76 ns/m + response. Full
        rate needs ceil(C t/P) packets of buffer. InfiniBand Architecture Specification 1, section 7.9.

    Examples
    --------
    >>> (credit_rate([4096, 131072], rate=50e9, length=500.0) / 50e9).round(3).tolist()
    [0.017, 0.541]
    """
    speed, size = require_number(rate=rate, packet=packet, above=0)
    cable, late = require_number(length=length, response=response, at_least=0)
    credits = np.floor(np.asarray(require_real(buffer=buffer, at_least=0)) / size)
    return bare(np.minimum(speed, credits * size / (size / speed + 2 * cable * _FIBRE + late)))


def packet_efficiency(payload: ArrayLike, transport: str = "rocev2") -> Any:
    """Return the share of a link's bytes that is payload.

    Parameters
    ----------
    payload : array_like
        Of every packet [bytes].
    transport : {"rocev2", "roce", "infiniband", "tcp"}
        RoCEv2 adds 82 bytes to a packet, preamble and gap included; RoCE, with a global route header in
        place of IP and UDP, 94; InfiniBand within a subnet 26; TCP 78.

    Returns
    -------
    float or numpy.ndarray
        payload/(payload + headers).

    Examples
    --------
    >>> round(packet_efficiency(4096.0), 4), round(packet_efficiency(256.0), 4)
    (0.9804, 0.7574)
    """
    size = np.asarray(require_real(payload=payload, above=0))
    return bare(size / (size + _HEADERS[require_choice(tuple(_HEADERS), transport=transport)]))


def loss_goodput(loss: ArrayLike, window: ArrayLike, recovery: str = "selective") -> Any:
    """Return the share of packets that need not be sent again, at a full window.

    Parameters
    ----------
    loss, window : array_like
        Probability that a packet is lost, independently; W packets in flight, at least 1: the bandwidth-delay
        product.
    recovery : {"selective", "go_back_n"}
        IRN sends again what was lost; RoCE goes back, and all W packets behind a loss are sent again.

    Returns
    -------
    float or numpy.ndarray
        1 - p, or (1 - p)/(1 - p + p W). Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018.

    Examples
    --------
    >>> round(loss_goodput(0.01, 120, "go_back_n"), 3), loss_goodput(0.01, 120)
    (0.452, 0.99)
    """
    p, size = np.asarray(require_probability(loss=loss)), np.asarray(require_real(window=window, at_least=1))
    kept = 1 - p
    if require_choice(("selective", "go_back_n"), recovery=recovery) == "selective":
        return bare(kept + 0 * size)
    return bare(kept / (kept + p * size))


def incast_goodput(
    block: float, rate: float, timeout: float, senders: ArrayLike = 2, window: float = 1.0,
    buffer: float = 0.0,
) -> Any:  # fmt: skip
    """Return the goodput of a receiver that waits for parts of a block from many senders at once.

    Parameters
    ----------
    block, rate, timeout : float
        S [bytes], C [bytes/s], and the time RTO that a sender waits after it lost its last packets [s].
    senders, window, buffer : array_like, float, float
        N, what each sends at first, and what the switch can hold [bytes].

    Returns
    -------
    float or numpy.ndarray
        Bytes/s: C while N windows fit, else S/(S/C + RTO). Nagle, Serenyi and Matthews, SC 2004; Phanishayee
        et al., FAST 2008.

    Examples
    --------
    >>> round(incast_goodput(2**20, 1e9 / 8, timeout=0.2) * 8 / 1e6, 4)
    40.2546
    """
    size, speed, first = require_number(block=block, rate=rate, window=window, above=0)
    wait, room = require_number(timeout=timeout, buffer=buffer, at_least=0)
    collapsed = np.asarray(require_real(senders=senders, at_least=1)) * first > room
    return bare(np.where(collapsed, size / (size / speed + wait), speed))
