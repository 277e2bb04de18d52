"""A small GPT on bytes, trained on batches whose sizes are given; a run that is stopped goes on.

The text is the standard library of the Python that runs: its single-file modules in the order of
their names. Every tenth is held out.
"""

import os
import sysconfig
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import lazy_loader
import numpy as np
import pandas as pd

from relparallel.training.recovery import mean_speed

torch: Any = lazy_loader.load("torch")

_BYTES: Final = 256
_HEADS: Final = 4
_HELD_OUT: Final = 256  # samples
Weights = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A job: its nodes, how often they fail, what it trains on, and how long."""

    replicas: int = 8
    nodes_per_replica: int = 8
    load: float = 0.0515  # mean repair over mean life of a node: a replica is up 2/3 of its time
    repair: float = 20.0  # mean, in steps of the full batch
    micro_batches: int = 4  # of a replica and full batch
    samples: int = 8  # of a replica and step, of `length` bytes each
    batches: int = 180  # full ones that are trained on
    length: int = 64
    width: int = 144
    layers: int = 4
    rate: float = 2e-3  # of learning, the best of 1, 2, 3 and 6e-3 after 120 full batches
    warm: int = 40  # full batches over which it rises
    rows: int = 12  # full batches between two losses

    @property
    def nodes(self) -> int:
        """All of the job."""
        return self.replicas * self.nodes_per_replica

    @property
    def full(self) -> int:
        """Samples of the full batch."""
        return self.replicas * self.samples

    def mean_speed(self, policy: str) -> float:
        """Closed form: mean share of the samples per time."""
        kept = self.micro_batches if policy == "keep" else None
        load = 0.0 if policy == "none" else self.load
        given = self.nodes, self.nodes_per_replica, load, 1.0, "keep" if kept else "shrink", kept
        return float(mean_speed(*given, policy == "regroup"))


def train(plan: Plan, shares: Any, seed: int, state: Path) -> pd.DataFrame:
    """Train on one batch after the other, and keep in a file what is needed to go on.

    Rows: step, samples, loss on the text held out, and means since the last row of unbiased
    estimates of the squared gradient and of the variance of one sample's gradient, from the
    gradients of the replicas and of the whole batch (McCandlish et al., 2018, appendix A.1).
    """
    torch.set_num_threads(1)
    own, held = text()
    last, every = len(own) - plan.length, plan.full * plan.rows
    starts = np.random.default_rng([seed, 1]).integers(last, size=plan.full * (plan.batches + 1))
    fixed = np.linspace(0, len(held) - plan.length - 1, _HELD_OUT).astype(int)
    torch.manual_seed(seed)
    weights = _weights(plan)
    optimizer = torch.optim.AdamW(weights.values(), betas=(0.9, 0.95), weight_decay=0.1)
    first, done, rows, estimates = 0, 0, [], []
    if state.exists() and (kept := torch.load(state, weights_only=True))["plan"] == asdict(plan):
        first, done, rows = kept["step"], kept["samples"], kept["rows"]
        for name, weight in weights.items():
            weight.data.copy_(kept["weights"][name])
        optimizer.load_state_dict(kept["optimizer"])
    for step, share in enumerate(shares[first:], first + 1):
        before, done = done, done + round(plan.full * share)
        norms = _gradient(plan, weights, _samples(plan, own, starts[before:done]))
        if share > 1 / plan.replicas:
            estimates.append(_split(plan.samples, done - before, *norms))
        optimizer.param_groups[0]["lr"] = plan.rate * min(done / (plan.full * plan.warm), 1.0)
        optimizer.step()
        if done // every > before // every:
            with torch.no_grad():
                loss = float(_loss(plan, weights, _samples(plan, held, fixed)))
            rows.append((step, done, loss, *np.mean(estimates or [(np.nan,) * 2], axis=0).tolist()))
            estimates.clear()
            kept = {"plan": asdict(plan), "step": step, "samples": done, "rows": rows}
            fresh = state.with_name(f"{state.name}.new")
            torch.save(kept | {"weights": weights, "optimizer": optimizer.state_dict()}, fresh)
            os.replace(fresh, state)
    return pd.DataFrame(rows, columns=["step", "samples", "loss", "squared", "variance"])


def text() -> tuple[Any, Any]:
    """Bytes to learn from, and those held out."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    parts = [path.read_bytes() for path in files]
    held = b"".join(parts[::10])
    own = b"".join(part for place, part in enumerate(parts) if place % 10)
    return tuple(torch.frombuffer(bytearray(some), dtype=torch.uint8) for some in (own, held))


def _samples(plan: Plan, source: Any, starts: Any) -> Any:
    return source[torch.from_numpy(starts)[:, None] + torch.arange(plan.length + 1)].long()


def _split(b: int, B: int, few: float, many: float) -> tuple[float, float]:
    """|G|**2 and tr(Sigma) from squared norms of gradients of b and of B samples."""
    return (B * many - b * few) / (B - b), (few - many) / (1 / b - 1 / B)


def _gradient(plan: Plan, weights: Weights, batch: Any) -> tuple[float, float]:
    """Leave the mean of the replicas' gradients; mean of their squared norms, and its own."""
    replicas = batch.split(plan.samples)
    few, own = 0.0, list(weights.values())
    for weight in own:
        weight.grad = torch.zeros_like(weight)
    for samples in replicas:
        found = torch.autograd.grad(_loss(plan, weights, samples), own)
        few += float(sum(one.square().sum() for one in found)) / len(replicas)
        for weight, one in zip(own, found, strict=True):
            weight.grad += one / len(replicas)
    return few, float(sum(weight.grad.square().sum() for weight in own))


def _weights(plan: Plan) -> Weights:
    """Of GPT-2, without biases; those that add to the stream start smaller."""
    width, layers = plan.width, range(plan.layers)
    shapes = {"bytes": (_BYTES, width), "places": (plan.length, width)}
    for layer in layers:
        shapes |= {f"qkv{layer}": (3 * width, width), f"out{layer}": (width, width)}
        shapes |= {f"up{layer}": (4 * width, width), f"down{layer}": (width, 4 * width)}
    shapes["head"] = (_BYTES, width)
    found = {name: 0.02 * torch.randn(shape) for name, shape in shapes.items()}
    for layer in layers:
        found[f"out{layer}"] *= (2 * plan.layers) ** -0.5
        found[f"down{layer}"] *= (2 * plan.layers) ** -0.5
    return {name: weight.requires_grad_() for name, weight in found.items()}


def _loss(plan: Plan, weights: Weights, samples: Any) -> Any:
    """Mean cross entropy of the next byte [nats]."""
    functional, size = torch.nn.functional, (plan.width,)
    linear, norm = functional.linear, functional.layer_norm
    x = weights["bytes"][samples[:, :-1]] + weights["places"]
    for layer in range(plan.layers):
        heads = linear(norm(x, size), weights[f"qkv{layer}"]).unflatten(-1, (3, _HEADS, -1))
        mixed = functional.scaled_dot_product_attention(
            *heads.permute(2, 0, 3, 1, 4), is_causal=True
        )
        x = x + linear(mixed.transpose(1, 2).flatten(2), weights[f"out{layer}"])
        inner = functional.gelu(linear(norm(x, size), weights[f"up{layer}"]))
        x = x + linear(inner, weights[f"down{layer}"])
    said = linear(norm(x, size), weights["head"])
    return functional.cross_entropy(said.flatten(0, 1), samples[:, 1:].flatten())
