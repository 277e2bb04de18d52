"""K-terminal reliability of a network whose links and nodes fail independently."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from relparallel._checks import require_choice, require_int, require_real
from relparallel._notices import told
from relparallel.reliability.extensions.srlg import Groups, read_groups
from relparallel.reliability.methods import ROUTES, Question, answer
from relparallel.reliability.problem import LinkChance, NodeChance, Terminals, read_problem
from relparallel.reliability.result import Reliability
from relparallel.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

_METHODS: Final = ("auto", *ROUTES)


@told
def evaluate(
    graph: Topology | nx.Graph[Any],
    terminals: Terminals = "all",
    link_up: LinkChance | None = None,
    node_up: NodeChance | None = None,
    method: Literal["auto", "exact", "closed_form", "bounds"] = "auto",
    *,
    groups: Groups | None = None,
    link_down: LinkChance | None = None,
    node_down: NodeChance | None = None,
    max_states: int = 2**24,
    max_seconds: float = 10.0,
) -> Reliability:
    """Probability that all terminals are up and can communicate.

    Parameters
    ----------
    graph : Topology or networkx.Graph or networkx.MultiGraph
        The network. Every node of a networkx graph is a host and forwards, every link is one
        cable, unless attributes ``endpoint``, ``transit`` (nodes), ``multiplicity`` (links) and so
        on say otherwise.
    terminals : {"all", "switches", "nodes"} or collection of labels
        Nodes that must be connected: all hosts, all switches, all nodes, or the nodes named.
    link_up : float, array [m], mapping or str
        Probability that a cable is up: one for all, one per link (rows of ``Topology.edges``, or
        the order of ``graph.edges``), by pair of labels (links not named never fail), or the name
        of an edge attribute. Of k parallel cables one has to be up. Links never fail where only
        nodes or groups are given.
    node_up : float, array [n], mapping or str
        Probability that a node is up, likewise. A terminal that is down is a failure of the system.
    method : {"auto", "exact", "closed_form", "bounds"}
        "auto": a closed form where there is one, else the frontier DP where it fits ``max_states``
        and ``max_seconds``, else bounds; bounds of a relative width of 1e-9 come before a sweep of
        more than a tenth of that time. Where bounds are too wide, `estimate` samples.
    groups : float, mapping of name to float, or sequence of (members, float), optional
        Groups of shared risk and the probability that each is *down*: all groups of
        ``Topology.shared_risk``, those named, or groups of labels of nodes and pairs of labels.
        Not with closed forms.
    link_down, node_down : as link_up and node_up, optional
        Failure probabilities instead, for parts so good that 1 - up has lost digits.
    max_states : int, optional
        Largest layer of the frontier DP, at up to 100 bytes a state.
    max_seconds : float, optional
        With "auto", the time that the frontier DP may be predicted to take, s.

    Returns
    -------
    Reliability
        With the unreliability as its own sum, of full relative accuracy.

    Notes
    -----
    A node without ``transit`` starts and ends paths but forwards nothing; three or more terminals
    of which one does so over several links are bracketed pair by pair. Series, parallel and degree
    rules and the split at cut nodes come first; then the frontier DP visits the links in an order
    found by beam search. Time: 20 to 70 ns for each of at most Bell(w + 1) states per link,
    w <= 15 the live vertices.

    References
    ----------
    Hardy, Lucet and Limnios, IEEE Transactions on Reliability 56, 2007.

    Examples
    --------
    >>> import networkx as nx
    >>> result = evaluate(nx.complete_graph(5), terminals=(0, 1), link_up=0.9)
    >>> print(f"{result.unreliability:.6e}")
    2.051974e-04
    """
    require_choice(_METHODS, method=method)
    require_int(max_states=max_states, at_least=1, at_most=2**28)
    require_real(max_seconds=max_seconds, above=0)
    given = link_up, node_up, link_down, node_down, groups
    link_up, node_up = 1.0 if link_up is None else link_up, 1.0 if node_up is None else node_up
    problem = read_problem(graph, terminals, link_up, node_up, link_down, node_down)
    if groups is not None:
        problem = replace(problem, groups=read_groups(graph, problem, groups))
    if problem.groups and method == "closed_form":
        raise ValueError("method 'closed_form' must not be combined with groups, got both")
    if all(chance is None for chance in given):
        raise TypeError(
            "link_up, node_up or groups must say how likely parts are to be up, got none of them"
        )
    return answer(Question(graph, problem, max_states, max_seconds), method)
