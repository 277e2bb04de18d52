"""How Sphinx builds the pages (make site): notebooks as stored, and nothing from a network."""

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static"

project, author, copyright = "relparallel", "The relparallel authors", "The relparallel authors"
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
    "reading",
]

# The source folder is the checkout, so that links between its files hold here too.
root_doc = "README"
include_patterns = [
    *("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"),
    *("notebooks/*.ipynb", "docs/*.md", "docs/reference/*.rst"),
]
# The front page includes the contents; folders without pages are not walked through.
exclude_patterns = ["docs/contents.md", ".*", "build", "figures", "relparallel", "tests"]

nb_execution_mode = "off"
nb_custom_formats = {".ipynb": "reading.read_notebook"}
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "dollarmath", "html_image"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints_format = "short"
default_role = "py:obj"
numpydoc_show_class_members = False
python_maximum_signature_line_length = 88

bibtex_bibfiles = ["../data/references.bib"]
bibtex_default_style = "own_case"
bibtex_cite_id = "{key}"

html_theme = "sphinx_book_theme"
html_title = "relparallel"
html_static_path = ["static", str(MATHJAX)]
html_css_files = ["style.css"]
html_show_copyright = html_show_sphinx = False
html_theme_options = {
    "home_page_in_toc": True,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
}
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"chtml": {"scale": 0.9}}
templates_path = [str(HERE / "templates")]  # from the source folder or this one, whoever asks
