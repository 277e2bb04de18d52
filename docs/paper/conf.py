"""How Sphinx writes the paper as LaTeX (make paper)."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from draft import CHOICE  # noqa: E402

project, author = CHOICE["title"], CHOICE["author"]
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinxcontrib.bibtex", "reading", "draft"]
root_doc = "docs/paper/paper"
include_patterns = [f"{root_doc}.md"]
myst_enable_extensions = ["amsmath", "dollarmath"]
bibtex_bibfiles = ["../../data/references.bib"]
bibtex_default_style = "own_case"

numfig = True
numfig_format = {"figure": "Figure %s", "table": "Table %s"}
latex_documents = [(root_doc, "paper.tex", project, author, "howto")]
today = " "
latex_show_urls = "no"
latex_elements = {
    "papersize": "a4paper",
    "pointsize": "10pt",
    "figure_align": "htbp",
    "fncychap": "",
    "tableofcontents": "",
    "printindex": "",
    "sphinxsetup": "hmargin={25mm,25mm}, vmargin={25mm,25mm}, TitleColor=black",
    "preamble": r"\setlength{\parskip}{0.4ex}\let\sphinxbfcode\textbf",
}
