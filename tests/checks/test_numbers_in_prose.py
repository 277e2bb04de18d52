"""No number stands in an Answer, a Finding or a summary that its notebook does not print.

A number of an Answer or a Chinese summary is looked for among all outputs and the parameters of its
notebook, one of a Finding among those of its section, the code of the section and the published
rows that it names. It must be there to its last digit; between the two may lie per cent of a share
or what is left of the whole, the prefix of a unit, and minutes, hours or days. Not asked about are
names (H100, TP8, GPT-3 175B), years, formulas, code and links.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CLAIM = re.compile(r"\*\*(Answer|中文摘要|Finding)")

HIDDEN = re.compile(
    r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|[A-Z]{2,}[A-Z0-9]*-[\w*]+",
    re.DOTALL,
)
# letters before a number, letters after it that are no unit, or a word that it belongs to
NAMES = re.compile(
    r"[A-Za-z][\w.+/-]*\d[\w.+/-]*"
    r"|(?:Llama|Megatron|MLPerf Training|MLPerf|[Nn]otebooks?|[Ff]igures?|[Tt]ables?|[Ss]ections?"
    r"|[Ee]xercises?|笔记本)[ -]?\d[\d.]*(?:[ -]?\d+(?:\.\d+)?[BMT]\b)?"
    r"|\b\d+(?:\.\d+)?[BMT]\b|\b\d[A-Z]\w*|\b\d+(?:st|nd|rd|th)\b|\b(?:19|20)\d\d\b"
    r"|(?<=1,)000 node|\b1000(?= node-days| nodes?)"
)
DIGITS = r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?:e([-+]?\d+))?"
NUMBER = re.compile(rf"(?<![\w.,⁻]){DIGITS}(?![\d⁻])(?!\s?×10)")
PRINTED = re.compile(rf"(?<![\w.]){DIGITS}")
RANGE = re.compile(r"^(?:to|and|against|or|至|到|、|–|,)\s?(?:about )?[\d.,]+e?\d*\s?(\S.{0,8})")
ROW = re.compile(r"[A-Z]{2,}[A-Z0-9]*(?:-[A-Z0-9]+)+")
PERCENT = re.compile(r"%|per cent|percent|points?\b|个百分点")
TIME = re.compile(
    r"(?:s|min|h|d|seconds?|minutes?|hours?|days?|weeks?|years?|秒|分钟|小时|天|年|周)(?![A-Za-z])"
)
SCALED = re.compile(r"[kMGTPmµμn](?:B|bit|FLOP|Hz|s)|[mbtr]illion|亿|万|tokens|parameters|×")
SCALES = (1e3, 1e6, 1e9, 1e12, 1e4, 1e8, 10.0)  # the last: 亿 of billions
TIMES = (60.0, 3600.0, 86400.0, 24.0, 1440.0, 365.0)

# What no cell can print, since it is a source's word, with the reason.
QUOTED = {
    ("51_your_cluster", 9.0): "PRISM's variability",
    ("51_your_cluster", 64000.0): "the GPUs that PRISM says it for",
}


class Number(NamedTuple):
    """Its value, its decimals (below zero: zeros at its end), and what follows it."""

    value: float
    decimals: int
    after: str
    sentence: str = ""


def parsed(whole: str, part: str | None, power: str | None) -> tuple[float, int]:
    digits, exponent = whole.replace(",", ""), int(power or 0)
    zeros = len(digits) - len(digits.rstrip("0")) if not part and digits.strip("0") else 0
    return float(f"{digits}{part or ''}e{exponent}"), (len(part) - 1 if part else -zeros) - exponent


def said(text: str) -> Iterator[Number]:
    """Numbers of a paragraph; the first of a range has the unit of the last."""
    plain = NAMES.sub(" ", HIDDEN.sub(" ", text))
    for sentence in re.split(r"(?<=[.;。；])\s+(?=[A-Z\u4e00-\u9fff])", plain):
        for found in NUMBER.finditer(sentence):
            after = sentence[found.end() : found.end() + 24].strip()
            while part := RANGE.match(after):
                after = part.group(1)
            yield Number(*parsed(*found.groups()), after, sentence.strip())


def in_text(text: str) -> list[Number]:
    """Numbers of an output or of code."""
    heads = " ".join(re.findall(r"<th[^>]*>(.*?)</th>", text, flags=re.DOTALL))
    perhaps = "%?" if "%" in heads else ""
    rows = re.findall(r"<tr[^>]*>\s*<th[^>]*>(.*?)</th>", text, flags=re.DOTALL)
    counted = [row for row in rows if row.isdigit()]
    if counted == [str(place) for place in range(len(counted))]:  # an index that says nothing
        text = re.sub(r"(<tr[^>]*>\s*)<th[^>]*>\d+</th>", r"\1", text)
    text = re.sub(r"<style.*?</style>|<[^>]+>", " | ", text, flags=re.DOTALL)
    found = []
    for match in PRINTED.finditer(text):
        value, decimals = parsed(*match.groups())
        after = text[match.end() : match.end() + 2].strip()
        found.append(
            Number(value, decimals, after if after[:1] == "%" else perhaps * (decimals > 0))
        )
    return found


def reached(number: Number, said: Number) -> list[float]:
    """What a printed number may stand for in prose with this unit."""
    value, share = number.value, number.after[:1] == "%"
    if PERCENT.match(said.after):
        found = [value, 100 - value] if share else []
        if number.decimals > 0 and not said.after.startswith("%"):  # points may be printed as such
            found += [value]
        if number.decimals > 1:
            found += [100 * value, 100 - 100 * value] if value <= 1 else [100 * value - 100]
        return found
    if share and number.after != "%?":
        return []
    found = [value]
    if TIME.match(said.after) and number.decimals > 0:
        found += [way for time in TIMES for way in (value * time, value / time)]
    if SCALED.match(said.after) or said.decimals < -8:
        found += [way for scale in SCALES for way in (value * scale, value / scale)]
    return found


def is_printed(number: Number, known: Iterable[Number]) -> bool:
    """Whether one of those known rounds to a number, at its own digits."""
    half = 0.5 * 10.0**-number.decimals * (1 + 1e-6)
    return any(
        abs(abs(value) - number.value) <= half for one in known for value in reached(one, number)
    )


@cache
def published() -> dict[str, list[Number]]:
    """Numbers of published rows, by their name."""
    found = {}
    for path in (ROOT / "data" / "published").glob("*.csv"):
        for row in csv.DictReader(path.read_text().splitlines()):
            found[row["id"]] = in_text(" | ".join((row["value"], row["inputs"])))
    return found


def text_of(output: dict) -> str:
    data = output.get("data", {})
    shown = data.get("text/html") or data.get("text/plain") or output.get("text", "")
    text = shown if isinstance(shown, str) else "".join(shown)
    return "" if text.startswith("<Figure") else text


@cache
def claims(path: Path) -> list[tuple[Number, list[Number]]]:
    """Every number that a notebook claims, with the numbers among which it is looked for."""
    cells = json.loads(path.read_text())["cells"]
    parameters: list[Number] = []
    every: list[Number] = []
    for cell in cells:
        if cell["cell_type"] == "code":
            if "parameters" in cell["metadata"].get("tags", []):
                parameters += in_text("".join(cell["source"]))
            every += [number for one in cell["outputs"] for number in in_text(text_of(one))]
    section: list[Number] = []
    found: list[tuple[Number, list[Number]]] = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            section += [number for one in cell["outputs"] for number in in_text(text_of(one))]
            section += in_text(re.sub(r"#.*|\"[^\"]*\"", "", source))
            continue
        for part in source.split("\n\n"):
            if part.startswith("## "):
                section = []
            if kind := CLAIM.match(part):
                names = ROW.findall(part) + re.findall(r"`([\w*-]+)`", part)
                rows = [n for name in names for n in published().get(name, [])]
                known = (section if kind.group(1) == "Finding" else every) + parameters + rows
                found += [(number, known) for number in said(part)]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_number_that_is_claimed_is_printed(path):
    missing = [
        f"{number.value:g} {number.after[:12]} in: {number.sentence[:120]}"
        for number, known in claims(path)
        if (path.stem, number.value) not in QUOTED and not is_printed(number, known)
    ]
    assert missing == []


def test_numbers_that_are_wrong_are_noticed():
    """Of numbers that are 7 % off, or one in the last digit, half: small ones are everywhere."""
    noticed = []
    for path in NOTEBOOKS:
        for number, known in claims(path):
            unit = 10.0**-number.decimals
            off = max(unit, round(0.07 * number.value / unit) * unit)
            noticed += [
                not is_printed(number._replace(value=number.value + sign * off), known)
                for sign in (1, -1)
            ]
    assert sum(noticed) / len(noticed) > 0.45


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_answer_and_summary_say_the_same_numbers(path):
    first = "".join(json.loads(path.read_text())["cells"][0]["source"])
    english, chinese = (
        [number for part in first.split("\n\n") if part.startswith(mark) for number in said(part)]
        for mark in ("**Answer", "**中文摘要")
    )
    scaled = {n.value * factor for n in chinese for factor in (1, 1e4, 1e8, 0.1)}
    large = [n.value for n in english if n.value > 10]  # small ones may be words
    odd = [value for value in large if not any(abs(value / v - 1) < 1e-9 for v in scaled if v)]
    assert odd == []
