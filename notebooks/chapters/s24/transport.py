"""What lossless and lossy links cost: headroom, credits, headers, losses, timeouts.

Sizes are bytes, rates bytes/s, lengths metres.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from relparallel._checks import bare, require_choice, require_probability

_FIBRE: Final = 4.76e-9  # s per metre of cable
_HEADERS: Final = {
    # Preamble, Ethernet, checksum and gap; then IPv4 and UDP, or the global route header; then
    # transport.
    "rocev2": 8 + 14 + 4 + 12 + 20 + 8 + 12 + 4,
    "roce": 8 + 14 + 4 + 12 + 40 + 12 + 4,
    "tcp": 8 + 14 + 4 + 12 + 20 + 20,
    "infiniband": 8 + 12 + 4 + 2,
}


def pfc_headroom(
    rate: ArrayLike, length: ArrayLike, mtu: float = 9216.0, response: float = 3840.0
) -> Any:
    """Bytes that a buffer must still take after it has asked for a pause, so that nothing is lost.

    2 C L 4.76 ns/m + 2 MTU + response: a packet that has just begun delays the pause, one more may
    begin before it works, the cable is full both ways, and ``response`` bytes are sent while the
    pause is processed. IEEE 802.1Qbb, annex O.

    >>> round(pfc_headroom(100e9 / 8, 100.0))
    34172
    """
    return bare(2 * np.asarray(rate) * np.asarray(length) * _FIBRE + 2 * mtu + response)


def credit_rate(
    buffer: ArrayLike, rate: float, length: float, packet: float = 4096.0, response: float = 0.0
) -> Any:
    """Throughput [bytes/s] of a link whose sender needs a credit for every packet.

    min(C, k P/t) with k = floor(buffer/P) credits and t = P/C + 2 L 4.76 ns/m + response: the
    ``buffer`` is the receiver's, for one lane, and ``response`` [s] passes from the last byte of a
    packet to the return of its credit. Full rate needs ceil(C t/P) packets of buffer. InfiniBand
    Architecture Specification 1, section 7.9.

    >>> (credit_rate([4096, 131072], rate=50e9, length=500.0) / 50e9).round(3).tolist()
    [0.017, 0.541]
    """
    credits = np.floor(np.asarray(buffer) / packet)
    return bare(
        np.minimum(rate, credits * packet / (packet / rate + 2 * length * _FIBRE + response))
    )


def packet_efficiency(payload: ArrayLike, transport: str = "rocev2") -> Any:
    """Share of a link's bytes that is payload.

    ``transport`` "rocev2" adds 82 bytes to a packet, preamble and gap included; "roce", with a
    global route header in place of IP and UDP, 94; "infiniband" within a subnet 26; "tcp" 78.

    >>> round(packet_efficiency(4096.0), 4), round(packet_efficiency(256.0), 4)
    (0.9804, 0.7574)
    """
    size = np.asarray(payload)
    return bare(size / (size + _HEADERS[transport]))


def loss_goodput(loss: ArrayLike, window: ArrayLike, recovery: str = "selective") -> Any:
    """Share of packets that need not be sent again, at a full window of W packets in flight.

    Packets are lost independently with probability p. "selective" IRN sends again what was lost, 1
    - p; RoCE goes back ("go_back_n"), and all W packets behind a loss are sent again, (1 - p)/(1 -
    p + p W). Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018.

    >>> round(loss_goodput(0.01, 120, "go_back_n"), 3), loss_goodput(0.01, 120)
    (0.452, 0.99)
    """
    p, size = np.asarray(require_probability(loss=loss)), np.asarray(window)
    kept = 1 - p
    if require_choice(("selective", "go_back_n"), recovery=recovery) == "selective":
        return bare(kept + 0 * size)
    return bare(kept / (kept + p * size))


def incast_goodput(
    block: float,
    rate: float,
    timeout: float,
    senders: ArrayLike = 2,
    window: float = 1.0,
    buffer: float = 0.0,
) -> Any:
    """Goodput [bytes/s] of a receiver that waits for parts of a block from many senders at once.

    C while N windows fit the ``buffer`` of the switch [bytes], else S/(S/C + RTO): a sender waits a
    timeout RTO [s] after it lost its last packets. Nagle, Serenyi and Matthews, SC 2004;
    Phanishayee et al., FAST 2008.

    >>> round(incast_goodput(2**20, 1e9 / 8, timeout=0.2) * 8 / 1e6, 4)
    40.2546
    """
    collapsed = np.asarray(senders) * window > buffer
    return bare(np.where(collapsed, block / (block / rate + timeout), rate))
