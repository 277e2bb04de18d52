"""The parameters of a notebook: what its ``parameters`` cell declares, and values given instead.

papermill passes a misspelled or ill-typed parameter on without a word; here it is refused before
anything runs. Only the standard library is imported.
"""

import ast
import difflib
import math
import re
from collections.abc import Mapping
from itertools import product
from typing import Any
from urllib.parse import quote

from .notebook import Notebook, NotebookError, parameters_source, sha256

_LONGEST = 200  # characters of a folder's name; file systems take 255
_RANGE = re.compile(r"; (\S+) to (\S+)$")  # at the end of a parameter's comment


def declared(notebook: Notebook) -> dict[str, Any]:
    """Return a notebook's parameters and their default values, read without running anything."""
    try:
        statements = ast.parse(parameters_source(notebook.content)).body
        return dict(_assignment(statement) for statement in statements)
    except (SyntaxError, ValueError) as error:
        raise NotebookError(
            f"the parameters cell of {notebook.name} must hold only lines such as mttr_hours = "
            f"24.0: {error}"
        ) from None


def ranges(notebook: Notebook) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of each parameter whose comment ends ``; 1 to 80``."""
    source = parameters_source(notebook.content)
    lines = source.splitlines()
    found = {}
    for statement in ast.parse(source).body:
        if limits := _RANGE.search(lines[(statement.end_lineno or 1) - 1]):
            low, high = map(float, limits.groups())
            found[_assignment(statement)[0]] = low, high
    return found


def checked(notebook: Notebook, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the parameters ``given`` as text, each of its default's type and in range."""
    defaults = declared(notebook)
    for name in given:
        if name not in defaults:
            close = difflib.get_close_matches(name, defaults, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise NotebookError(
                f"{notebook.name} has no parameter {name}{hint}; {_listing(defaults)}"
            )
    values = {}
    for name, text in given.items():
        try:
            values[name] = _converted(_literal(text, defaults[name]), defaults[name])
        except ValueError:
            raise NotebookError(
                f"parameter {name} of {notebook.name} must be {_kind(defaults[name])} "
                f"(its default is {defaults[name]!r}), got {text!r}; {_listing(defaults)}"
            ) from None
    for name, (low, high) in ranges(notebook).items():
        if name in values and not low <= values[name] <= high:
            raise NotebookError(
                f"parameter {name} of {notebook.name} must be from {low:g} to {high:g} "
                f"(its default is {defaults[name]!r}), got {values[name]!r}"
            )
    return values


def combinations(notebook: Notebook, given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return each combination of the values ``given``, by a name for its folder; a single has none.

    Commas part values, as for Hydra, except inside quotes and brackets.
    """
    several = product(*(_parted(name, text) for name, text in given.items()))
    found = {}
    for texts in several:
        values = checked(notebook, dict(zip(given, texts, strict=True)))
        name = ",".join(f"{key}={_in_a_path(value)}" for key, value in values.items())
        name = name if len(name) < _LONGEST else sha256(name.encode())
        if name in found:
            raise NotebookError(f"{notebook.name} would run twice with {name}: name it once")
        found[name] = values
    return found if len(found) > 1 else {"": values}


def _parted(name: str, text: str) -> list[str]:
    """Part values at commas; what begins with a quote or a bracket goes on until it is closed."""
    values, held = [], ""
    for part in text.split(","):
        held += part
        if _whole(held):
            values.append(held.strip())
            held = ""
        else:
            held += ","
    if held and "," in text:
        raise NotebookError(
            f"values of {name} must be parted by single commas, and text that holds a comma be in "
            f"quotes, such as {name}=\"'a, b','c'\", got {text!r}"
        )
    return values if len(values) > 1 else [text]


def _whole(text: str) -> bool:
    """Tell whether this is a value: a bare word, or else a closed literal."""
    try:
        return text[:1] not in " ,'\"[({" or _literal(text, 0) is not None
    except ValueError:
        return False


def _in_a_path(value: Any) -> str:
    """Write a value as a part of a folder's name: other values have other names."""
    return quote(value if isinstance(value, str) else repr(value).removesuffix(".0"), safe="+")


def _assignment(statement: ast.stmt) -> tuple[str, Any]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
            return name, ast.literal_eval(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name, ast.literal_eval(value)
    raise ValueError(f"line {statement.lineno} is {ast.unparse(statement)!r}")


def _literal(text: str, default: Any) -> Any:
    """Read ``text`` as a Python literal; a text parameter needs no quotation marks."""
    if isinstance(default, bool) and text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None if isinstance(default, str) else ...
    if value is ...:
        raise ValueError(text)
    return text if isinstance(default, str) and not isinstance(value, str) else value


def _converted(value: Any, default: Any) -> Any:
    """Return ``value`` in the type of ``default``; an integer passes for a float, nothing else."""
    if default is None:
        return value
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)):
        return type(default)(_element(item, default) for item in value)
    if type(value) is not type(default) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(value)
    return value


def _element(item: Any, default: list[Any] | tuple[Any, ...]) -> Any:
    """Return an element in the type of the first of the default's elements that it fits."""
    for example in default:
        try:
            return _converted(item, example)
        except ValueError:
            continue
    if default:
        raise ValueError(item)
    return item


_KINDS = {
    bool: "True or False",
    int: "an integer",
    float: "a finite number",
    str: "text",
    type(None): "a literal",
}


def _kind(default: Any) -> str:
    if isinstance(default, (list, tuple)):
        elements = " or ".join(dict.fromkeys(_kind(item) for item in default)) or "literals"
        return f"a sequence, such as {default!r}, of {elements}"
    return _KINDS.get(type(default), f"a {type(default).__name__}")


def _listing(defaults: Mapping[str, Any]) -> str:
    if not defaults:
        return "it has no parameters"
    known = (f"{name}: {type(value).__name__} = {value!r}" for name, value in defaults.items())
    return "its parameters are " + ", ".join(known)
