"""Tables of plans: best distinct strategies, prices, widths; what is checked before the search."""

import json
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import relparallel as rp
from relparallel.__main__ import main
from relparallel._tables import latex_table, text_table
from relparallel.planning import cluster_files, plans
from relparallel.planning.cluster_files import arguments_of
from relparallel.planning.table import as_text, compared


@pytest.fixture(scope="module")
def found():
    return rp.plan(
        "llama3-70b", "h100-80gb-dgx", gpus=512, global_batch=512, strategies=12, price=4.0
    )


def test_rows_are_so_many_distinct_strategies_the_best_first(found):
    table = found.to_frame()
    assert len(table) == 12
    assert not table[["strategy", "state copies"]].duplicated().any()
    assert (table["1e9 tokens a day"].diff()[1:] <= 0).all()
    assert len(rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, strategies=10).to_frame()) == 10


def test_no_strategy_that_was_asked_by_hand_is_better_than_a_row_of_its_degrees(found):
    """What `why_not` finds at 3 % is in the table, with its best variant and its best recovery."""
    table = found.to_frame()
    rows = {
        (one.tensor, one.pipeline): reason
        for name, reason in zip(table["strategy"], table["reason"], strict=True)
        for one in [rp.parallel.read_strategy(name)]
    }
    for asked in ("TP4 PP4 DP32 VPP5 ZeRO-1 SP", "TP4 PP4 CP2 DP16 VPP5 ZeRO-1 SP"):
        lost = float(re.search(r"([\d.]+)% less than", found.why_not(asked))[1])
        assert lost >= float(re.search(r"[\d.]+", rows[4, 4])[0]) - 0.5  # as good as its twins


def test_each_row_has_its_best_recovery(found):
    # some were shown with "restart", at -16 %
    assert set(found.to_frame()["recovery"]) == {"elastic"}


def test_a_price_for_each_cluster_decides_the_winner():
    names = ["a100-80gb-selene", "h100-80gb-dgx"]
    asked = {"gpus": 64, "global_batch": 512, "strategies": 1}
    both = rp.plan("llama3-8b", names, price=[1.0, 9.0], **asked)
    table = both.to_frame().set_index("cluster")
    for name, price in zip(names, (1.0, 9.0), strict=True):
        tokens = table.loc[name, ["1e9 tokens a day", "tokens to", "tokens from"]].to_numpy(float)
        costs = table.loc[name, ["cost of 1e9 tokens", "cost from", "cost to"]].to_numpy(float)
        assert costs == pytest.approx(price * 64 * 24 / tokens)
    assert both.best.cluster.name == names[0]
    assert rp.plan("llama3-8b", names, price=[9.0, 1.0], **asked).best.cluster.name == names[1]
    assert names[0] in str(both)


