"""Recurrent networks: one product for all steps of the inputs, and one for every step of the state."""

from typing import Final

from relparallel._checks import require_choice, require_int
from relparallel.workload._blocks import embedding, linear, pointwise
from relparallel.workload.operators import Operator, OperatorTable

_GATES: Final = {"rnn": 1, "lstm": 4}


def recurrent(
    cell: str, inputs: int, hidden: int, *, layers: int = 1, steps: int = 1, batch: int = 1,
    vocabulary: int | None = None,
) -> OperatorTable:  # fmt: skip
    """Recurrent network with one tanh per state, or three gates and a candidate (long short-term memory).

    Parameters
    ----------
    cell : {"rnn", "lstm"}
        What makes a state.
    inputs, hidden, layers, steps, batch : int
        Widths of an input and of the state; layers; steps and sequences of one pass.
    vocabulary : int, optional
        Words of a language model around it: a table in front, logits behind.

    Returns
    -------
    OperatorTable
        h (i + h + 1) parameters for a layer with inputs of width i, four times as many with gates. The
        weights of the state are read again at every step. Elman, "Finding Structure in Time", 1990.
        Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997. Zaremba et al., 2014 (language models).

    Examples
    --------
    >>> recurrent("lstm", 1500, 1500, layers=2, vocabulary=10000).parameters
    66022000
    """
    gates = _GATES[require_choice(tuple(_GATES), cell=cell)]
    require_int(inputs=inputs, hidden=hidden, layers=layers, steps=steps, batch=batch, at_least=1)
    tokens, columns = steps * batch, gates * hidden
    rows: list[Operator] = [linear("first inputs", tokens, columns, inputs, bias=True)]
    if layers > 1:
        rows += [linear("other inputs", tokens, columns, hidden, times=layers - 1, bias=True)]
    rows += [linear("state", batch, columns, hidden, times=steps * layers, copies=layers)]
    made = "lstm cell" if cell == "lstm" else "tanh cell"
    rows += [pointwise("cell", made, batch, hidden, times=steps * layers)]
    if vocabulary is not None:
        require_int(vocabulary=vocabulary, at_least=1)
        rows += [embedding("embedding", tokens, inputs, vocabulary)]
        rows += [linear("logits", tokens, vocabulary, hidden, bias=True)]
        rows += [pointwise("loss", "softmax", tokens, vocabulary)]
    return OperatorTable(name=cell.upper(), operators=tuple(rows))
