"""What each use of the package loads, in a fresh interpreter: memory and waiting are a cost."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

TABLES = {"pandas", "matplotlib", "seaborn"}
SCIPY = {"scipy.stats", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.integrate"}
COMPILER = {"numba", "llvmlite"}
ROOT = Path(__file__).parent.parent
GRID = "import networkx as nx; from relparallel.reliability import evaluate; "
USES = {
    "import relparallel": {"numpy", "networkx", *TABLES, *SCIPY, *COMPILER},
    "import relparallel as rp; rp.topology.fat_tree(4)": {"networkx", "scipy", *TABLES, *COMPILER},
    "import relparallel as rp; rp.workload.transformer": {"networkx", "scipy", *TABLES, *COMPILER},
    "import relparallel as rp; rp.parallel.step_time": {"networkx", *TABLES, *SCIPY, *COMPILER},
    "import relparallel as rp; rp.training.goodput": {"networkx", *TABLES, *SCIPY, *COMPILER},
    "import relparallel as rp; rp.metrics.hop_statistics": {"networkx", *TABLES, *SCIPY},
    "from relparallel.reliability import fat_tree_pair": {"networkx", *TABLES, *SCIPY, *COMPILER},
    GRID + "evaluate(nx.grid_2d_graph(3, 3), [(0, 0), (2, 2)], 0.9, method='exact')": TABLES
    | SCIPY,
    GRID + "evaluate(nx.grid_2d_graph(3, 3), 'all', 0.9, 0.99)": TABLES | SCIPY,
}
LAZY = (
    "hardware",
    "metrics",
    "optimize",
    "parallel",
    "reliability",
    "topology",
    "training",
    "workload",
)


def loaded(statements: str) -> set[str]:
    """Modules in memory after the statements."""
    command = [sys.executable, "-c", f"{statements}; import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    "statements", USES, ids=lambda text: text.rpartition("; ")[2].partition("(")[0]
)
def test_nothing_is_loaded_that_is_not_used(statements):
    found = loaded(statements)
    assert "relparallel" in found
    assert found & USES[statements] == set()


GOODPUT = """
from dataclasses import replace
from relparallel.hardware import Cluster
from relparallel.parallel import Placement, Strategy
from relparallel.training import Checkpointing, CheckpointLevel, ComponentClass, FailureModel, Job
from relparallel.training import Recovery, goodput, relative_goodput

parts = tuple(ComponentClass(name=level, level=level, rate=1e-7) for level in ("gpu", "node", "rack"))
model = FailureModel(classes=parts, cluster=Cluster(nodes=64, nodes_per_rack=4))
model = replace(model, placement=Placement(strategy=Strategy(tensor=8, pipeline=4, data=16)))
memory, storage = (CheckpointLevel(name=name, cost=9.0, restart=60.0) for name in ("memory", "storage"))
one, two = Checkpointing(levels=(storage,)), Checkpointing(levels=(memory, storage))
for policy in ("spares", "hot_spares", "elastic", "recycle", "oobleck", "spare_shards"):
    goodput(model, 5.0, one, Recovery(policy, repair=86400.0))
    goodput(model, 5.0, two, Recovery(policy, repair=86400.0), method="markov")
job = Job(nodes=2048, nodes_per_replica=16, node_rate=4e-8, checkpoint=60.0, restart=900.0, pause=30.0)
relative_goodput(job, "spares", repair=86400.0)
"""
PLAN = """
import relparallel as rp

found = rp.plan("gpt3-6.7b", "a100-80gb-selene", gpus=64, global_batch=512)
found.stages(), found.why_not("TP8 PP4 DP2")
"""
STEP = """
import numpy as np
import relparallel as rp
from relparallel.parallel import Placement, Strategy

model, cluster = rp.transformer("gpt3-6.7b"), rp.cluster("a100-80gb-selene", 64)
shape = Strategy(tensor=8, data=8)
links = np.ones(cluster.gpus + cluster.nodes)
links[-1] = 0.5
for given in ({}, {"placement": Placement(strategy=shape)}, {"alive": links}):
    rp.step_time(model, shape, cluster, 512, **given)
    rp.memory(model, shape, 512, cluster=cluster)
"""
STUDY = """
import pandas as pd, relparallel as rp

found = rp.study(["gpt3-6.7b"], ["a100-80gb-selene"], [64], global_batch=512, price=2.0)
runs = pd.DataFrame({"strategy": ["TP8 PP4 DP2", "TP8 DP8"], "tokens/s": [1.9e5, 1.8e5]})
rp.learn(runs, model="gpt3-6.7b", cluster="a100-80gb-selene", batch=512).factors()
"""
README = """
import ast, re

snippet = re.search("```python(.*?)```", open("README.md", encoding="utf-8").read(), re.S)[1]
for statement in ast.parse(snippet).body:
    called = {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    if not called & {compiled!r}:
        exec(ast.unparse(statement))
"""
COMPILED = {  # of the README's calls
    *("evaluate", "reliable_network", "card", "check", "needed", "failure_frequency", "compare")
}
WITHOUT = "import sys; sys.modules.update(numba=None, llvmlite=None)\n"


@pytest.mark.parametrize(
    "asked",
    [GOODPUT, PLAN, STEP, STUDY, README.replace("{compiled!r}", repr(COMPILED))],
    ids=["goodput", "plan", "step", "study", "README"],
)
def test_goodput_joint_and_plans_need_no_compiler(asked):
    """What compiles nothing runs where numba is missing, and does not wait for it to load."""
    subprocess.run([sys.executable, "-c", WITHOUT + asked], cwd=ROOT, check=True)


def test_a_table_loads_what_makes_it():
    table = "import relparallel as rp; rp.topology.describe('torus', dims=(4, 4)).to_frame()"
    assert {"pandas", "relparallel.topology.designs.direct"} <= loaded(table)


HIDDEN = """
import importlib, os, pkgutil
import networkx, numba, scipy.optimize, scipy.sparse.csgraph, scipy.stats  # once for all packages
for package in {LAZY}:
    p = importlib.import_module(f"relparallel.{package}")
    for module in {m.name for m in pkgutil.iter_modules(p.__path__)} & set(p.__all__):
        if os.fork() == 0:
            importlib.import_module(f"{p.__name__}.{module}")
            if type(getattr(p, module)) is type(os):
                print(package, module, flush=True)
            os._exit(0)
        os.wait()
"""


@pytest.mark.slow
def test_no_module_hides_a_name_of_its_package():
    """Each in a fresh interpreter, since the first import of a module sets its name."""
    command = [sys.executable, "-c", HIDDEN.replace("{LAZY}", repr(LAZY))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "", "a module hides the function of its name, which another module offers"


@pytest.mark.parametrize("package", LAZY)
def test_a_package_lists_what_it_offers_and_refuses_the_rest(package):
    module = importlib.import_module(f"relparallel.{package}")
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"relparallel.{package} attribute no_such"):
        module.no_such  # noqa: B018
