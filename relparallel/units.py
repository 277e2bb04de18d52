"""Units at the border: in the package quantities are SI floats (s, bytes, bytes/s, FLOP/s, 1/s).

Multiply to enter (``24 * HOUR`` is in seconds), divide to leave (``seconds / HOUR`` is in hours).
"""

from typing import Final

__all__ = [
    "BIT",
    "DAY",
    "GB",
    "GBIT",
    "GFLOP",
    "GIB",
    "HOUR",
    "KB",
    "KIB",
    "MB",
    "MIB",
    "MICROSECOND",
    "MILLISECOND",
    "MINUTE",
    "MONTH",
    "TB",
    "TFLOP",
    "TIB",
    "WEEK",
    "YEAR",
]

MICROSECOND: Final = 1e-6
MILLISECOND: Final = 1e-3
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
YEAR: Final = 365 * DAY  # the convention of the failure studies quoted here
MONTH: Final = YEAR / 12

BIT: Final = 1 / 8  # in bytes
KB: Final = 1e3
MB: Final = 1e6
GB: Final = 1e9
TB: Final = 1e12
KIB: Final = 2.0**10
MIB: Final = 2.0**20
GIB: Final = 2.0**30
TIB: Final = 2.0**40
GBIT: Final = 1e9 * BIT  # in bytes

GFLOP: Final = 1e9
TFLOP: Final = 1e12