@pytest.mark.parametrize("price", [[1.0, 2.0, 3.0], [1.0, -2.0], "4", [4.0, float("nan")], True])
def test_prices_are_checked_before_the_search(monkeypatch, price):
    monkeypatch.setattr(plans, "joint", lambda *_: pytest.fail("the search has begun"))
    with pytest.raises((ValueError, TypeError), match="price must be"):
        rp.plan("llama3-8b", ["a100-80gb-selene", "h100-80gb-dgx"], gpus=64, price=price)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_the_table_fits_its_width_and_leaves_nothing_out(found, width):
    text = found.to_text(width)
    assert max(map(len, text.splitlines())) <= width
    beyond = found.to_frame()["group"].str.startswith("nobody has run")
    sizes, columns = (12 - beyond.sum(), beyond.sum()), max((width - 22) // 20, 1)
    rows = sum(line.startswith("step [s]") for line in text.splitlines())
    assert sum(-(-size // columns) for size in sizes) <= rows <= 12
    words = set(text.split())
    for name, row in compared(found.to_frame()).T.iterrows():
        assert set(name.split()) <= words
        assert set(row["step [s]"].split()) <= words


def test_what_decides_stands_above_what_is_doubtful_and_notes_below():
    """In the frame, in text, and as lists of HTML and LaTeX; warnings come first."""
    found = rp.plan("gpt3-6.7b", "v100-16gb-dgx", gpus=64, global_batch=512)
    lines = [line.strip() for line in found.to_text(10**4).splitlines()]
    labels = ["1e9 tokens a day", "step [s]", "memory [GB]", "best with probability", "MFU"]
    places = [next(k for k, line in enumerate(lines) if line.startswith(one)) for one in labels]
    heads = ["Warnings:", "Assumed:", "Doubt:", "To measure next:"]
    places += [lines.index(head) for head in heads]
    assert places == sorted(places)
    assert "" in lines[places[2] : places[3]]
    assert found.warnings
    assert lines[places[5] + 1 : places[5] + 1 + len(found.warnings)] == [*found.warnings]
    columns = [*found.to_frame()]
    assert columns.index("tokens to") < columns.index("step [s]") < columns.index("MFU")
    html, latex = found._repr_html_(), found.to_latex()
    for note in found.notes:
        assert f"<li>{note}</li>" in html.replace("&#x27;", "'")
        assert " & " + note.replace("%", r"\%") + r" \\" in latex
    assert html.index("</table>") < html.index("<ul>")


def test_what_nobody_has_run_stands_apart_below_a_line_that_says_so(found):
    table = found.to_frame().assign(group=["within what was run", "nobody has run PP32"] * 6)
    before, after = as_text(table, {}, 10**4).split("\n\nnobody has run these:\n\n")
    for text, names in ((before, table["strategy"][::2]), (after, table["strategy"][1::2])):
        heads = re.split(r"\s{2,}", text.strip().splitlines()[0])
        assert heads == names.tolist()
    assert "nobody has run these" not in as_text(table.assign(group="measured"), {}, 10**4)


def test_wide_stands_on_one_line_each(found):
    lines = found.to_text(10**4).splitlines()
    assert sum(line.startswith("1e9 tokens a day") for line in lines) == 1
    (head,) = [above for above, line in pairwise(lines) if line.startswith("───")]
    assert all(name in head for name in found.to_frame()["strategy"])


def test_numbers_have_their_bounds_beside_them(found):
    row, first = compared(found.to_frame()).iloc[:, 0], found.to_frame().iloc[0]
    assert row["step [s]"] == "{:.4g} ({:.4g} to {:.4g})".format(
        *first[["step [s]", "step from", "step to"]]
    )
    assert row["memory [GB]"] == f"{first['memory [GB]']:.4g} of {first['of [GB]']:.4g}"


def widths(latex):
    return [float(width) for width in re.findall(r"p\{(-?[\d.]+)\\linewidth\}", latex)]


def test_columns_of_latex_have_room_and_fit_the_page(found):
    """Twenty columns had one of width -0.53, and those of a joint plan came to 1.27 lines."""
    frames = (found.to_frame(), found.best.to_frame())
    tables = [
        *(one for one in found.to_latex().split(r"\end{longtable}")[:2]),
        *(latex_table(one) for one in frames),
        found.best.to_latex(),
    ]
    for latex in tables:
        assert min(widths(latex)) > 0.004
        assert sum(widths(latex)) + 0.012 * len(widths(latex)) < 1.01
    assert min(widths(found.to_latex())) > 0.03


def test_a_text_table_wraps_long_cells_and_keeps_brackets():
    text = text_table(["a [s]", "b"], [[1.25, "[red] " + "word " * 30], [10.0, "end"]], 40)
    assert max(map(len, text.splitlines())) <= 40
    assert "[red]" in text
    assert text.split().count("word") == 30


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"gobal_batch": 8}, "plan takes no option 'gobal_batch'; did you mean 'global_batch'"),
        ({"softwear": "x"}, "did you mean 'software'"),
        ({"fabric": "rail-only"}, "plan takes no option 'fabric'"),
        ({"workload": 1}, "plan takes no option 'workload'"),
        ({"cluster": "h100"}, "got 'h100'; did you mean 'h100-80gb-dgx' or 'h100-80gb-gx2560'"),
        ({"cluster": "B200-dgx"}, "did you mean 'b200-180gb-dgx'"),
        ({"model": "llama-3-70b"}, "got 'llama-3-70b'; did you mean 'llama3-70b'"),
        ({"network": "rail-optimized"}, "did you mean 'rail-optimised'"),
        ({"software": "megatron-bridge"}, "did you mean 'megatron-bridge-2025'"),
        ({"precision": "bf-16"}, "did you mean 'bf16'"),
        ({"policies": ["elastc"]}, "did you mean 'elastic'"),
    ],
)
def test_a_misspelt_name_is_refused_with_what_may_have_been_meant(changed, told):
    asked = {"model": "llama3-8b", "cluster": "h100-80gb-dgx", "gpus": 64, **changed}
    with pytest.raises((ValueError, TypeError)) as refused:
        rp.plan(**asked)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 700


