"""Kinds of bad values that are meant to be taken after all, by name and argument.

Infinity where something may last for ever, text where a name is free.
"""

import valid_availability
import valid_checkpoints
import valid_goodput
import valid_network_failures
import valid_planning
import valid_real
import valid_reliability
import valid_workload

FREE = {"text"}
MEANINGFUL: dict[str, dict[str, set[str]]] = {
    "parallel.bytes_sent": {"rounds": {"empty"}},  # one rank sends nothing
    "parallel.execute": {"rounds": {"empty"}},
    "parallel.model_state_bytes": {"data": {"infinite"}},  # the limit of many replicas
    "parallel.rounds_time": {"rounds": {"empty"}},
    "topology.Design": {"name": FREE, "paper": FREE},
    "topology.SharedRisk": {"name": FREE, "nodes": {"empty"}, "edges": {"empty"}},
    "topology.Topology": {"shared_risk": {"empty"}},
    "topology.as_topology": {"name": FREE},
    "training.ComponentClass": {"name": FREE},
    "training.Job": {"reason": FREE},
    **valid_workload.MEANINGFUL,
    **valid_checkpoints.MEANINGFUL,
    **valid_goodput.MEANINGFUL,
    **valid_availability.MEANINGFUL,
    **valid_network_failures.MEANINGFUL,
    **valid_planning.MEANINGFUL,
    **valid_real.MEANINGFUL,
    **valid_reliability.MEANINGFUL,
    "topology.read": {"path": FREE},
    "topology.write": {"path": FREE},
    "workload.LayerGraph": {"title": FREE, "edges": {"empty"}},  # a model of one layer
}
