"""Notebook 37: gradients merged into messages, and arrays sharded over a mesh."""

from chapters.s37.fusion import (
    fuse_gradients as fuse_gradients,
    merge_gradients as merge_gradients,
)
from chapters.s37.resharding import reshard as reshard
from chapters.s37.sharding import (
    mesh_product as mesh_product,
    movement as movement,
    shards as shards,
)