def test_a_refusal_of_the_search_is_a_sentence():
    with pytest.raises(ValueError, match="cluster must allow") as refused:
        rp.plan("llama3-8b", "h100-80gb-dgx", gpus=64, global_batch=64, limits={"tensor": 64})
    assert "np." not in str(refused.value)
    assert "Transformer(" not in str(refused.value)
    assert "64 GPUs" in str(refused.value)
    assert len(str(refused.value)) < 300


def config(folder, **more):
    sizes = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 128256,
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
    }
    path = folder / "config.json"
    path.write_text(json.dumps({"model_type": "llama", **sizes, **more}))
    return path


@pytest.mark.parametrize(
    ("limit", "asked", "taken", "told"),
    [
        (131072, None, 8192, "sequences of 8,192 tokens are taken; the file allows 131,072"),
        (4096, None, 4096, "sequences of 4096 tokens"),
        (131072, 32768, 32768, "sequences of 32768 tokens, as asked"),
    ],
)
def test_what_a_model_can_read_is_not_what_it_trains_on(tmp_path, limit, asked, taken, told):
    path = config(tmp_path, max_position_embeddings=limit)
    plan = rp.plan(path, "h100-80gb-dgx", gpus=64, sequence=asked, strategies=1)
    assert plan.model.sequence == taken
    (said,) = [note for note in plan.notes if note.startswith("sequences of")]
    assert told in said


def test_a_published_model_says_with_which_sequence(found):
    assert "sequences of 8,192 tokens, with which the model was published" in found.notes


