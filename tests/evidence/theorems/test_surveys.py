"""What surveys hold: every system has its source, field studies of switches have their price."""

import math

import pandas as pd
from theorem_table import theorem

from chapters import s23
from relparallel import topology
from relparallel.published import data_folder


@theorem("THM-survey-complete", system="Literature survey table")
def test_survey_complete():
    """Every listed system but three questions of this collection has a source in the survey."""
    # Systems that some source names, and systems of the list that come from the literature.
    survey = pd.read_csv(data_folder() / "literature.csv", keep_default_na=False)
    systems = pd.read_csv(data_folder() / "systems.csv", keep_default_na=False)["system"]
    named = {name.strip() for cell in survey["systems"] for name in cell.split(";")} - {""}
    return float(len(named)), float(len(systems) - 3)


@theorem("THM-field-leaf-spine", system="Field failure studies of data-centre networks")
def test_field_leaf_spine():
    """On a leaf-spine only leaves cost host-hours: L H -ln(1 - p) times the repair in a year."""
    # Ten leaves of 16 hosts, five in a hundred lost in a year for 100 minutes.
    found = s23.field_losses(topology.leaf_spine(leaves=10, spines=4, hosts_per_leaf=16))
    return float(found["host-hours per year, high"].sum()), 10 * 16 * -math.log(0.95) * 100 / 60
