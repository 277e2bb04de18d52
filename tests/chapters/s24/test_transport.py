"""Closed forms of links against packets that are followed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from chapters.s24.transport import (
    credit_rate,
    incast_goodput,
    loss_goodput,
    packet_efficiency,
    pfc_headroom,
)

LIGHT = 4.76e-9


@given(
    length=st.floats(1, 1000),
    mtu=st.floats(1500, 9216),
    late=st.floats(0, 4000),
    phase=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_headroom_holds_what_arrives_after_a_pause_and_no_less_would(length, mtu, late, phase):
    rate, flight = 12.5e9, LIGHT * length
    works = mtu / rate + flight + late / rate  # a packet in the way, the cable, the response

    def arriving(first):
        starts = first * mtu / rate + np.arange(10**4) * mtu / rate
        return (starts[starts <= works + 1e-15][-1] + mtu / rate + flight) * rate

    room = pfc_headroom(rate, length, mtu, late)
    assert arriving(phase) <= room * (1 + 1e-9)
    assert arriving(works * rate / mtu % 1) == pytest.approx(room, rel=1e-9)


@given(credits=st.integers(1, 40), length=st.floats(1, 3000), late=st.floats(0, 3e-6))
@settings(max_examples=40, deadline=None)
def test_a_sender_that_waits_for_credits_has_the_rate_of_the_closed_form(credits, length, late):
    rate, packet = 50e9, 4096.0
    start = np.zeros(30 * credits + 1)
    for i in range(1, start.size):
        back = (
            start[i - credits] + packet / rate + 2 * length * LIGHT + late if i >= credits else 0.0
        )
        start[i] = max(start[i - 1] + packet / rate, back)
    measured = 10 * credits * packet / (start[-1] - start[-1 - 10 * credits])
    assert credit_rate(credits * packet, rate, length, packet, late) == pytest.approx(
        measured, rel=1e-9
    )


@pytest.mark.parametrize("recovery", ["selective", "go_back_n"])
@pytest.mark.parametrize(("loss", "window"), [(0.001, 120), (0.02, 60), (0.2, 7)])
def test_packets_sent_one_by_one_lose_what_the_closed_form_says(recovery, loss, window):
    rng = np.random.default_rng(7)
    lost = rng.random(400_000) < loss
    sent = lost.size + (lost.sum() * (window - 1) if recovery == "go_back_n" else 0)
    assert (~lost).sum() / sent == pytest.approx(loss_goodput(loss, window, recovery), rel=0.03)


def test_incast_collapses_when_the_windows_no_longer_fit():
    goodput = incast_goodput(2**20, 1e9 / 8, 0.2, senders=np.arange(2, 40), window=8e3, buffer=64e3)
    assert (goodput[:7] == 1e9 / 8).all()
    assert (goodput[7:] < 0.05 * 1e9 / 8).all()
    block = 2**20 / goodput[-1]  # a block takes a timeout more than on an empty link
    assert block - 2**20 * 8 / 1e9 == pytest.approx(0.2)


def test_headers_are_counted_once_for_every_packet():
    for payload in (64.0, 1024.0, 4096.0):
        by_name = [
            packet_efficiency(payload, name) for name in ("infiniband", "tcp", "rocev2", "roce")
        ]
        assert by_name == sorted(by_name, reverse=True)
        added = [payload / share - payload for share in by_name]
        assert added == pytest.approx([26, 78, 82, 94])
    assert packet_efficiency([1024.0, 4096.0]).shape == (2,)
