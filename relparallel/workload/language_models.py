"""Parameters and floating-point operations of a decoder-only transformer; published models by name.

L layers of hidden size h have a heads and a feed-forward block of width f; V words, sequences of s
tokens, B sequences in one iteration.
"""

import json
from functools import cache
from typing import Any

from relparallel._checks import each, flag, instance, record, require_choice, require_int, whole
from relparallel.published import shipped_rows
from relparallel.workload.mixers import LatentAttention as LatentAttention, Mixer as Mixer, attended

_LATENT = ("q_rank", "kv_rank", "nope", "rope", "value")


@record
class Transformer:
    """A decoder predicting the next token: GPT by default, Llama or mixture of experts by options.

    Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021, eq.
    2 and 3. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
    2022, appendix A.

    Parameters
    ----------
    layers, hidden, heads, vocabulary, sequence : int
        L, h, a, V and s, each at least 1.
    ffn : int, optional
        Width f of a dense feed-forward block; 4 h where omitted.
    kv_heads : int, optional
        Heads of keys and values, a divisor of ``heads`` (grouped-query attention); ``heads`` where
        omitted.
    head_size : int, optional
        Width of a head; h / a where omitted, which ``heads`` must then divide.
    latent : LatentAttention, optional
        Multi-head latent attention, with its own widths of heads: leave out ``kv_heads`` and
        ``head_size``.
    qk_norm, gated : bool
        Whether queries and keys are normalised, one scale for each entry of a head; whether the
        feed-forward block has a third matrix (SwiGLU).
    experts, active_experts, shared_experts : int
        Feed-forward blocks of a mixture-of-experts layer, how many of them a token passes, and how
        many more every token passes; 1, 1 and 0 is a dense model.
    expert_ffn, routed, dense_layers : int
        Width of one expert, f where omitted; numbers of a token that go to experts, h where
        omitted; layers without a mixture among the L.
    tied, learned_positions, biases : bool
        Whether the output layer is the embedding; whether positions are s h parameters, or cost
        none (rotary, ALiBi); whether matrices have biases, and norms a shift besides their scale.
    window, windowed_layers : int, optional
        Tokens that a query looks at in so many layers, all of them where omitted; without, all
        tokens.
    mixers : tuple of Mixer
        What layers have in the place of this attention.
    attention_layers, ffn_layers : int, optional
        How often this attention stands in all layers, in all but those of ``mixers`` where omitted;
        and how often a feed-forward block does. A layer may have several of each.
    mtp_layers : int
        Layers of multi-token prediction behind the last one, each with a projection of 2 h^2 and
        the output layer once more. They cost time and memory, but are no part of the model's
        parameters.
    vectors : int
        Parameters of no matrix product that the fields above do not say.

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
    routed: int | None = whole(default=None, at_least=1)
    shared_experts: int = whole(default=0, at_least=0)
    dense_layers: int = whole(default=0, at_least=0)
    tied: bool = flag(default=True)
    learned_positions: bool = flag(default=True)
    biases: bool = flag(default=True)
    window: int | None = whole(default=None, at_least=1)
    windowed_layers: int | None = whole(default=None, at_least=0)
    mixers: tuple[Mixer, ...] = each(Mixer, default=())
    attention_layers: int | None = whole(default=None, at_least=0)
    ffn_layers: int | None = whole(default=None, at_least=0)
    mtp_layers: int = whole(default=0, at_least=0)
    vectors: int = whole(default=0, at_least=0)

    def __post_init__(self) -> None:
        require_int(active_experts=self.active_experts, at_least=1, at_most=self.experts)
        if self.routed is not None:
            require_int(routed=self.routed, at_most=self.hidden)
        require_int(ffn_layers=self.ffn_blocks, at_least=0, at_most=3 * self.layers)
        require_int(dense_layers=self.dense_layers, at_least=0, at_most=self.ffn_blocks)
        require_int(attention_layers=self.attentions, at_least=0, at_most=2 * self.layers)
        require_int(windowed_layers=self.windowed, at_least=0, at_most=self.attentions)
        if self.latent and (self.kv_heads or self.head_size or self.qk_norm or self.biases):
            raise ValueError(
                "latent must be None with kv_heads, head_size, qk_norm or biases, "
                f"got {self.latent} with {self.kv_heads}, {self.head_size}, {self.qk_norm}, "
                f"{self.biases}"
            )
        if not self.latent and self.head_size is None and self.hidden % self.heads:
            raise ValueError(f"heads must divide hidden = {self.hidden}, got {self.heads}")
        if self.heads % self.key_value_heads:
            raise ValueError(f"kv_heads must divide heads = {self.heads}, got {self.kv_heads}")

    @property
    def kind(self) -> str:
        """Kinds of layers besides dense ones of full attention, such as "mixture windows".

        Experts are small that are narrower than a token.
        """
        small = self.expert_hidden < self.hidden
        index = self.latent.index_heads if self.latent else 0
        kinds = {
            "mixture": self.experts > 1 and not small,
            "small-experts": self.experts > 1 and small,
            "windows": self.windowed > 0 or any(m.window and not m.stride for m in self.mixers),
            "states": any(not m.heads for m in self.mixers),
            "compressed": index > 0 or any(m.stride for m in self.mixers),
        }
        return " ".join(name for name, holds in kinds.items() if holds)

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
    def mixed(self) -> int:
        """Layers that have a mixer."""
        return sum(mixer.layers for mixer in self.mixers)

    @property
    def attentions(self) -> int:
        """Layers with the model's own attention."""
        return self.layers - self.mixed if self.attention_layers is None else self.attention_layers

    @property
    def windowed(self) -> int:
        """Of these, the ones with a window."""
        every = self.attentions if self.windowed_layers is None else self.windowed_layers
        return 0 if self.window is None else every

    @property
    def ffn_blocks(self) -> int:
        """Layers with a feed-forward block."""
        return self.layers if self.ffn_layers is None else self.ffn_layers

    @property
    def mixture_layers(self) -> int:
        """Layers whose feed-forward block is a mixture of experts."""
        return 0 if self.experts == 1 else self.ffn_blocks - self.dense_layers

    @property
    def attention_weights(self) -> int:
        """Weights of the matrix products around an attention; 4 h^2 for as many key-value heads."""
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
        """Weights in the matrix products of all layers, all experts counted; 12 L h^2 for a GPT."""
        dense = self.ffn_blocks - self.mixture_layers
        mixture = (
            self.experts + self.shared_experts
        ) * self.expert_weights + self.hidden * self.experts
        attention = self.attentions * self.attention_weights + sum(
            m.layers * m.weights for m in self.mixers
        )
        return attention + dense * self.ffn_weights + self.mixture_layers * mixture

    @property
    def active_weights(self) -> int:
        """Weights in the matrix products of all layers that one token passes."""
        idle = (self.experts - self.active_experts) * self.expert_weights
        return self.layer_weights - self.mixture_layers * idle

    @property
    def parameters(self) -> int:
        """All parameters, exactly.

        For a GPT: L (4 h^2 + 2 h f + 9 h + f) + (V + s) h + 2 h. For f = 4 h this is eq. 2 of
        Narayanan et al. 2021, 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), plus the last LayerNorm
        (2 h), which the equation leaves out.
        """
        others = self.vectors + sum(m.layers * m.vectors for m in self.mixers)
        return self.layer_weights + self._biases + self._norms + self._embeddings + others

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes, those of both embeddings among them."""
        return self.parameters - self.layer_weights + self.active_weights

    @property
    def mtp_weights(self) -> int:
        """Weights of one layer of multi-token prediction, without its output layer."""
        mixture = (
            self.experts + self.shared_experts
        ) * self.expert_weights + self.hidden * self.experts
        block = mixture if self.mixture_layers else self.ffn_weights
        return self.attention_weights + block + 2 * self.hidden**2

    def core_flops(self, context: int) -> float:
        """Forward FLOPs of one token behind so many, in all layers, that involve no weight."""
        seen: float = (self.attentions - self.windowed) * context
        if self.windowed:
            seen += self.windowed * attended(context, self.window)
        return 4 * self.heads * self.head_width * seen + self.other_flops(context)

    def other_flops(self, context: int, causal: bool = False) -> float:
        """Of these, what is not the model's own attention: its index scores, and other mixers."""
        index = 2 * self.attentions * self.latent.index if self.latent else 0
        scored = index * attended(context, None, causal) if index else 0
        return scored + sum(mixer.layers * mixer.core(context, causal) for mixer in self.mixers)

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
        blocks = self.attentions + self.mixed + self.ffn_blocks
        return (blocks + 1) * (1 + self.biases) * self.hidden + self.attentions * inner

    @property
    def _biases(self) -> int:
        if not self.biases:
            return 0
        attention = (self.heads + 2 * self.key_value_heads) * self.head_width + self.hidden
        dense = (1 + self.gated) * self.ffn_hidden + self.hidden
        expert = (1 + self.gated) * self.expert_hidden + self.hidden
        mixture = (self.experts + self.shared_experts) * expert
        mixed = self.mixture_layers
        return self.attentions * attention + (self.ffn_blocks - mixed) * dense + mixed * mixture

    @property
    def _mtp_flops(self) -> int:
        """FLOPs of a token in one layer of multi-token prediction, forward."""
        idle = (
            (self.experts - self.active_experts) * self.expert_weights if self.mixture_layers else 0
        )
        core = 4 * self.sequence * self.heads * self.head_width
        return 2 * (self.mtp_weights - idle + self.hidden * self.vocabulary) + core

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs of one training token, forward and backward, without recomputation."""
        return self.flops_per_iteration(1) / self.sequence

    def flops_per_iteration(self, batch: int, recompute: str = "none") -> float:
        """Floating-point operations of one training iteration on B = ``batch`` sequences.

        ``recompute`` "none" counts the useful operations only (model FLOPs), "selective" and "full"
        those that the hardware also spends on computing the attention core or every layer again. A
        forward pass costs F = B s (2 W + 4 L s a d + 2 h V), W being the weights that a token
        passes and d the width of a head, and a backward pass 2 F; windows, states and layers of
        multi-token prediction in `core_flops` and besides. For f = 4 h this gives

        - none: 72 B s L h^2 (1 + s/(6 h) + V/(12 L h)) (Korthikanti et al. 2022, appendix A);
        - full: 96 B s L h^2 (1 + s/(6 h) + V/(16 L h)) (Narayanan et al. 2021, eq. 3);
        - selective: 72 B s L h^2 (1 + s/(3 h) + V/(12 L h)), as Korthikanti et al. print it. It
          charges 12 B L s^2 h for the attention core; a forward pass of its two products alone
          would be 4 B L s^2 h.
        """
        require_int(batch=batch, at_least=1)
        require_choice(("none", "selective", "full"), recompute=recompute)
        attention = self.core_flops(self.sequence)
        layers = 2 * self.active_weights + attention
        again = {"none": 0, "selective": 3 * attention, "full": layers}[recompute]
        forward = layers + 2 * self.hidden * self.vocabulary + self.mtp_layers * self._mtp_flops
        return float(batch * self.sequence * (3 * forward + again))


@cache
def _rows() -> dict[str, dict[str, Any]]:
    """Shipped sizes by model; what a row leaves blank is the default."""
    return {
        row.pop("name"): {key: _size(text) for key, text in row.items() if text and key != "source"}
        for row in shipped_rows("models.csv")
    }


def _size(text: str) -> Any:
    if text.startswith("["):
        return tuple(_mixer(**sizes) for sizes in json.loads(text))
    return text == "True" if text in ("True", "False") else int(text)


def _mixer(products: list[list[int]], **sizes: int) -> Mixer:
    return Mixer(products=tuple((rows, columns) for rows, columns in products), **sizes)


def transformers() -> tuple[str, ...]:
    """Names that `transformer` knows.

    Returns
    -------
    tuple of str
        By family, smallest first.

    Examples
    --------
    >>> len(transformers()), transformers()[:2]
    (56, ('gpt2-117m', 'gpt2-345m'))
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
    if isinstance(name, str) and name.endswith(".json"):
        raise ValueError(
            f"name must be one of `transformers`, got {name!r}: `read_config` reads files"
        )
    sizes = dict(_rows()[require_choice(transformers(), name=name)])
    latent = {key: sizes.pop(key) for key in _LATENT if key in sizes}
    return Transformer(**sizes, latent=LatentAttention(**latent) if latent else None)
