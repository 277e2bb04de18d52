from .data_sheets import (
    Accelerator as Accelerator,
    accelerator as accelerator,
    accelerators as accelerators,
)
from .machines import Cluster as Cluster, cluster as cluster, clusters as clusters
from .rates import (
    ComponentRate as ComponentRate,
    ComponentRates as ComponentRates,
    llama3_interruptions as llama3_interruptions,
)
