"""Figures have the asked size and the same bytes on every run."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from relparallel import plotting


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RELPARALLEL_FIGURES", str(tmp_path))
    return tmp_path


def drawn(noise: float = 0.0):
    fig, ax = plotting.figure(width="single", height=2.0)
    x = np.linspace(0.1, 3, 50)
    (line,) = ax.plot(x, np.sin(x) * (1 + noise))
    ax.fill_between(x, np.sin(x) * (1 + noise), alpha=0.2)
    ax.scatter(x[::10], np.cos(x[::10]) * (1 + noise))
    plotting.label_line(ax, line, r"$\sin x$")
    plotting.mark(ax, np.pi / 2, 1.0, "maximum")
    return fig


def saved(folder, noise: float = 0.0) -> dict[str, bytes]:
    plotting.save(drawn(noise), "11-sine")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_save_writes_svg_and_pdf_and_nothing_else(folder):
    assert set(saved(folder)) == {"11-sine.svg", "11-sine.pdf"}


def test_two_runs_write_the_same_bytes(folder):
    assert saved(folder) == saved(folder)


def test_last_bits_of_the_data_do_not_reach_the_file(folder):
    assert saved(folder) == saved(folder, noise=2e-15)


def test_a_visible_change_of_the_data_reaches_the_file(folder):
    assert saved(folder)["11-sine.svg"] != saved(folder, noise=1e-3)["11-sine.svg"]


def test_sizes_are_those_of_paper_columns():
    fig, axes = plotting.figure(width="double", height=3.0, rows=2, columns=3)
    assert fig.get_size_inches().tolist() == [7.0, 3.0]
    assert axes.shape == (2, 3)


def test_colours_are_distinct_also_in_grey():
    def luminance(c):
        return float(np.dot([0.2126, 0.7152, 0.0722], to_rgb(c)))

    values = sorted(luminance(c) for c in plotting.PALETTE.values())
    assert len(set(plotting.PALETTE.values())) == len(plotting.PALETTE)
    assert max(values) - min(values) > 0.6


@pytest.mark.parametrize("name", ["Sine", "a b", "../a", "a.svg", "", "-a"])
def test_a_name_that_is_no_plain_file_name_is_refused(folder, name):
    with pytest.raises(ValueError, match="name must be lower-case letters"):
        plotting.save(drawn(), name)


def test_sizes_and_types_are_checked():
    with pytest.raises(ValueError, match="width must be one of 'single', 'double', got 'wide'"):
        plotting.figure(width="wide")
    with pytest.raises(ValueError, match="height must be a number > 0, got -1"):
        plotting.figure(height=-1)
    with pytest.raises(TypeError, match="fig must be Figure, got None"):
        plotting.save(None, "a")
