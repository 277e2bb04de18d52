import pytest
from hypothesis import given
from hypothesis import strategies as st

from relparallel.hardware import Cluster, llama3_interruptions
from relparallel.training import ComponentClass, FailureModel

DAY = 86400.0


@pytest.fixture(scope="module")
def llama3():
    return FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))


def test_the_table_gives_back_its_counts(llama3):
    events = [round(llama3.class_rate(entry) * 54 * DAY, 6) for entry in llama3.classes]
    assert events == [row.events for row in llama3_interruptions().causes]
    assert 54 * DAY / llama3.mtbf == pytest.approx(419)


def test_failures_of_nodes_and_of_the_job_are_all_failures(llama3):
    assert 2048 * llama3.node_rate + llama3.job_rate == pytest.approx(1 / llama3.mtbf)
    # 54 software, 2 dependency, 7 watchdog, and 6 silent corruptions that reach every replica.
    assert llama3.job_rate * 54 * DAY == pytest.approx(54 + 2 + 7 + 6)


@given(nodes=st.integers(1, 5000))
def test_rates_follow_the_parts_and_those_of_the_job_do_not(nodes):
    model = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=nodes))
    reference = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))
    assert model.node_rate == pytest.approx(reference.node_rate)
    local = sum(model.class_rate(entry) for entry in model.classes if entry.level == "job")
    assert local == pytest.approx(63 / (54 * DAY))


def test_the_number_of_events_does_not_depend_on_how_many_nodes_share_a_switch():
    shared = FailureModel.from_rates(
        llama3_interruptions(nodes_per_switch=2), Cluster(nodes=2048, nodes_per_switch=2)
    )
    assert 54 * DAY / shared.mtbf == pytest.approx(419)
    # but each of the 35 network events now stops two nodes
    assert 2048 * shared.node_rate * 54 * DAY == pytest.approx(350 + 35)


def test_a_model_without_failures_never_stops():
    model = FailureModel(
        classes=(ComponentClass(name="gpu", level="gpu", rate=0.0),), cluster=Cluster(nodes=2)
    )
    assert model.mtbf == float("inf")
    assert model.to_frame()["hours between"].tolist() == [float("inf")]


def test_the_frame_names_every_class(llama3):
    frame = llama3.to_frame()
    assert len(frame) == 18
    assert frame["per day"].sum() == pytest.approx(419 / 54)


@pytest.mark.parametrize(
    ("field", "bad"),
    [("level", "rack"), ("rate", -1.0), ("rate", float("nan")), ("effect", "slow"), ("name", 3)],
)
def test_a_class_checks_its_fields(field, bad):
    with pytest.raises((ValueError, TypeError), match=field):
        ComponentClass(**{"name": "gpu", "level": "gpu", "rate": 1e-9, field: bad})


def test_a_model_checks_its_fields():
    with pytest.raises(ValueError, match="classes"):
        FailureModel(classes=(), cluster=Cluster(nodes=1))
    with pytest.raises(TypeError, match="classes"):
        FailureModel(classes=("gpu",), cluster=Cluster(nodes=1))
    with pytest.raises(TypeError, match="cluster"):
        FailureModel(classes=(ComponentClass(name="g", level="gpu", rate=0.0),), cluster=8)
    with pytest.raises(TypeError, match="rates"):
        FailureModel.from_rates({"gpu": 1.0}, Cluster(nodes=1))
