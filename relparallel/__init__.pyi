from . import (
    atlas as atlas,
    hardware as hardware,
    metrics as metrics,
    optimize as optimize,
    parallel as parallel,
    planning as planning,
    plotting as plotting,
    published as published,
    rehearsal as rehearsal,
    reliability as reliability,
    sweep as sweep,
    topology as topology,
    training as training,
    units as units,
    workload as workload,
)
from .atlas import card as card
from .hardware import cluster as cluster
from .optimize import joint as joint
from .parallel import Strategy as Strategy, memory as memory, step_time as step_time
from .planning import learn as learn, plan as plan, study as study
from .reliability import evaluate as evaluate
from .training import failure_model as failure_model, goodput as goodput
from .workload import transformer as transformer

__version__: str
