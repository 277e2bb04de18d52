"""What a layer moves between memory and chip: encoder layer, fused or not; attention, tiled or not.

``data/encoder_layer.csv`` lists the operators of a forward and backward pass with the tensors that
each reads and writes. A tensor's letters are its dimensions: b sequences; j, k tokens, as queries
and as keys; h heads of width p; i, u hidden and feed-forward width; c the 3 of queries, keys and
values.
"""

import math
import re
from collections.abc import Collection
from typing import Final

import pandas as pd

from relparallel.published import shipped_rows

_LETTERS: Final = {
    "b": "batch",
    "j": "sequence",
    "k": "sequence",
    "h": "heads",
    "i": "hidden",
    "u": "ffn",
}

ENCODER_FUSION: Final = ("softmax", "softmax backward")
"""Groups that a framework's softmax fuses already: scaling, softmax and dropout of the scores."""


def encoder_layer(
    batch: int = 8, sequence: int = 512, hidden: int = 1024, heads: int = 16, ffn: int = 4096
) -> pd.DataFrame:
    """Operators of one encoder layer in training, BERT-large by default, and the tensors of each.

    Columns ``operator``, ``pass``, ``class``, ``flops`` (two for every combination of a
    contraction's letters), ``reads`` and ``writes`` (entries by tensor) and ``group``, the fused
    kernel that it belongs to, or none. Ivanov et al., "Data Movement Is All You Need", MLSys 2021,
    section 3 and appendix.

    >>> layer = encoder_layer()
    >>> int(layer.query("`class` == 'contraction' and `pass` == 'forward'")["flops"].sum())
    111669149696
    """
    if hidden % heads:
        raise ValueError(f"heads must divide hidden = {hidden}, got {heads}")
    given = {"batch": batch, "sequence": sequence, "hidden": hidden, "heads": heads, "ffn": ffn}
    sides = {letter: given[name] for letter, name in _LETTERS.items()} | {
        "p": hidden // heads,
        "c": 3,
    }
    return pd.DataFrame([_operator(row, sides) for row in shipped_rows("encoder_layer.csv")])


def _operator(row: dict[str, str], sides: dict[str, int]) -> dict[str, object]:
    reads, writes = _tensors(row["reads"], sides), _tensors(row["writes"], sides)
    factor, _, letters = row["flops"].partition(" ")
    if row["class"] == "contraction":
        letters = "".join(
            sorted(set("".join(re.findall(r"\[(\w+)\]", row["reads"] + row["writes"]))))
        )
        factor = "2"
    flops = int(factor) * math.prod(sides[letter] for letter in letters)
    same = {name: row[name] for name in ("operator", "pass", "class", "group")}
    return same | {"flops": flops, "reads": reads, "writes": writes}


def _tensors(text: str, sides: dict[str, int]) -> dict[str, int]:
    """Entries of every tensor in ``name[letters] name[letters]``."""
    found = re.findall(r"(\w+)\[(\w+)\]", text)
    return {name: math.prod(sides[letter] for letter in letters) for name, letters in found}


def words_moved(layer: pd.DataFrame, fused: Collection[str] = ()) -> pd.Series:
    """Numbers read and written by the kernels of a layer, by class of the kernel's last operator.

    The ``fused`` groups become one kernel each; the other operators are kernels of their own. A
    kernel reads every tensor that it does not make once, and writes every tensor that another
    kernel reads, or nobody.

    >>> layer = encoder_layer()
    >>> bool(words_moved(layer, ["relu"]).sum() < words_moved(layer).sum())
    True
    """
    known = set(layer["group"]) - {""}
    if not set(fused) <= known:
        raise ValueError(f"fused must name groups of {sorted(known)}, got {fused!r}")
    kernel = layer["group"].where(layer["group"].isin(list(fused)), layer.index.astype(str))
    readers: dict[str, set[str]] = {}
    for name, reads in zip(kernel, layer["reads"], strict=True):
        for tensor in reads:
            readers.setdefault(tensor, set()).add(name)
    moved = {name: _kernel_words(str(name), part, readers) for name, part in layer.groupby(kernel)}
    last = layer.groupby(kernel)["class"].last()
    return pd.Series(moved, name="words").groupby(last).sum()


def _kernel_words(kernel: str, part: pd.DataFrame, readers: dict[str, set[str]]) -> int:
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    for read, written in zip(part["reads"], part["writes"], strict=True):
        reads |= read
        writes |= written
    outside = {name: size for name, size in writes.items() if readers.get(name, set()) != {kernel}}
    return sum(outside.values()) + sum(size for name, size in reads.items() if name not in writes)


def standard_attention_accesses(sequence: int, head: int) -> int:
    """Numbers that one head's forward pass reads or writes if scores are in memory: 4 N d + 4 N^2.

    Queries, keys, values and result once, scores four times, of N tokens and a head of width d. Dao
    et al., "FlashAttention", 2022, algorithm 0 and theorem 2.

    >>> standard_attention_accesses(1024, 64)
    4456448
    """
    return 4 * sequence * head + 4 * sequence**2


def flash_attention_accesses(sequence: int, head: int, sram: int) -> int:
    """Numbers one head's forward pass reads or writes on tiles that fit a chip of ``sram`` numbers.

    2 N d + T (3 N d + 4 N) with T = ceil(N / ceil(M / 4 d)) tiles of keys, Theta(N^2 d^2 / M): each
    tile reads all queries, and reads and writes result and two statistics of each row. Dao et al.,
    "FlashAttention", 2022, algorithm 1 and theorem 2.

    >>> flash_attention_accesses(1024, 64, 51200)
    1335296
    """
    N, d, M = sequence, head, sram
    if 4 * d > M:
        raise ValueError(f"sram must be at least 4 head = {4 * d}, got {M}")
    columns = -(-M // (4 * d))
    tiles = -(-N // columns)
    return 2 * N * d + tiles * (3 * N * d + 4 * N)


def break_even_sram(head: int) -> int:
    """Numbers that a chip must hold before tiles save anything on long sequences.

    d (3 d + 4) for a head of width d: where N^2 (3 d + 4) 4 d / M falls to 4 N^2.

    >>> break_even_sram(64)
    12544
    """
    return head * (3 * head + 4)
