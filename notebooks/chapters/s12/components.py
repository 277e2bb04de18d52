"""Published tables of components with costs and reliabilities."""

import pandas as pd

from relparallel.published import data_folder


def component_table(name: str = "fyffe") -> pd.DataFrame:
    """Parts that a redundancy allocation chooses from, a table of ``data/published/components``.

    A row per part: subsystem, choice, reliability, cost, weight (units of the source), source,
    status.

    >>> len(component_table())
    48
    """
    return pd.read_csv(data_folder() / "published/components" / f"{name}.csv")
