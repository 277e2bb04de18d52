"""Notebooks 43, 44, 45, 51 and 00 and both READMEs give one answer, and their outputs bear it out.

Each says by what to plan where the nodes that are down are covered, and by what where they are not.
What it says is read from its text, what is so from its stored outputs or from calls of the package.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from captions import text
from scipy.stats import poisson

from chapters.s43 import elastic_throughput
from relparallel import training
from relparallel.hardware import Cluster, llama3_interruptions
from relparallel.parallel import Placement, Strategy, read_strategy
from relparallel.units import DAY
from reproduce.notebook import read

ROOT = Path(__file__).resolve().parents[2]
NODES, COVERED, SPEED, RADIUS = 2048, 15, "speed", "blast radius"
ENGLISH = re.compile(
    rf"Plan by ({SPEED}|{RADIUS}) where spare nodes or regrouping cover the nodes that are down, "
    rf"else by ({SPEED}|{RADIUS})\."
)
CHINESE = re.compile(
    "备用节点或重组足以补上停机的节点时，按(速度|故障波及范围)选择策略，否则按(速度|故障波及范围)选择。"
)
WORDS = {"速度": SPEED, "故障波及范围": RADIUS}


@cache
def cells(stem: str) -> list[dict]:
    (path,) = (ROOT / "notebooks").glob(f"{stem}_*.ipynb")
    return read(path).content["cells"]


def first_screen(name: str) -> str:
    """First page of a README, or the first cell of a notebook, in one line."""
    page = (ROOT / name).read_text("utf-8") if name.endswith(".md") else text(cells(name)[0])
    return " ".join(page.partition("```")[0].split())


@cache
def printed(stem: str) -> str:
    """All that a notebook printed, and its tables as text."""
    outputs = [one for cell in cells(stem) for one in cell.get("outputs", ())]
    shown = [one.get("text", one.get("data", {}).get("text/plain", "")) for one in outputs]
    return "\n".join("".join(one) for one in shown)


def number(stem: str, pattern: str) -> float:
    return float(re.search(pattern, printed(stem))[1])


def by(*won: bool) -> str:
    """Speed if the fastest strategy is the best one each time, blast radius if it never is."""
    assert len(set(won)) == 1, f"the fastest strategy wins here and loses there: {won}"
    return SPEED if won[0] else RADIUS


@cache
def failures() -> training.FailureModel:
    return training.FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=NODES))


def kept(nodes_per_replica: int, spares: int) -> float:
    """Relative goodput of an elastic job without checkpoints to speak of, at a day of repair."""
    split = Strategy(tensor=8, pipeline=nodes_per_replica, data=NODES // nodes_per_replica)
    model = replace(failures(), placement=Placement(strategy=split))
    store = training.Checkpointing(
        levels=(training.CheckpointLevel(name="store", cost=2.8, restart=2.8),)
    )
    way = training.Recovery("elastic", DAY, restart=300.0, pause=30.0)
    return training.goodput(model, 5.0, store, way, spares=spares).mean


def lead() -> float:
    """How much faster the fastest strategy of notebook 45 is than the one that overtakes it."""
    assert "32 / 16" in printed("45")
    return number("45", r"speedup of the fastest +([\d.]+)%") / 100


def by_package() -> tuple[str, str]:
    faster = 1 + lead()
    wins = {n: faster * kept(32, n) > kept(16, n) for n in (0, COVERED)}
    return by(wins[COVERED]), by(wins[0])


def by_43() -> tuple[str, str]:
    line = re.search(r"to grow from 16 to 32 nodes.*", printed("43"))[0]
    alone, _, stocked, joined = (float(x) / 100 for x in re.findall(r"([\d.]+) %", line))
    return by(lead() > stocked, lead() > joined), by(lead() > alone)


def by_44() -> tuple[str, str]:
    """A lead of two per cent at the failure rate of Llama 3: below the border it stays ahead."""
    rate = failures().node_rate * 1000 * DAY
    border = {way: number("44", rf"1\.020 +{way} +([\d.]+)") for way in ("elastic", "regroup")}
    return by(rate < border["regroup"]), by(rate < border["elastic"])


def by_45() -> tuple[str, str]:
    spared = number("45", r"24 h of repair: .* the fastest loses ([\d.]+)%;")
    joined = number("45", r"24 h of repair: .* it loses ([\d.]+)%")
    alone = number("45", r"(?s)fastest with two copies loses.*?\n24\.00 +[\d.]+% +([\d.]+)%")
    return by(spared == 0, joined == 0), by(alone == 0)


def by_51() -> tuple[str, str]:
    line = r"best without spares: (.+); with them: (.+); fastest: (.+)"
    without, spared, fastest = re.search(line, printed("51")).groups()
    stops = [read_strategy(one).model_parallel for one in (without, fastest)]
    assert without == fastest or stops[0] < stops[1]
    return by(spared == fastest), by(without == fastest)


HELD: dict[str, Callable[[], tuple[str, str]]] = {
    "43": by_43,
    "44": by_44,
    "45": by_45,
    "51": by_51,
    "00": by_package,
    "README.md": by_package,
    "README.zh.md": by_package,
}


def said(page: str, pattern: re.Pattern[str]) -> tuple[str, str] | None:
    found = pattern.search(page)
    return tuple(WORDS.get(word, word) for word in found.groups()) if found else None


def turned(page: str) -> str:
    """The opposite statement."""
    for one, other in ((SPEED, RADIUS), ("速度", "故障波及范围")):
        page = page.replace(one, "\0").replace(other, one).replace("\0", other)
    return page


@pytest.mark.parametrize("name", HELD)
def test_the_answer_is_what_the_outputs_say(name):
    page, found = first_screen(name), HELD[name]()
    for pattern in (ENGLISH, CHINESE):
        if name.endswith(".md") and (pattern is CHINESE) != name.endswith(".zh.md"):
            continue
        assert said(page, pattern) == found, f"{name}: write the answer of the other pages"
        assert said(turned(page), pattern) not in (found, None)


def test_45_buys_in_the_order_that_it_computed():
    answer = re.search(r"\*\*Answer\.\*\* (.*)", text(cells("45")[0]))[1]
    measures = {"spares": "spare nodes", "second copy": "second copy"}
    first = [measures[one] for one in re.findall(r"(?<=buy )spares|second copy", answer)]
    order = re.search(r"^24 h, \d+ spare nodes .*: first (.*)$", printed("45"), re.M)[1]
    gains = [re.fullmatch(r"(.+) ([+-][\d.]+) %", one).groups() for one in order.split(", then ")]
    assert first == [one for one, gain in gains if float(gain) > 0.05]
    assert [float(gain) for _, gain in gains[2:]] == [0.0, 0.0]
    assert first[::-1] != first


def test_44_names_the_best_recovery_of_every_size():
    answer = re.search(r"\*\*Answer\.\*\* (.*)", text(cells("44")[0]))[1]
    last = int(re.search(r"with spares keeps most up to ([\d,]+) GPUs", answer)[1].replace(",", ""))
    best = re.findall(r"best on ([\d,]+) GPUs: (.*)", printed("44"))
    assert len(best) == 8
    for size, way in best:
        most = "elastic with spares" if int(size.replace(",", "")) <= last else "regrouped"
        assert way == f"memory, {most}"


def test_51_gains_by_spares_what_it_says():
    answer = re.search(r"\*\*Answer\.\*\* (.*)", text(cells("51")[0]))[1]
    gain = number("51", r"each node makes (-?[\d.]+)% more than elastic without")
    assert round(gain) == int(re.search(r"makes (\d+) % more than", answer)[1])


@pytest.mark.parametrize("spares", [0, 4, 8, 12])
@pytest.mark.parametrize(("larger", "smaller"), [(8, 4), (32, 16), (64, 32)])
def test_the_border_is_where_both_make_the_same_progress(larger, smaller, spares):
    """ln q / (g_A - g_B) = E (K - S)+ / N to first order, K Poisson with mean N lam r."""
    down, load = np.arange(200), NODES * failures().node_rate * DAY
    missing = poisson.pmf(down, load) @ np.maximum(down - spares, 0) / NODES
    even = math.log(kept(smaller, spares) / kept(larger, spares)) / (larger - smaller)
    assert even == pytest.approx(missing, rel=0.05)


@pytest.mark.parametrize(("larger", "smaller"), [(8, 4), (32, 16), (64, 32)])
def test_with_regrouping_it_is_one_node_at_most(larger, smaller):
    for repair in np.geomspace(0.01 * DAY, 30 * DAY, 12):
        left = [
            elastic_throughput(NODES, g, failures().node_rate, repair, pause=0.0, regroup=True)
            for g in (larger, smaller)
        ]
        assert 0 < left[1] - left[0] <= (larger - smaller) / NODES
