import inspect

import pytest

import relparallel.topology as topology
from relparallel.topology import Description, describe, names
from relparallel.topology.description import closed_form


def test_every_design_is_a_builder_with_the_parameters_of_its_closed_forms():
    for design in names():
        parameters = inspect.signature(getattr(topology, design)).parameters
        builder = ", ".join(name for name in parameters if name != "rng")  # no closed form depends on chance
        with pytest.raises(ValueError, match=f"parameters of {design} must be {builder}, got no_such"):
            describe(design, no_such=1)


def test_names_are_in_order_and_each_once():
    assert list(names()) == sorted(set(names()))


def test_a_registered_form_is_found_by_name(monkeypatch):
    monkeypatch.setattr("relparallel.topology.description._FORMS", {})

    @closed_form("pair")
    def pair(capacity: int = 1) -> Description:
        return Description(
            design="pair", parameters={}, nodes={"host": 2}, degrees={"host": (0, capacity)}, links=capacity
        )

    assert names() == ("pair",)
    assert describe("pair").links == 1
    form = describe("pair", capacity=3)
    assert (form.hosts, form.switches, form.degrees["host"]) == (2, 0, (0, 3))
    assert list(form.to_frame().index) == ["hosts", "switches", "links"]


@pytest.mark.parametrize("degrees", [{}, {"host": -1}, {"host": (1, -1)}, {"host": 1.5}, {"host": [1]}, 3])
def test_degrees_are_counts(degrees):
    with pytest.raises((TypeError, ValueError), match="degrees must"):
        Description(design="torus", parameters={}, nodes={"node": 2}, degrees=degrees, links=1)
