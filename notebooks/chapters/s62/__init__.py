"""Notebook 62: what operators on tiles move, alone and connected."""

from chapters.s62.tiles import TileOperator as TileOperator, tile_schedule as tile_schedule
