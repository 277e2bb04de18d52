"""Orders of stages on the links of a server against all orders."""

import itertools

import numpy as np
import pytest

from chapters.s35.stage_order import DGX1_NVLINKS, stage_order

LINKS = 25e9 * np.array(DGX1_NVLINKS)


def brute_force(
    links: np.ndarray, sizes: list[float], objective: str, ends: list[int], **costs: float
) -> float:
    """Least value over all orders, with paths found by trying every chain of devices."""
    n = len(links)

    def seconds(u: int, v: int, size: float) -> float:
        best = costs["pcie_latency"] / costs.get("grouped", 1) + size / costs["pcie"]
        for k in range(n - 1):
            for between in itertools.permutations([d for d in range(n) if d not in (u, v)], k):
                hops = list(itertools.pairwise((u, *between, v)))
                if all(links[a, b] > 0 for a, b in hops):
                    best = min(best, sum(costs["latency"] + size / links[a, b] for a, b in hops))
        return best

    table = [
        [[seconds(u, v, s) if u != v else 0.0 for v in range(n)] for u in range(n)] for s in sizes
    ]
    total = sum if objective == "sum" else max
    return min(
        total(table[i][u][v] for i, (u, v) in enumerate(itertools.pairwise(order)))
        for order in itertools.permutations(range(n), len(sizes) + 1)
        if order[-1] in ends
    )


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
@pytest.mark.parametrize("seed", range(4))
def test_no_order_is_better(seed: int, objective: str) -> None:
    """Random links, fewer stages than devices, a chosen end, and calls that share their latency."""
    rng = np.random.default_rng(seed)
    links = np.triu(rng.integers(0, 3, (5, 5)), 1).astype(float)
    links += links.T
    sizes = rng.integers(1, 9, 3 + seed % 2).astype(float)
    costs = {"pcie": 0.7, "latency": 0.5, "pcie_latency": 3.0, "grouped": 1 + seed}
    ends = [0, 1 + seed]
    found = stage_order(links, sizes, objective=objective, last=ends, **costs)
    assert found.value == pytest.approx(brute_force(links, sizes, objective, ends, **costs))
    assert found.devices[-1] in ends
    assert len(set(found.devices)) == len(sizes) + 1
    combine = np.sum if objective == "sum" else np.max
    assert combine(found.seconds) == pytest.approx(found.value)
    assert [(r[0], r[-1]) for r in found.routes] == list(itertools.pairwise(found.devices))


def test_two_hops_of_nvlink_against_one_of_pcie() -> None:
    """Large outputs go through a third GPU, small ones over PCIe where its calls are cheap."""
    star = [[0, 0, 25e9], [0, 0, 25e9], [25e9, 25e9, 0]]
    costs = {"pcie": 12e9, "latency": 1e-5, "pcie_latency": 1e-6, "last": [2]}
    assert len(stage_order(star, [1e9, 1.0], **costs).routes[0]) == 3
    assert len(stage_order(star, [1e3, 1.0], **costs).routes[0]) == 2
    apart = np.kron(np.eye(2), [[0, 25e9], [25e9, 0]])
    found = stage_order(apart, [1e8, 1e3, 1e8], pcie=12e9)
    assert [len({d // 2 for d in route}) for route in found.routes] == [1, 2, 1]


def test_dgx1_holds_a_path_of_double_links() -> None:
    """Seven of the eight doubled NVLinks make a path through all GPUs."""
    found = stage_order(LINKS, [1e8] * 7, pcie=12e9)
    assert found.seconds.tolist() == [1e8 / 50e9] * 7


def test_links_that_differ_by_direction_are_refused() -> None:
    with pytest.raises(ValueError, match="nvlink must be symmetric"):
        stage_order([[0, 1], [2, 0]], [1.0], pcie=1.0)
