"""What a layer mixes tokens with: latent attention, other heads, windows, compressed keys, states.

A query of a sequence of s tokens looks at all of them, or at a window of w. Counts of operations
take s or w, as is usual for full attention; a causal mask leaves half of s, or w - w^2 / 2s.
"""

from relparallel._checks import each, record, require_int, whole


def attended(sequence: int, window: int | None = None, causal: bool = False) -> float:
    """Tokens that a query looks at, of so many; the mean of what a causal mask leaves of them."""
    seen = sequence if window is None else min(window, sequence)
    return seen * (1 - seen / (2 * sequence)) if causal else seen


@record
class LatentAttention:
    """Sizes of multi-head latent attention: keys and values made from one short vector per token.

    DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 and appendix C.

    Parameters
    ----------
    q_rank, kv_rank : int
        Widths of the vectors that queries, and keys and values, are made from; without the first,
        queries come from the hidden state.
    nope, rope, value : int
        Entries of a head's key without and with a position, which all heads share, and of its
        value; the sum is even.
    index_heads, index_size : int
        Heads that score all tokens, and their width, where queries then look at the best ones only;
        needs ``q_rank``. DeepSeek-AI, "DeepSeek-V3.2", 2025, section 2.1.
    """

    q_rank: int | None = whole(default=None, at_least=1)
    kv_rank: int = whole(at_least=1)
    nope: int = whole(at_least=1)
    rope: int = whole(at_least=0)
    value: int = whole(at_least=1)
    index_heads: int = whole(default=0, at_least=0)
    index_size: int = whole(default=0, at_least=0)

    def __post_init__(self) -> None:
        if self.index_heads and self.q_rank is None:
            raise ValueError(f"index_heads must be 0 without q_rank, got {self.index_heads}")
        if (self.key + self.value) % 2:
            raise ValueError(f"value must make nope + rope + value even, got {self.value}")

    @property
    def key(self) -> int:
        """Width of a head's query and key."""
        return self.nope + self.rope

    @property
    def head_width(self) -> int:
        """Mean width of a head's keys and values: what the attention core costs is twice that."""
        return (self.key + self.value) // 2

    @property
    def index(self) -> int:
        """Width of all heads that score tokens."""
        return self.index_heads * self.index_size

    def weights(self, hidden: int, heads: int) -> int:
        """Weights of the products down to the two ranks and up again, and of the output."""
        q_weights = hidden * heads * self.key
        if self.q_rank is not None:
            q_weights = self.q_rank * (hidden + heads * self.key)
        if self.q_rank is not None and self.index_heads:
            q_weights += self.q_rank * self.index + hidden * (self.index_size + self.index_heads)
        kv_weights = hidden * (self.kv_rank + self.rope) + self.kv_rank * heads * (
            self.nope + self.value
        )
        return q_weights + kv_weights + heads * self.value * hidden


@record
class Mixer:
    """What some layers have in the place of the model's own attention: other heads, or a state.

    Sliding windows: Child et al., "Sparse Transformers", 2019. States: Dao and Gu, "Transformers
    are SSMs", 2024 (Mamba-2); Yang et al., "Gated Delta Networks", 2025. Compressed keys:
    DeepSeek-AI, "DeepSeek-V4", 2026.

    Parameters
    ----------
    layers : int
        How many layers have it.
    products : tuple of (int, int)
        Rows and columns of its matrices of weights; the last one leads back to the hidden size.
    vectors : int
        Parameters besides: convolutions, norms, biases.
    heads, head_size, window : int
        Its attention: heads, 0 without; mean width of their keys and values; tokens they look at,
        all of them where omitted.
    stride, top, index : int
        Keys made of so many tokens each, 0 for none, that a query looks at besides; the best
        ``top`` of them, all where omitted; and the width of what scores them.
    operations : int
        FLOPs of a token in a forward pass besides all that: with a state, whose size does not grow.

    Examples
    --------
    >>> local = Mixer(layers=12, products=((2880, 5120), (4096, 2880)), heads=64, head_size=64, window=128)
    >>> local.weights, local.core(4096), local.core(64)
    (26542080, 2097152, 1048576)
    """

    layers: int = whole(at_least=1)
    products: tuple[tuple[int, int], ...] = each(tuple)
    vectors: int = whole(default=0, at_least=0)
    heads: int = whole(default=0, at_least=0)
    head_size: int = whole(default=0, at_least=0)
    window: int | None = whole(default=None, at_least=1)
    stride: int = whole(default=0, at_least=0)
    top: int | None = whole(default=None, at_least=1)
    index: int = whole(default=0, at_least=0)
    operations: int = whole(default=0, at_least=0)

    def __post_init__(self) -> None:
        for rows, columns in self.products:
            require_int(products=rows, at_least=1)
            require_int(products=columns, at_least=1)

    @property
    def weights(self) -> int:
        """Weights of its matrix products."""
        return sum(rows * columns for rows, columns in self.products)

    @property
    def kept(self) -> int:
        """Numbers of a token for the backward pass: results of the products, input of the last."""
        return sum(columns for _, columns in self.products[:-1]) + self.products[-1][0]

    def looks_at(self, sequence: int, causal: bool = False) -> float:
        """Keys that a query looks at."""
        seen = attended(sequence, self.window, causal)
        if not self.stride:
            return seen
        best = None if self.top is None else self.top * self.stride
        return seen + attended(sequence, best, causal) // self.stride

    def core(self, sequence: int, causal: bool = False) -> float:
        """FLOPs of a token in a forward pass that no weight takes part in."""
        scored = (
            2 * self.index * attended(sequence, None, causal) // self.stride if self.stride else 0
        )
        seen = self.looks_at(sequence, causal) if self.heads else 0
        return 4 * self.heads * self.head_size * seen + scored + self.operations
