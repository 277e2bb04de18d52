"""Counting a decoder-only transformer: parameters and floating-point operations.

========  ==========================================  ==============
letter    meaning                                     field
========  ==========================================  ==============
L         transformer layers                          ``layers``
h         hidden size                                 ``hidden``
a         attention heads                             ``heads``
V         vocabulary                                  ``vocabulary``
s         sequence length                             ``sequence``
f         width of the feed-forward block             ``ffn``
B         sequences in one iteration                  ``batch``
========  ==========================================  ==============
"""

from __future__ import annotations

from dataclasses import dataclass

from relparallel._checks import require_choice, require_int

__all__ = ["Transformer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transformer:
    """A GPT: learned positions, biases, two LayerNorms per layer and one at the end, tied embedding.

    Parameters
    ----------
    layers, hidden, heads, vocabulary, sequence : int
        L, h, a, V and s, each at least 1; ``heads`` divides ``hidden``.
    ffn : int, optional
        Width f of the feed-forward block; 4 h where omitted.

    Raises
    ------
    TypeError, ValueError
        If a size is no positive integer, or ``heads`` does not divide ``hidden``.

    References
    ----------
    Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021, eq. 2 and 3.
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, appendix A.

    Examples
    --------
    >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=1024)
    >>> gpt2.parameters
    124439808
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    ffn: int | None = None

    def __post_init__(self) -> None:
        require_int(layers=self.layers, hidden=self.hidden, heads=self.heads, at_least=1)
        require_int(vocabulary=self.vocabulary, sequence=self.sequence, at_least=1)
        if self.ffn is not None:
            require_int(ffn=self.ffn, at_least=1)
        if self.hidden % self.heads:
            raise ValueError(f"heads must divide hidden = {self.hidden}, got {self.heads}")

    @property
    def ffn_hidden(self) -> int:
        """Width f of the feed-forward block."""
        return 4 * self.hidden if self.ffn is None else self.ffn

    @property
    def layer_weights(self) -> int:
        """Weights in the matrix products of all layers, L (4 h^2 + 2 h f); 12 L h^2 for f = 4 h."""
        return self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.ffn_hidden)

    @property
    def parameters(self) -> int:
        """All parameters, exactly.

        L (4 h^2 + 2 h f + 9 h + f) + (V + s) h + 2 h. For f = 4 h this is eq. 2 of Narayanan et al. 2021,
        12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), plus the last LayerNorm (2 h), which the equation
        leaves out.
        """
        biases_and_norms = self.layers * (9 * self.hidden + self.ffn_hidden)
        embeddings = (self.vocabulary + self.sequence) * self.hidden
        return self.layer_weights + biases_and_norms + embeddings + 2 * self.hidden

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs that one token of training costs, forward and backward, without recomputation."""
        return self.flops_per_iteration(1) / self.sequence

    def flops_per_iteration(self, batch: int, recompute: str = "none") -> float:
        """Return the floating-point operations of one training iteration.

        Parameters
        ----------
        batch : int
            Sequences B in the iteration, at least 1.
        recompute : {"none", "selective", "full"}
            Count the useful operations only (model FLOPs), or those that the hardware also spends on
            recomputing the attention core or every layer.

        Returns
        -------
        float
            FLOP.

        Raises
        ------
        TypeError, ValueError
            If ``batch`` is no positive integer or ``recompute`` none of the three.

        Notes
        -----
        A forward pass costs F = B s (2 W + 4 L s h + 2 h V), W being the layers' weights, and a backward
        pass 2 F. For f = 4 h this gives

        - none: 72 B s L h^2 (1 + s/(6 h) + V/(12 L h)),
        - full, one more forward pass of the layers: 96 B s L h^2 (1 + s/(6 h) + V/(16 L h)),
        - selective: 72 B s L h^2 (1 + s/(3 h) + V/(12 L h)), as printed. It charges 12 B L s^2 h for the
          attention core; one more forward pass of its two products alone would be 4 B L s^2 h.

        References
        ----------
        Narayanan et al. 2021, eq. 3 (full). Korthikanti et al. 2022, appendix A (none, selective).

        Examples
        --------
        >>> gpt = Transformer(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
        >>> f"{gpt.flops_per_iteration(1536, recompute='full'):.4g}"
        '4.511e+18'
        """
        require_int(batch=batch, at_least=1)
        require_choice(("none", "selective", "full"), recompute=recompute)
        attention = 4 * self.layers * self.sequence * self.hidden
        layers = 2 * self.layer_weights + attention
        again = {"none": 0, "selective": 3 * attention, "full": layers}[recompute]
        forward = layers + 2 * self.hidden * self.vocabulary
        return float(batch * self.sequence * (3 * forward + again))
