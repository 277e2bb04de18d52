"""Notebook 51: a plan moved by hand."""

from relparallel.book.s51.sliders import sliders as sliders
