"""Choosing: solvers that return an optimum with its proof.

Where to begin, by what is bought:

- Redundant parts within budgets: `redundancy_allocation`; for many budgets at once `redundancy_allocations`.
- The cheapest links that are reliable enough: `reliable_network`; that survive k - 1 failures:
  `survivable_augmentation`.
- Two routes that no one event breaks: `disjoint_routes`.
- The cheapest fabric for so many hosts: `cheapest_fabric`.
- Spares: `spares`; when to replace or to look: `replacement_interval`, `inspection_interval`.
- Where to keep copies of checkpoints: `place_replicas`.
- How to split and run a training job: `best_stage_layers`, `joint` (of strategies whose speed is computed, or
  was measured), `break_even_rate`.
- Which device runs which operators: `throughput_partition`. Which device of a server runs which stage:
  `stage_order`.
- Who gets which GPUs of a shared cluster: `share_cluster`, on applications of a `modelled_application`.
- How many GPUs answer requests in time: `nexus`. How a model is sent to a GPU: `switch_plan`, and
  `switching_time` of any grouping.
- Which layers each stage of a pipeline has, and on how many devices: `pipedream`, `dapple`, `alpa`, `stanza`.
- Which strategy each operator has: `operator_plan` and `anneal_plan` of an `OperatorProblem`; by halving
  devices: `hypar`, `tofu`.

Most results carry the ``formulation`` that was solved, or ``explain()`` themselves, and have ``to_frame()``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
