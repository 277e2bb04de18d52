"""What one piece of a network costs and draws: price lists with the source of every number.

A list names an item once for each quantity. An item without a published price is left out, and a network that
needs it cannot be billed by that list.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from relparallel._checks import Result, require_choice, require_instance, require_real
from relparallel.published import data_folder

if TYPE_CHECKING:
    import pandas as pd

ITEMS: Final = ("switch port", "ocs port", "host port", "transceiver", "cable")


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitPrices(Result):
    """Price and power of one piece of everything that a bill counts.

    Parameters
    ----------
    name : str
        Of the list; the shipped ones stand in ``data/devices.csv`` with the source of every number.
    cost : Mapping of str to float
        Of one switch port, ocs port, host port, transceiver and cable [USD]; an item without a price is left
        out.
    power : Mapping of str to float
        Of the same [W].

    Examples
    --------
    >>> from dataclasses import replace
    >>> list_2010 = unit_prices("helios2010")
    >>> cheaper = replace(list_2010, name="own", cost={**list_2010.cost, "switch port": 100.0})
    >>> cheaper.cost["switch port"], list_2010.cost["switch port"]
    (100.0, 500.0)
    """

    name: str
    cost: Mapping[str, float]
    power: Mapping[str, float]

    def __post_init__(self) -> None:
        require_instance(str, name=self.name)
        for field in ("cost", "power"):
            given = require_instance(Mapping, **{field: getattr(self, field)})
            if not given or not set(given) <= set(ITEMS):
                raise ValueError(f"{field} must price {', '.join(ITEMS)}, got {', '.join(map(str, given))}")
            checked = {
                item: require_real(**{field: given[item]}, at_least=0) for item in ITEMS if item in given
            }
            object.__setattr__(self, field, checked)


@cache
def price_rows() -> pd.DataFrame:
    """Every row of the shipped price lists."""
    import pandas as pd

    with (data_folder() / "devices.csv").open(newline="", encoding="utf-8") as file:
        return pd.DataFrame(list(csv.DictReader(file)))


def unit_prices(name: str = "helios2010") -> UnitPrices:
    """Shipped price list of that name.

    Parameters
    ----------
    name : {"helios2010", "ndr2024"}, optional
        10 Gbit/s equipment of 2010, as in the Helios study; or 400 Gbit/s InfiniBand of 2024 by street prices
        and data sheets, without a price of optical circuit switches. Compare designs by a list, do not order
        by it.

    Returns
    -------
    UnitPrices
        Cost [USD] and power [W] of every item.

    References
    ----------
    Farrington et al., "Helios: a hybrid electrical/optical switch architecture for modular data centers",
    SIGCOMM 2010. "H100 Freakonomics: the economical tiers of H100's", 2024, and its spreadsheet.

    Examples
    --------
    >>> unit_prices().power["switch port"], unit_prices("ndr2024").cost["switch port"]
    (12.5, 562.5)
    """
    rows = price_rows()
    require_choice(sorted(set(rows["prices"])), name=name)
    own = rows[rows["prices"] == name]
    table = {
        quantity: dict(zip(part["item"], part["value"].astype(float), strict=True))
        for quantity, part in own.groupby("quantity")
    }
    return UnitPrices(name=name, cost=table["cost"], power=table["power"])
