"""Public data that is too large for the repository, where a folder with it is named."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("RELPARALLEL_DATA", "nowhere")) / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="RELPARALLEL_DATA names no folder with data"
)
