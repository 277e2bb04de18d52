"""How much a test does: few cases in `make test`, many in `make test-all`."""

from hypothesis import settings


def pace(few: int, many: int) -> int:
    """Count of cases, seeds, runs or years."""
    return many if settings.get_current_profile_name() == "ci" else few
