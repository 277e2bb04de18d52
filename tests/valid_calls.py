"""One valid call of all that the numerical packages offer: the ground from which bad input departs.

``CALLS[name]`` makes the arguments; results of builders are taken apart into their fields, so that
their constructors are called like everything else.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import networkx as nx
import numpy as np

import relparallel as rp
import small_networks
import valid_availability
import valid_checkpoints
import valid_closed_forms
import valid_collectives
import valid_costs
import valid_designs
import valid_goodput
import valid_joint
import valid_layer_graphs
import valid_network_failures
import valid_ordering
import valid_planning
import valid_real
import valid_recovery
import valid_reliability
import valid_schedules
import valid_search
import valid_simulation
import valid_workload
from relparallel.parallel.gpu_memory import PRECISIONS
from valid_workload import Arguments, fields, model


def strategy() -> Any:
    return rp.parallel.Strategy(tensor=8, pipeline=2, data=4)


def placement() -> Any:
    return rp.parallel.Placement(strategy=strategy())


def cluster() -> Any:
    return rp.hardware.Cluster(nodes=8)


def component() -> Any:
    return rp.training.ComponentClass(name="GPU", level="gpu", rate=1e-8)


def job() -> Any:
    times = {"checkpoint": 60.0, "restart": 900.0, "pause": 30.0}
    return rp.training.Job(nodes=64, nodes_per_replica=16, node_rate=4e-8, **times)


FOLDER = tempfile.mkdtemp()  # of the files that are written and read
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def written(form: str) -> str:
    """Path of a file in that form."""
    path = f"{FOLDER}/network.{form}"
    rp.topology.write(rp.topology.fat_tree(4), path, form)
    return path


CALLS: dict[str, Callable[[], Arguments]] = {
    # topology: every design, then those with what is optional
    **{f"topology.{name}": partial(small_networks.arguments, name) for name in rp.topology.names()},
    "topology.leaf_spine": lambda: {"leaves": 3, "spines": 2, "hosts_per_leaf": 2, "cables": 2},
    "topology.torus": lambda: {"dims": (3, 4), "wrap": (True, False)},
    "topology.dgx_superpod": lambda: {"scalable_units": 1, "nvswitch_detail": True},
    "topology.dragonfly": lambda: {"p": 1, "a": 2, "h": 1, "arrangement": "palmtree"},
    "topology.hyperx": lambda: {"dims": (2, 3), "t": 1, "k": 2},
    "topology.nvl72": lambda: {"racks": 2, "nvswitch_detail": True},
    "topology.rail_only": lambda: {"domains": 4, "gpus_per_domain": 2, "switch_ports": 8},
    "topology.tpu_v4": lambda: {"dims": (4, 4, 8), "cubes": (5, 2)},
    "topology.Design": lambda: {"name": "own", "parameters": {"k": 4}, "paper": "al-fares2008"},
    "topology.SharedRisk": lambda: {"name": "duct", "nodes": (0, 1), "edges": (2,)},
    "topology.Topology": lambda: fields(rp.topology.fat_tree(4)),
    "topology.as_topology": lambda: {"graph": nx.cycle_graph(5), "name": "graph"},
    "topology.check": lambda: {"topology": rp.topology.fat_tree(4)},
    "topology.describe": lambda: {"design": "fat_tree", "k": 4},
    "topology.paths": lambda: {
        "topology": rp.topology.vl2(4, 4),
        "source": 0,
        "target": 79,
        "routing": "design",
        "rng": np.random.default_rng(1),
    },
    "topology.names": dict,
    "topology.bill_of_materials": lambda: {
        "design": nx.cycle_graph(5),
        "prices": rp.topology.unit_prices(),
    },
    "topology.bill_of_materials of Helios": lambda: {
        "design": "helios",
        "pods": 2,
        "hosts_per_pod": 16,
        "electrical": 0.5,
        "optical": 0.5,
        "wavelengths": 8,
    },
    "topology.unit_prices": lambda: {"name": "helios2010"},
    "topology.orbits": lambda: {
        "topology": nx.cycle_graph(3),
        "node_colours": np.zeros(3),
        "edge_colours": np.zeros(3),
    },
    "topology.read": lambda: {"path": written("simai"), "format": "simai"},
    "topology.write": lambda: {
        "topology": rp.topology.fat_tree(4),
        "path": f"{FOLDER}/network",
        "format": "ns3",
    },
    # metrics
    "metrics.edge_connectivity": lambda: {"topology": nx.cycle_graph(5), "source": 0, "target": 2},
    "metrics.hop_statistics": lambda: {
        "topology": nx.cycle_graph(5),
        "hops": "links",
        "endpoints": "hosts",
        "sources": 2,
        "rng": np.random.default_rng(1),
        "symmetry": False,
    },
    "metrics.bisection": lambda: {"topology": nx.cycle_graph(6), "method": "auto"},
    "metrics.survival": lambda: {"topology": nx.cycle_graph(5), "alive": np.ones(10, dtype=bool)},
    "metrics.concurrent_flow": lambda: {
        "topology": nx.cycle_graph(5),
        "traffic": "permutation",
        "share": 0.5,
        "gap": 0.01,
        "rng": np.random.default_rng(1),
    },
    "metrics.ecmp_load": lambda: {"topology": nx.cycle_graph(5), "alive": None, "split": "paths"},
    # workload
    **valid_joint.CALLS,
    **valid_layer_graphs.CALLS,
    **valid_availability.CALLS,
    **valid_network_failures.CALLS,
    **valid_planning.CALLS,
    **valid_search.CALLS,
    **valid_real.CALLS,
    **valid_recovery.CALLS,
    **valid_reliability.CALLS,
    **valid_simulation.CALLS,
    **valid_checkpoints.CALLS,
    **valid_closed_forms.CALLS,
    **valid_goodput.CALLS,
    **valid_workload.CALLS,
    **valid_costs.CALLS,
    **valid_designs.CALLS,
    # parallel
    **valid_collectives.CALLS,
    **valid_ordering.CALLS,
    **valid_schedules.CALLS,
    "parallel.Placement": lambda: fields(placement()),
    "parallel.Precision": lambda: fields(PRECISIONS["mixed"]),
    "parallel.Strategy": lambda: fields(strategy()),
    "parallel.activation_bytes_per_layer": lambda: {
        "sequence": 32,
        "hidden": 64,
        "heads": 8,
        "micro_batch": 1,
        "tensor": 2,
        "context": 1,
        "sequence_parallel": True,
        "recompute": "none",
    },
    "parallel.memory": lambda: {
        "model": model(),
        "strategy": strategy(),
        "global_batch": 8,
        "precision": "mixed",
        "flash_attention": False,
        "dropout": True,
        "offload": "none",
        "offload_to": "host",
        "stage_layers": [model().layers // strategy().pipeline] * strategy().pipeline,
        "software": "megatron-2022",
    },
    "parallel.memory on a cluster": lambda: {
        "model": model(),
        "strategy": strategy(),
        "global_batch": 8,
        "cluster": cluster(),
    },
    "parallel.model_state_bytes": lambda: {
        "parameters": 7.5e9,
        "data": 64,
        "zero_stage": 1,
        "parameter_bytes": 2.0,
        "gradient_bytes": 2.0,
        "optimizer_bytes": 12.0,
    },
    # training
    "training.ComponentClass": lambda: fields(component()),
    "training.FailureModel": lambda: {
        "classes": (component(),),
        "cluster": cluster(),
        "placement": placement(),
        "source": valid_recovery.TWOS,
    },
    "training.Job": lambda: fields(job()),
    "training.failure_model of a cluster": lambda: {
        "topology": cluster(),
        "strategy": placement().strategy,
        "placement": placement(),
        "rates": "llama3",
        "source": None,
    },
    "training.blast_radius": lambda: {
        "component": component(),
        "placement": placement(),
        "cluster": cluster(),
        "reshard": True,
    },
    "training.break_even_repair": lambda: {
        "speedup": 1.1,
        "nodes_per_replica": 16,
        "other_nodes_per_replica": 8,
        "node_rate": 4e-8,
    },
    "training.checkpoint_interval": lambda: {
        "checkpoint": 60.0,
        "mtbf": 10800.0,
        "method": "exact",
    },
    "training.checkpoint_time": lambda: {
        "parameters": 7.5e9,
        "bandwidth": 1e9,
        "bytes_per_parameter": 14.0,
    },
    "training.crossovers": lambda: {
        "job": job(),
        "policy": "restart",
        "other": job(),
        "other_policy": "elastic",
        "speedup": 1.0,
        "shortest": 60.0,
        "longest": 1e6,
    },
    "training.drop_rule": lambda: {"strategy": strategy(), "reshard": True},
    "training.effective_training_time_ratio": lambda: {
        "mtbf": 6490.0,
        "interval": 1800.0,
        "checkpoint": 30.0,
        "restart": 300.0,
        "down": 10.0,
        "method": "exact",
        "horizon": 1e6,
    },
    "training.optimal_training_time_ratio": lambda: {
        "checkpoint": 30.0,
        "mtbf": 6490.0,
        "restart": 300.0,
        "down": 10.0,
    },
    "training.start_ups": dict,
    "training.statistical_efficiency": lambda: {"share": 0.5, "noise": 1.0},
    "training.relative_goodput": lambda: {
        "job": job(),
        "policy": "spares",
        "repair": 86400.0,
        "spares": 16,
    },
}


@cache
def returned(name: str) -> Any:
    """What the valid call returns, computed once in a process."""
    package, _, function = name.split()[0].partition(".")
    return getattr(getattr(rp, package), function)(**CALLS[name]())
