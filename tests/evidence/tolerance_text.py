"""What a tolerance's words say in numbers: the columns ``rtol``, ``atol`` and ``digits`` of a row.

``printed`` is half a unit of the last digit that the source prints, ``ours:`` anything else that
is held against somebody's number. A bare number is absolute in the row's unit; ``rel x``, ``x rel``
and percentages are relative; ``x/key`` is relative with ``key`` among the inputs; ``exact`` and
``0`` mean every digit of the value.
"""

import re

NUMBER = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
ALL = {"digits": 0}


def tolerance_columns(text, inputs):
    """The one column that the words fill; none where they are no number."""
    text = text.strip().removeprefix("ours: ")
    for pattern, column, scale in (
        (rf"^rel {NUMBER}", "rtol", 1.0),
        (rf"^abs {NUMBER}", "atol", 1.0),
        (rf"^{NUMBER} significant digits", "digits", 1),
        (rf"^~?{NUMBER}\s*% abs", "atol", 0.01),
        (rf"^~?{NUMBER}\s*%", "rtol", 0.01),
        (rf"^(?:exact \()?{NUMBER} rel", "rtol", 1.0),
        (rf"^{NUMBER}(?![\d.]|/|x| viol)", "atol", 1.0),
    ):
        if match := re.match(pattern, text):
            size = type(scale)(match[1]) * scale
            return {column: size} if size else ALL
    if match := re.match(rf"^{NUMBER}/(\w+)", text):
        base = inputs.get(match[2])
        return {"rtol": float(match[1]) / base} if isinstance(base, int | float) else {}
    return ALL if text.startswith(("exact", "printed")) else {}
