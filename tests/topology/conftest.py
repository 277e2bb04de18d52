"""What tests of files share."""

import pytest


@pytest.fixture
def file(tmp_path):
    return tmp_path / "network"
