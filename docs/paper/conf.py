"""How Sphinx writes the paper and its Chinese companion as LaTeX (make paper)."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from draft import CHOICE  # noqa: E402
from pybtex.plugin import register_plugin  # noqa: E402
from reading import OwnCase  # noqa: E402


class Numbered(OwnCase):
    """Works as numbers, in the order of their authors."""

    default_label_style = "number"


register_plugin("pybtex.style.formatting", "numbered", Numbered)

project, author = CHOICE["title"], CHOICE["author"]
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinxcontrib.bibtex", "reading", "draft"]
root_doc = "docs/paper/paper"
include_patterns = [f"{root_doc}.md", f"{root_doc}.zh.md"]
myst_enable_extensions = ["amsmath", "dollarmath"]
bibtex_bibfiles = ["../../data/references.bib"]
bibtex_default_style = "numbered"

numfig, numfig_secnum_depth = True, 0
numfig_format = {"figure": "Figure %s", "table": "Table %s"}
latex_documents = [
    (root_doc, "paper.tex", project, author, "howto"),
    (f"{root_doc}.zh", "paper-zh.tex", CHOICE["title_chinese"], author, "howto"),
]
today = " "
latex_show_urls = "no"
latex_table_style = ["booktabs"]
# Chinese by the CJK package, where it is installed: both documents are then inside its environment.
chinese = r"""
\IfFileExists{CJKutf8.sty}{\usepackage{CJKutf8}%
  \AtBeginDocument{\begin{CJK*}{UTF8}{gbsn}}\AtEndDocument{\clearpage\end{CJK*}}}{}
"""
latex_elements = {
    "papersize": "a4paper",
    "pointsize": "10pt",
    "figure_align": "htbp",
    "fncychap": "",
    "tableofcontents": "",
    "printindex": "",
    "sphinxsetup": "hmargin={25mm,25mm}, vmargin={22mm,22mm}, TitleColor=black",
    "preamble": r"""
\renewcommand{\topfraction}{0.9}\renewcommand{\bottomfraction}{0.8}\renewcommand{\textfraction}{0.08}
\renewcommand{\floatpagefraction}{0.85}\setlength{\parskip}{0.4ex}\let\sphinxbfcode\textbf
\usepackage{amsthm}\newtheorem{theorem}{Theorem}
\usepackage{etoolbox}\AtBeginEnvironment{tabulary}{\footnotesize}\AtBeginEnvironment{tabular}{\footnotesize}
\AtBeginEnvironment{sphinxthebibliography}{\footnotesize}
\apptocmd{\thebibliography}{\setlength{\itemsep}{0pt}\setlength{\parskip}{0pt}}{}{}
"""
    + chinese,
}
