"""Published checks of layouts: movements between them and their adjoints."""

from typing import Final

import numpy as np

from chapters import s37
from evidence.claims.registry import Rows


def adjoint_coherence() -> float:
    """Largest incoherence of broadcast, scatter, all-to-all and halo exchange on random tensors."""
    rng, mesh, dims = np.random.default_rng(20), {"w": 4}, {"x": 13, "y": 9}
    root = s37.shards(dims, {"w": 1}, {})
    copies, rows, columns, margins = (
        s37.shards(dims, mesh, layout, halo)
        for layout, halo in (
            ({}, None),
            ({"x": "w"}, None),
            ({"y": "w"}, None),
            ({"x": "w"}, {"x": (1, 2)}),
        )
    )
    worst = 0.0
    for before, after in ((root, copies), (root, rows), (rows, columns), (rows, margins)):
        move = s37.movement(before, after)
        x, y = (
            [rng.normal(size=shape) for shape in shapes] for shapes in (move.inputs, move.outputs)
        )
        flat = [
            np.concatenate([part.ravel() for part in v]) for v in (move(x), y, x, move.adjoint(y))
        ]
        norm = [np.linalg.norm(v) for v in flat]
        worst = max(
            worst,
            abs(flat[0] @ flat[1] - flat[2] @ flat[3]) / max(norm[0] * norm[1], norm[2] * norm[3]),
        )
    return float(worst)


ROWS: Final[Rows] = {
    "hewett_adjoint": adjoint_coherence,
}
