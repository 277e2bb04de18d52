"""Published tables of components with costs and reliabilities."""

import pandas as pd

from relparallel._checks import require_choice
from relparallel.published import data_folder


def component_table(name: str = "fyffe") -> pd.DataFrame:
    """Parts that a redundancy allocation chooses from.

    Parameters
    ----------
    name : {"fyffe"}
        A table of ``data/published/components``.

    Returns
    -------
    pandas.DataFrame
        A row per part: subsystem, choice, reliability, cost, weight (units of the source), source,
        status.

    Examples
    --------
    >>> len(component_table("fyffe"))
    48
    """
    import pandas as pd

    tables = {
        path.stem: path for path in sorted((data_folder() / "published/components").glob("*.csv"))
    }
    return pd.read_csv(tables[require_choice(tuple(tables), name=name)])
