"""Counting a decoder-only transformer: parameters and floating-point operations; published models by name.

L layers of hidden size h have a heads and a feed-forward block of width f; V words, sequences of s tokens, B
sequences in one iteration.
"""

from functools import cache

from relparallel._checks import flag, instance, record, require_choice, require_int, whole
from relparallel.published import shipped_rows

_LATENT = ("q_rank", "kv_rank", "nope", "rope", "value")


@record
class LatentAttention:
    """Sizes of multi-head latent attention: keys and values are made from one short vector per token.

    DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 and appendix C.

    Parameters
    ----------
    q_rank, kv_rank : int
        Widths of the vectors that queries, and keys and values, are made from; without the first, queries
        come from the hidden state.
    nope, rope, value : int
        Entries of a head's key without and with a position, which all heads share, and of its value; the sum
        is even.
    """

    q_rank: int | None = whole(default=None, at_least=1)
    kv_rank: int = whole(at_least=1)
    nope: int = whole(at_least=1)
    rope: int = whole(at_least=1)
    value: int = whole(at_least=1)

    def __post_init__(self) -> None:
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

    def weights(self, hidden: int, heads: int) -> int:
        """Weights of the products down to the two ranks and up again, and of the output."""
        q_weights = hidden * heads * self.key
        if self.q_rank is not None:
            q_weights = self.q_rank * (hidden + heads * self.key)
        kv_weights = hidden * (self.kv_rank + self.rope) + self.kv_rank * heads * (self.nope + self.value)
        return q_weights + kv_weights + heads * self.value * hidden


