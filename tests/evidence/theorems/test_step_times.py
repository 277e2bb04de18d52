"""Theorems on predicted step times."""

from theorem_table import theorem

from evidence.claims._rows import derived
from relparallel.published import facts

_CALCULON = {
    "Korthikanti": "CALC-0001",
    "PTD-P": "CALC-0011",
    "BLOOM": "CALC-0016",
    "vTrain, several nodes": "CALC-0012",
    "vTrain, one node": "CALC-0013",
}


@theorem("THM-calculon-errors", system="PTD-P")
def test_closer_than_calculon():
    """On all five sources where a Calculon error is on record, the mean error of predictions of the
    left-out source, with one factor, is smaller.
    """
    # Sources on which the prediction is closer, and sources compared.
    table = derived("calibration_errors")
    ours = table[table["way"] == "left_out_one_factor"].set_index("source")["mean"]
    closer = [
        100 * ours[source] < float(facts()[row].value_text) for source, row in _CALCULON.items()
    ]
    return sum(closer), len(_CALCULON)
