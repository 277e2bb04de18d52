import inspect
from pathlib import Path

import pytest

import relparallel.topology as topology
from relparallel.topology import describe, names
from relparallel.topology.description import Description, design, rules


def test_every_design_is_a_builder_with_the_parameters_of_its_closed_forms():
    for name in names():
        assert hasattr(topology, name), f"add {name} to relparallel/topology/__init__.pyi"
        parameters = inspect.signature(getattr(topology, name)).parameters
        builder = ", ".join(given for given in parameters if given != "rng")
        with pytest.raises(
            ValueError, match=f"parameters of {name} must be {builder}, got no_such"
        ):
            describe(name, no_such=1)


def test_names_are_in_order_and_each_once():
    assert list(names()) == sorted(set(names()))


def test_a_registered_design_is_found_by_name(monkeypatch):
    monkeypatch.setattr("relparallel.topology.description._RULES", {})

    def form(capacity: int = 1) -> Description:
        return Description(nodes={"host": 2}, degrees={"host": (0, capacity)}, links=capacity)

    @design(closed_form=form)
    def pair(capacity: int = 1) -> None: ...

    assert names() == ("pair",)
    assert describe("pair").links == 1
    found = describe("pair", capacity=3)
    assert (found.design, found.parameters) == ("pair", {"capacity": 3})
    assert (found.hosts, found.switches, found.degrees["host"]) == (2, 0, (0, 3))
    assert list(found.to_frame().index) == ["hosts", "switches", "links"]


def test_a_design_stands_in_its_module_with_all_that_belongs_to_it():
    """A new design is one decorated function and one public name; this says what is missing."""
    from chapters.drawing.layouts import LAYOUTS

    stub = Path(topology.__file__).with_suffix(".pyi").read_text()
    for name, rule in rules().items():
        module = rule.closed_form.__module__.removeprefix("relparallel.topology")
        line = f"from {module} import {name} as {name}"
        assert f"{name} as {name}" in stub, f"add to relparallel/topology/__init__.pyi: {line}"
        assert rule.sizes is not None, f"give the sizes of {name} in its @design"
        assert rule.layout in LAYOUTS, (
            f"layout of {name} must be one of {', '.join(LAYOUTS)}, got {rule.layout!r}: "
            f"correct its @design, or add a layout to notebooks/chapters/drawing/layouts.py"
        )
        builder = inspect.signature(getattr(topology, name)).parameters
        for part in (rule.closed_form, rule.symmetries):
            expected = [parameter for parameter in builder if parameter != "rng"]
            given = inspect.signature(part).parameters if part else expected
            assert "shares" in given or list(given) == expected, (
                f"{part.__name__} must take the parameters of {name}: {', '.join(expected)}"
            )