@record
class Transformer:
    """A decoder that predicts the next token: GPT by default, Llama or a mixture of experts by its options.

    Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021, eq. 2 and 3.
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, appendix A.

    Parameters
    ----------
    layers, hidden, heads, vocabulary, sequence : int
        L, h, a, V and s, each at least 1.
    ffn : int, optional
        Width f of a dense feed-forward block; 4 h where omitted.
    kv_heads : int, optional
        Heads of keys and values, a divisor of ``heads`` (grouped-query attention); ``heads`` where omitted.
    head_size : int, optional
        Width of a head; h / a where omitted, which ``heads`` must then divide.
    latent : LatentAttention, optional
        Multi-head latent attention, with its own widths of heads: leave out ``kv_heads`` and ``head_size``.
    qk_norm, gated : bool
        Whether queries and keys are normalised, one scale for each entry of a head; whether the feed-forward
        block has a third matrix (SwiGLU).
    experts, active_experts, shared_experts : int
        Feed-forward blocks of a mixture-of-experts layer, how many of them a token passes, and how many more
        every token passes; 1, 1 and 0 is a dense model.
    expert_ffn, dense_layers : int
        Width of one expert, f where omitted; layers without a mixture among the L.
    tied, learned_positions, biases : bool
        Whether the output layer is the embedding; whether positions are s h parameters, or cost none (rotary,
        ALiBi); whether matrices have biases, and norms a shift besides their scale.

    Examples
    --------
    >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=1024)
    >>> gpt2.parameters
    124439808
    """

    layers: int = whole(at_least=1)
    hidden: int = whole(at_least=1)
    heads: int = whole(at_least=1)
    vocabulary: int = whole(at_least=1)
    sequence: int = whole(at_least=1)
    ffn: int | None = whole(default=None, at_least=1)
    kv_heads: int | None = whole(default=None, at_least=1)
    head_size: int | None = whole(default=None, at_least=1)
    latent: LatentAttention | None = instance(LatentAttention, default=None)
    qk_norm: bool = flag(default=False)
    gated: bool = flag(default=False)
    experts: int = whole(default=1, at_least=1)
    active_experts: int = whole(default=1, at_least=1)
    expert_ffn: int | None = whole(default=None, at_least=1)
    shared_experts: int = whole(default=0, at_least=0)
    dense_layers: int = whole(default=0, at_least=0)
    tied: bool = flag(default=True)
    learned_positions: bool = flag(default=True)
    biases: bool = flag(default=True)

    def __post_init__(self) -> None:
        require_int(active_experts=self.active_experts, at_least=1, at_most=self.experts)
        require_int(dense_layers=self.dense_layers, at_least=0, at_most=self.layers)
        if self.latent and (self.kv_heads or self.head_size or self.qk_norm or self.biases):
            raise ValueError(
                "latent must be None with kv_heads, head_size, qk_norm or biases, "
                f"got {self.latent} with {self.kv_heads}, {self.head_size}, {self.qk_norm}, {self.biases}"
            )
        if not self.latent and self.head_size is None and self.hidden % self.heads:
            raise ValueError(f"heads must divide hidden = {self.hidden}, got {self.heads}")
        if self.heads % self.key_value_heads:
            raise ValueError(f"kv_heads must divide heads = {self.heads}, got {self.kv_heads}")

    @property
    def head_width(self) -> int:
        """Width of a head; for latent attention the mean over its keys and values."""
        if self.latent:
            return self.latent.head_width
        return self.hidden // self.heads if self.head_size is None else self.head_size

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def ffn_hidden(self) -> int:
        """Width f of a dense feed-forward block."""
        return 4 * self.hidden if self.ffn is None else self.ffn

    @property
    def expert_hidden(self) -> int:
        """Width of one expert."""
        return self.ffn_hidden if self.expert_ffn is None else self.expert_ffn

    @property
    def mixture_layers(self) -> int:
        """Layers whose feed-forward block is a mixture of experts."""
        return 0 if self.experts == 1 else self.layers - self.dense_layers

    @property
    def attention_weights(self) -> int:
        """Weights of the matrix products around one attention, 4 h^2 for as many heads of keys and values."""
        if self.latent:
            return self.latent.weights(self.hidden, self.heads)
        return self.hidden * self.head_width * 2 * (self.heads + self.key_value_heads)

    @property
    def ffn_weights(self) -> int:
        """Weights of one dense feed-forward block, 2 h f, or 3 h f if gated."""
        return (2 + self.gated) * self.hidden * self.ffn_hidden

    @property
    def expert_weights(self) -> int:
        """Weights of one expert."""
        return (2 + self.gated) * self.hidden * self.expert_hidden

    @property
    def layer_weights(self) -> int:
        """Weights in the matrix products of all layers, every expert counted; 12 L h^2 for a GPT."""
        dense = self.layers - self.mixture_layers
        mixture = (self.experts + self.shared_experts) * self.expert_weights + self.hidden * self.experts
        attention = self.layers * self.attention_weights
        return attention + dense * self.ffn_weights + self.mixture_layers * mixture

    @property
    def active_weights(self) -> int:
        """Weights in the matrix products of all layers that one token passes."""
        idle = (self.experts - self.active_experts) * self.expert_weights
        return self.layer_weights - self.mixture_layers * idle

    @property
    def parameters(self) -> int:
        """All parameters, exactly.

        For a GPT: L (4 h^2 + 2 h f + 9 h + f) + (V + s) h + 2 h. For f = 4 h this is eq. 2 of Narayanan et
        al. 2021, 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), plus the last LayerNorm (2 h), which the
        equation leaves out.
        """
        return self.layer_weights + self._biases + self._norms + self._embeddings

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes."""
        return self.parameters - self.layer_weights + self.active_weights

    @property
    def _embeddings(self) -> int:
        tables = 1 if self.tied else 2
        return (tables * self.vocabulary + self.learned_positions * self.sequence) * self.hidden

    @property
    def _norms(self) -> int:
        """Scales and shifts of all norms."""
        inner = 2 * self.head_width if self.qk_norm else 0
        if self.latent:
            inner = (self.latent.q_rank or 0) + self.latent.kv_rank
        return (2 * self.layers + 1) * (1 + self.biases) * self.hidden + self.layers * inner

    @property
    def _biases(self) -> int:
        if not self.biases:
            return 0
        attention = (self.heads + 2 * self.key_value_heads) * self.head_width + self.hidden
        dense = (1 + self.gated) * self.ffn_hidden + self.hidden
        expert = (1 + self.gated) * self.expert_hidden + self.hidden
        mixture = (self.experts + self.shared_experts) * expert
        mixed = self.mixture_layers
        return self.layers * attention + (self.layers - mixed) * dense + mixed * mixture

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs that one token of training costs, forward and backward, without recomputation."""
        return self.flops_per_iteration(1) / self.sequence

    def flops_per_iteration(self, batch: int, recompute: str = "none") -> float:
        """Floating-point operations of one training iteration on B = ``batch`` sequences.

        ``recompute`` "none" counts the useful operations only (model FLOPs), "selective" and "full" those
        that the hardware also spends on computing the attention core or every layer again. A forward pass
        costs F = B s (2 W + 4 L s a d + 2 h V), W being the weights that a token passes and d the width of a
        head, and a backward pass 2 F. For f = 4 h this gives

        - none: 72 B s L h^2 (1 + s/(6 h) + V/(12 L h)) (Korthikanti et al. 2022, appendix A);
        - full: 96 B s L h^2 (1 + s/(6 h) + V/(16 L h)) (Narayanan et al. 2021, eq. 3);
        - selective: 72 B s L h^2 (1 + s/(3 h) + V/(12 L h)), as Korthikanti et al. print it. It charges
          12 B L s^2 h for the attention core; a forward pass of its two products alone would be 4 B L s^2 h.
        """
        require_int(batch=batch, at_least=1)
        require_choice(("none", "selective", "full"), recompute=recompute)
        attention = 4 * self.layers * self.sequence * self.heads * self.head_width
        layers = 2 * self.active_weights + attention
        again = {"none": 0, "selective": 3 * attention, "full": layers}[recompute]
        forward = layers + 2 * self.hidden * self.vocabulary
        return float(batch * self.sequence * (3 * forward + again))


@cache
def _rows() -> dict[str, dict[str, int | bool]]:
    """Shipped sizes by model; what a row leaves blank is the default."""
    return {
        row.pop("name"): {key: _size(text) for key, text in row.items() if text and key != "source"}
        for row in shipped_rows("models.csv")
    }


def _size(text: str) -> int | bool:
    return text == "True" if text in ("True", "False") else int(text)


def transformers() -> tuple[str, ...]:
    """Names that `transformer` knows.

    Returns
    -------
    tuple of str
        By family, smallest first.

    Examples
    --------
    >>> len(transformers()), transformers()[:2]
    (44, ('gpt2-117m', 'gpt2-345m'))
    """
    return tuple(_rows())


def transformer(name: str) -> Transformer:
    """Published model of that name.

    ``data/models.csv`` names the source of every row.

    Parameters
    ----------
    name : str
        One of `transformers`.

    Returns
    -------
    Transformer
        With the sizes and the sequence length it was published with.

    Examples
    --------
    >>> round(transformer("gpt3-175b").parameters / 1e9, 1)
    174.6
    """
    sizes = dict(_rows()[require_choice(transformers(), name=name)])
    latent = {key: sizes.pop(key) for key in _LATENT if key in sizes}
    return Transformer(**sizes, latent=LatentAttention(**latent) if latent else None)  # type: ignore[arg-type]
