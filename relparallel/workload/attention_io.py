"""What attention moves between memory and chip: with the matrix of scores written out, and in tiles."""

from __future__ import annotations

from relparallel._checks import require_int


def standard_attention_accesses(sequence: int, head: int) -> int:
    """Numbers that one head's forward pass reads or writes when scores are kept in memory.

    Parameters
    ----------
    sequence, head : int
        Tokens N and width d of the head.

    Returns
    -------
    int
        4 N d + 4 N^2: queries, keys, values and result once, scores four times. Dao et al., "FlashAttention",
        2022, algorithm 0 and theorem 2.

    Examples
    --------
    >>> standard_attention_accesses(1024, 64)
    4456448
    """
    N, d = require_int(sequence=sequence, head=head, at_least=1, at_most=10**9)
    return int(4 * N * d + 4 * N * N)


def flash_attention_accesses(sequence: int, head: int, sram: int) -> int:
    """Numbers that one head's forward pass reads or writes when it works on tiles that fit on the chip.

    Parameters
    ----------
    sequence, head, sram : int
        Tokens N, width d of the head, and numbers M that the chip holds, at least 4 d.

    Returns
    -------
    int
        2 N d + T (3 N d + 4 N) with T = ceil(N / ceil(M / 4 d)) tiles of keys, Theta(N^2 d^2 / M): each tile
        reads all queries, and reads and writes result and two statistics of each row. Dao et al.,
        "FlashAttention", 2022, algorithm 1 and theorem 2.

    Examples
    --------
    >>> flash_attention_accesses(1024, 64, 51200)
    1335296
    """
    N, d = require_int(sequence=sequence, head=head, at_least=1, at_most=10**9)
    M = require_int(sram=sram, at_least=1, at_most=10**15)
    if 4 * d > M:
        raise ValueError(f"sram must be at least 4 head = {4 * d}, got {M}")
    columns = -(-M // (4 * d))
    tiles = -(-N // columns)
    return int(2 * N * d + tiles * (3 * N * d + 4 * N))


def break_even_sram(head: int) -> int:
    """Numbers that a chip must hold before tiles save anything on long sequences.

    Parameters
    ----------
    head : int
        Width d of the head.

    Returns
    -------
    int
        d (3 d + 4): where N^2 (3 d + 4) 4 d / M falls to 4 N^2.

    Examples
    --------
    >>> break_even_sram(64)
    12544
    """
    d = require_int(head=head, at_least=1, at_most=10**9)
    return int(d * (3 * d + 4))