def test_measured_speeds_take_the_place_of_predictions(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('strategy,tokens/s\n"TP8 PP4 DP2",64100\n"TP8, DP8",6.4e4\nTP4 PP4 DP4,3e4\n')
    plan = rp.plan(
        "gpt3-6.7b",
        "a100-80gb-selene",
        gpus=64,
        global_batch=64,
        measured=path,
        only_measured=True,
        strategies=50,
    )
    table = plan.to_frame().set_index("strategy")
    assert set(table.index) >= {"TP8 PP4 DP2", "TP8 PP1 DP8", "TP4 PP4 DP4"}
    one = table.loc["TP8 PP4 DP2"]
    assert one["step [s]"] == one["step to"] == pytest.approx(64 * plan.model.sequence / 64100)
    assert one["1e9 tokens a day"] == pytest.approx(64100 * one["relative goodput"] * 86400 / 1e9)
    assert one["memory [GB]"] > 0
    assert np.isnan(one["MFU"])
    assert plan.stages().fits(plan.best.cluster).needed > 0
    assert "nan" not in str(plan)
    assert "less than" in plan.why_not("TP4 PP4 DP4")
    assert "TP8 PP1 DP8" in plan.explain() or "tensor 8" in plan.explain()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("strategy,speed\nTP8,1\n", "tokens/s"),
        ("strategy,tokens/s\nTP8 DP8,1\nXP3,2\n", r"row 3: .*XP3"),
        ("strategy,tokens/s\nTP8 DP8,fast\n", "row 2: .*fast"),
        ("strategy,tokens/s\nTP8 DP8,nan\n", "row 2: .*nan"),
        ('strategy,tokens/s\n"TP8, DP8",1\nTP8 DP8,-2\n', "row 3: .*-2"),
    ],
)
def test_a_bad_table_of_speeds_says_where(tmp_path, text, told):
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=told) as refused:
        rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, measured=path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--save", "p.xls"], "path must end in .csv, .json, .tex, .svg, .pdf, .png, .html, .sh"),
        (["--save", "nodir/p.csv"], "path must lie in a folder that exists, got nodir/p.csv"),
        (["--trace", "nodir/t.json"], "folder that exists"),
        (["--save", "p.toml", "--form", "slurm"], "path must end in .sbatch or .slurm or .sh for"),
        (["--save", "p.sh", "--form", "slrum"], "did you mean 'slurm'"),
        (["--form", "slurm"], "form must come with --save, which names the file, got slurm"),
        (["--why-not", "XP8"], "XP8"),
        (["--why-not", "--tensor-parallel 8 --lr 1"], "did you mean"),
        (["--watched", "3"], "name it with failures"),
    ],
)
def test_what_comes_after_the_search_is_checked_before_it(
    monkeypatch, tmp_path, capsys, option, told
):
    monkeypatch.setattr(plans, "joint", lambda *_: pytest.fail("the search has begun"))
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "gpt3-6.7b", "a100-80gb-selene", "--gpus", "64", *option]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_saving_through_a_link_keeps_the_link(found, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real.csv")
    found.save(link)
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("cluster,strategy")


def test_options_of_the_command_reach_the_plan(monkeypatch, tmp_path):
    seen = {}

    class Found:
        def to_text(self, width):
            return str(width)

    def plan(model, files):
        seen.update(arguments_of(files, True, {}), model=model)
        seen.update({name: [one.fields[name] for one in files] for name in ("cluster", "gpus")})
        return Found()

    log = {}
    monkeypatch.setattr(rp.planning, "plan", plan)
    monkeypatch.setattr(
        cluster_files, "read_failure_log", lambda path, **options: log.update(options) or "log"
    )
    line = (
        "plan config.json a b --gpus 8 16 --batch 4 --sequence 2048 --price 4 5.5 --strategies 3 "
        "--network n.conf --software s --precision fp8 --measured m.csv --failures f --watched 9 "
        "--dialect csv --clock h --overlaps merge --levels software=job power=rack --ignore x y "
        "--wide "
        "--delimiter ; --repair 60 --rank replay --spares 2 --storage 50 --since 2026-01-01"
    )
    assert main(line.split()) == 0
    assert {k: str(v) if k == "measured" else v for k, v in seen.items()} == {
        "model": "config.json",
        "cluster": ["a", "b"],
        "gpus": [8, 16],
        "global_batch": 4,
        "sequence": 2048,
        "price": [4.0, 5.5],
        "strategies": 3,
        "network": "n.conf",
        "software": "s",
        "precision": "fp8",
        "measured": "m.csv",
        "ignore": ["x", "y"],
        "rank": "replay",
        "rates": "log",
        "spares": 2,
        "storage_bandwidth": 50e9,
    }
    assert log == {
        "population": 9,
        "dialect": "csv",
        "clock": "h",
        "overlaps": "merge",
        "ignore": ["x", "y"],
        "delimiter": ";",
        "repair": 60.0,
        "since": "2026-01-01",
        "levels": {"software": "job", "power": "rack"},
    }


def test_text_becomes_latex():
    frame = pd.DataFrame({"a_b": ["50 % × 10⁻³"]}, index=["x & y"])
    assert r"x \& y & 50 \% \(\times\) 10\(^-\)\(^3\) \\" in latex_table(frame)


def test_signs_of_other_fonts_become_latex():
    frame = pd.DataFrame({"x": ["a < b → c_d", 1 / 3]})
    latex = latex_table(frame)
    assert r"0 & a \textless{} b \(\to\) c\_d \\" in latex
    assert r"1 & 0.333333 \\" in latex
    assert latex.isascii()


def test_a_table_keeps_merged_cells_apart():
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b & c", 1)])
    lines = latex_table(pd.DataFrame({"x": [1, 2, 3]}, index=index)).splitlines()
    body = lines.index(r"\endlastfoot") + 1
    assert lines[body:-2] == [r"a & 1 & 1 \\", r" & 2 & 2 \\", r"b \& c & 1 & 3 \\"]
