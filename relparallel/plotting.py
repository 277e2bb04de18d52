"""How every figure looks and is stored: one palette, two widths, direct labels, same bytes.

`figure` makes a sized figure, `label_line` names a curve at its end, `save` writes figures and
tables, the same bytes on every run. Colours are those of Okabe and Ito, which all kinds of colour
vision tell apart.
"""

import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from relparallel._checks import require_choice, require_instance, require_int, require_real

__all__ = ["PALETTE", "figure", "label_line", "mark", "save"]

PALETTE: Final[dict[str, str]] = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "black": "#222222",
    "grey": "#8A8A8A",
}
"""Colours by name (Okabe and Ito 2008), safe for readers with any kind of colour vision."""

# inches: one and two columns of a paper
WIDTHS: Final[dict[str, float]] = {"single": 3.35, "double": 7.0}
# digits of plotted data: last bits that differ between machines never reach a file
_SIGNIFICANT: Final = 7


def _style() -> None:
    """Set the matplotlib style: small type, no box, light grid, reproducible vector output."""
    sns.set_theme(context="paper", style="ticks", palette=list(PALETTE.values()))
    mpl.rcParams.update(
        {
            "font.size": 8,
            "axes.labelsize": 8,
            "axes.titlesize": 8.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "xtick.labelsize": 7.5,
            "ytick.labelsize": 7.5,
            "legend.fontsize": 7.5,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.7,
            "axes.grid": True,
            "grid.color": "#E4E4E4",
            "grid.linewidth": 0.5,
            "lines.linewidth": 1.6,
            "lines.solid_capstyle": "round",
            "figure.dpi": 96,  # a notebook with twenty figures stays below a megabyte
            "figure.constrained_layout.use": True,
            "savefig.bbox": None,
            "svg.hashsalt": "relparallel",
            "svg.fonttype": "path",
            "pdf.fonttype": 42,
        }
    )


def figure(
    *,
    width: Literal["single", "double"] = "double",
    height: float = 2.6,
    rows: int = 1,
    columns: int = 1,
    **options: Any,
) -> tuple[Figure, Any]:
    """Make a styled figure of a paper's column width.

    Parameters
    ----------
    width : {"single", "double"}
        3.35 or 7.0 inches.
    height : float
        Inches.
    rows, columns : int
        Panels.
    **options
        Passed to ``Figure.subplots`` (``sharey=True``, ``width_ratios=[2, 1]``).

    Returns
    -------
    Figure, Axes or array of Axes
        As ``matplotlib.pyplot.subplots``.

    Examples
    --------
    >>> fig, ax = figure(width="single", height=2.0)
    >>> [float(inches) for inches in fig.get_size_inches()]
    [3.35, 2.0]
    """
    require_choice(tuple(WIDTHS), width=width)
    require_real(height=height, above=0)
    require_int(rows=rows, columns=columns, at_least=1)
    _style()
    return plt.subplots(rows, columns, figsize=(WIDTHS[width], height), **options)


def label_line(
    ax: Axes, line: Line2D, text: str, *, at: int = -1, offset: tuple[float, float] = (4, 0)
) -> Annotation:
    """Write a curve's name beside one of its points, in the curve's colour: no legend to look up.

    Parameters
    ----------
    ax, line : Axes, Line2D
        The curve, and where it is drawn.
    text : str
        Its name.
    at, offset : int, (float, float)
        Index of the point that is labelled, the last by default; shift in points.

    Returns
    -------
    Annotation
        The label.

    Examples
    --------
    >>> fig, ax = figure()
    >>> (line,) = ax.plot([1, 2], [3, 4])
    >>> label_line(ax, line, "elastic").get_text()
    'elastic'
    """
    require_instance(Axes, ax=ax)
    require_instance(Line2D, line=line)
    require_instance(str, text=text)
    x, y = np.asarray(line.get_xdata(), float)[at], np.asarray(line.get_ydata(), float)[at]
    return _note(ax, x, y, text, offset, line.get_color())


def mark(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    *,
    offset: tuple[float, float] = (6, 6),
    color: str = "#222222",
) -> Annotation:
    """Mark a point that a reader should see (a cross-over, an optimum) with a dot and a word.

    Parameters
    ----------
    ax, x, y : Axes, float, float
        Where to draw: the point in data units.
    text, offset, color : str, (float, float), str
        What it is, with its value and unit; shift of the text in points; colour of dot and text.

    Returns
    -------
    Annotation
        The text.

    Examples
    --------
    >>> fig, ax = figure()
    >>> mark(ax, 1.0, 0.5, "break-even 6 h").get_text()
    'break-even 6 h'
    """
    require_instance(Axes, ax=ax)
    require_instance(str, text=text)
    require_real(x=x, y=y)
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    ax.plot([x], [y], marker="o", markersize=4, color=color, zorder=5, **edge)
    return _note(ax, x, y, text, offset, color)


