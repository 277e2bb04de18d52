"""How fast a large model trains under a parallel strategy, how reliably, and which choice is best.

Thirteen verbs answer most questions. What they are asked about is built in the packages:
``rp.topology.fat_tree(k=8)`` is a network, ``rp.training.Recovery`` a policy::

    plan            the best strategies of a model on a cluster: memory, speed, reliability, cost, reasons
    study           plans of many models, clusters and sizes in one table
    learn           what own runs correct in the predictions of other strategies
    transformer     a model by its name, or by its sizes
    cluster         nodes, accelerators and links by name
    Strategy        how a model is split
    step_time       seconds of a training step, with an interval
    memory          bytes on the GPUs of each pipeline stage
    failure_model   what fails in a job, how often, and whom it stops
    goodput         the share of the speed that failures leave
    joint           strategy, recovery, checkpoints and spares, chosen together
    card            counts, price, distances, cuts, throughput and availability of a network
    evaluate        the probability that a network connects its terminals: exact, or certified bounds

``help(rp.step_time)`` tells more of each. Packages, from the lowest floor to the highest: `units`,
`published`, `hardware`, `sweep`, `plotting`; `topology`, `workload`; `metrics`, `parallel`;
`reliability`; `training`; `optimize`; `atlas`, `planning`, `rehearsal`. Each loads when it is first
used. The first `evaluate` compiles its loops, once, for about 25 s. What takes longer than two
seconds says so on stderr, unless ``RELPARALLEL_QUIET`` is set.

Quantities are SI (s, bytes, bytes/s, FLOP/s). Bad input is refused with a ValueError or a TypeError
that names the argument, its value and what is allowed; the functions do not repeat this.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
