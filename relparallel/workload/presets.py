"""Published decoder-only transformers by name."""

from __future__ import annotations

from functools import cache

from relparallel._checks import require_choice
from relparallel.published import shipped_rows
from relparallel.workload.transformer import LatentAttention, Transformer

_LATENT = ("q_rank", "kv_rank", "nope", "rope", "value")


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
    (42, ('gpt2-117m', 'gpt2-345m'))
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