def _note(
    ax: Axes, x: float, y: float, text: str, offset: tuple[float, float], color: Any
) -> Annotation:
    """Text at a distance from a point, on the side to which it is shifted."""
    side = "left" if offset[0] >= 0 else "right"
    return ax.annotate(
        text,
        (x, y),
        xytext=offset,
        textcoords="offset points",
        color=color,
        va="center",
        ha=side,
        fontsize=7.5,
        annotation_clip=False,
    )


def bars(table: pd.Series, what: str, ax: Axes | None = None, *, most: int = 20) -> Axes:
    """Draw the first rows of a table as horizontal bars, the first on top, ``what`` under them."""
    shown = table.head(most).iloc[::-1]
    ax = figure(width="single", height=0.6 + 0.2 * len(shown))[1] if ax is None else ax
    ax.barh(range(len(shown)), shown.to_numpy(), color=PALETTE["blue"], height=0.7)
    ax.set_yticks(range(len(shown)), [str(name) for name in shown.index])
    ax.set_xlabel(what)
    return ax


def _figures_folder() -> Path:
    """Folder for figures: ``$RELPARALLEL_FIGURES``, that of the collection, or one of this run.

    Those of the collection are written by its runner, and by JupyterLab where it runs a notebook of
    the checkout as it is stored; a copy, or other parameters, never replace them.
    """
    if folder := os.environ.get("RELPARALLEL_FIGURES"):
        return Path(folder)
    checkout, here = Path(__file__).resolve().parent.parent, Path.cwd()
    if not (checkout / "notebooks").is_dir():
        return here / "figures"
    if _as_stored(checkout / "notebooks"):
        return checkout / "figures"
    inside = here.is_relative_to(checkout)
    own = checkout / ".relparallel" / "figures" if inside else here / "figures"
    # from here, so that a kernel is told once
    warnings.warn(
        f"figures of this run go to {own}: those of the collection are written by "
        "`relparallel figures`, which takes parameters by -p and a folder by --output-dir",
        stacklevel=1,
    )
    return own


def _as_stored(notebooks: Path) -> bool:
    """Whether this is JupyterLab in such a folder, and all that ran so far is in the file."""
    session = Path(os.environ.get("JPY_SESSION_NAME", ""))
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or session.resolve().parent != notebooks or not session.is_file():
        return False
    cells = json.loads(session.read_text("utf-8"))["cells"]
    stored = {"".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"}
    return {text.strip() for text in shell.history_manager.input_hist_raw} - {""} <= stored


def save(fig: Figure, name: str, *, show: bool = True) -> None:
    """Write a figure as SVG and PDF, the same bytes on every run.

    Parameters
    ----------
    fig : Figure
        A finished figure, whose plotted data are rounded to seven significant digits first.
    name : str
        File name without suffix: notebook number, then what it shows (``43-goodput-by-recovery``).
    show : bool, default True
        Whether a notebook shows the figure below the cell; False where its first cell has it.

    Examples
    --------
    >>> fig, ax = figure()
    >>> save(fig, "No Spaces")
    Traceback (most recent call last):
    ...
    ValueError: name must be lower-case letters, digits and hyphens, got 'No Spaces'
    """
    require_instance(Figure, fig=fig)
    require_instance(str, name=name)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case letters, digits and hyphens, got {name!r}")
    folder = _figures_folder()
    _round_data(fig)
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, dateless in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
        part = folder / f".{name}.{suffix}.part"
        fig.savefig(part, format=suffix, metadata=dateless)
        os.replace(part, folder / f"{name}.{suffix}")
    if not show:
        plt.close(fig)


def _round_data(fig: Figure) -> None:
    """Round what lines and collections draw, so that last bits cannot change a file."""
    for line in fig.findobj(Line2D):
        if isinstance(line, Line2D):
            x, y = line.get_data(orig=True)
            if _numeric(x) and _numeric(y):
                line.set_data(_rounded(x), _rounded(y))
    for collection in fig.findobj(Collection):
        if isinstance(collection, Collection):
            for path in collection.get_paths():
                if not path.readonly:
                    path.vertices = _rounded(path.vertices)


def _numeric(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "iuf"


def _rounded(values: Any) -> np.ndarray:
    """Round to `_SIGNIFICANT` significant digits."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.where(
            (array == 0) | ~np.isfinite(array), 0, np.floor(np.log10(np.abs(array)))
        )
    magnitude = np.maximum(magnitude, -290)  # keeps the scale finite
    scale = 10.0 ** (_SIGNIFICANT - 1 - magnitude)
    return np.where(np.isfinite(array), np.round(array * scale) / scale, array)
