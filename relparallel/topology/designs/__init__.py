"""The designs: one function each, with closed forms, symmetries, layout and paper in its decorator.

Builders are array operations on the cables, without loops over nodes. Docstrings name sources in
short; the whole entry stands under the key ``paper`` in data/references.bib. Unless a design says
otherwise every cable has 400 Gbit/s and no modelled latency (``dataclasses.replace`` sets others).
"""
