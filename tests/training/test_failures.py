from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from relparallel.hardware import Cluster, ComponentRate, cluster, llama3_interruptions
from relparallel.hardware.machines import LEVELS
from relparallel.parallel import Placement, Strategy
from relparallel.training import (
    CheckpointLevel,
    ComponentClass,
    FailureModel,
    SharedEvents,
    blast_radius,
    failure_model,
)

DEGREES = ("tensor", "context", "data", "pipeline")

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
def test_rates_follow_the_parts_and_the_job_is_one_that_grows(nodes):
    """Software and watchdogs of a job of half the GPUs strike half as often."""
    model = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=nodes))
    reference = FailureModel.from_rates(llama3_interruptions(), Cluster(nodes=2048))
    assert model.node_rate == pytest.approx(reference.node_rate)
    local = sum(model.class_rate(entry) for entry in model.classes if entry.level == "job")
    assert local == pytest.approx(63 / (54 * DAY) * nodes / 2048)


def host_failures(nodes):
    """Failures of host parts per GPU and second, and of the job as a whole."""
    model = FailureModel.from_rates(llama3_interruptions(), nodes)
    hosts = [entry for entry in model.classes if entry.level in ("tray", "node")]
    assert {entry.name for entry in hosts} >= {"CPU", "NIC", "SSD", "Power supply"}
    return sum(model.class_rate(entry) for entry in hosts) / nodes.gpus, model.job_rate / nodes.gpus


@pytest.mark.parametrize("name", ["gb200-186gb-nvl72", "gb300-279gb-nvl72"])
def test_hosts_fail_per_gpu_as_often_in_a_rack_of_trays_as_in_boxes(name):
    """A rack is one node to a job; its hosts are sixteen trays, not one."""
    racks, boxes = cluster(name, 4096), cluster("h100-80gb-dgx", 4096)
    assert host_failures(racks) == pytest.approx(host_failures(boxes), rel=1e-12)
    assert (racks.parts("tray"), racks.gpus_per_part("tray"), boxes.parts("tray")) == (1024, 4, 512)
    # hosts not known: one to a node, which is nine boxes
    whole = Cluster(nodes=64, gpus_per_node=72)
    assert host_failures(whole) == pytest.approx(host_failures(boxes), rel=1e-12)
    network = [FailureModel.from_rates(llama3_interruptions(), at) for at in (racks, boxes)]
    one, other = (sum(m.class_rate(e) for e in m.classes if e.level == "switch") for m in network)
    assert one == pytest.approx(other, rel=1e-12)


def test_a_tray_stops_four_gpus_of_its_rack():
    racks, strategy = cluster("gb200-186gb-nvl72", 512), Strategy(tensor=8, data=64)
    tray = ComponentClass(name="tray", level="tray", rate=1e-8)
    model = FailureModel(classes=(tray,), cluster=racks, placement=Placement(strategy=strategy))
    (domain,) = model.domains
    assert (domain.parts, domain.nodes, domain.replicas) == (128, 1, 1)
    hit = blast_radius(tray, Placement(strategy=strategy), racks)
    assert (hit.replicas, hit.ranks, hit.nodes) == (1, 8, 1)


def test_a_switch_tray_of_nvlink_is_a_part_of_its_own_and_stops_its_rack():
    """Nine of a rack, none of a box; its rate is that of the part, whatever else the rack holds."""
    racks, split = cluster("gb200-186gb-nvl72", 512), Strategy(tensor=8, data=64)
    counted = ComponentRate(
        cause="NVLink switch tray",
        category="NVLink",
        level="nvlink",
        events=3,
        components=90,
        duration=1e6,
    )
    table = llama3_interruptions()
    table = replace(table, causes=(*table.causes, counted))
    model = failure_model(racks, split, rates=table)
    assert model.to_frame().set_index("class").loc[
        "NVLink switch tray", ["parts", "nodes"]
    ].tolist() == [
        72,
        1,
    ]
    mine = [domain for domain in model.domains if domain.component.level == "nvlink"]
    assert [(d.parts, d.nodes, d.replicas) for d in mine] == [(72, 1, 8)]
    assert mine[0].rate == pytest.approx(72 * 3 / (90 * 1e6))
    bare = failure_model(racks, split)
    assert 1 / model.mtbf - 1 / bare.mtbf == pytest.approx(mine[0].rate)
    assert blast_radius(mine[0].component, Placement(strategy=split), racks).nodes == 1
    with pytest.raises(
        ValueError, match="nvlink_trays must be given for failures of level 'nvlink'"
    ):
        failure_model(cluster("h100-80gb-dgx", 512), split, rates=table)


def test_all_parts_of_a_rack_are_counted_by_what_they_hit():
    """Trays lost one by one: a rack where two replicas meet counts nine times with two."""
    # nodes of 8, replicas of 4: two on each node
    place = Placement(strategy=Strategy(tensor=4, data=6))
    nodes = Cluster(nodes=3, gpus_per_node=8, nvlink_trays=5)
    model = FailureModel(
        classes=(ComponentClass(name="s", level="nvlink", rate=1.0),),
        cluster=nodes,
        placement=place,
    )
    assert [(d.parts, d.replicas) for d in model.domains] == [(15, 2)]
    assert model.mtbf == pytest.approx(1 / 15)


def test_a_source_is_passed_on_to_the_model():
    events, split = SharedEvents(sizes=(0.5, 0.5)), Strategy(data=64)
    node = ComponentClass(name="node", level="node", rate=1e-8)
    for rates in ("llama3", (node,)):
        model = failure_model(Cluster(nodes=8), split, rates=rates, source=events)
        assert model.source is events
        assert model.mtbf > failure_model(Cluster(nodes=8), split, rates=rates).mtbf
    with pytest.raises(TypeError, match="source"):
        failure_model(Cluster(nodes=8), split, source="events")


def test_rates_of_a_run_without_its_gpus_stay_as_they_are_given():
    table = replace(llama3_interruptions(), gpus=None, gpus_per_node=None)
    racks = cluster("gb200-186gb-nvl72", 4096)
    model = FailureModel.from_rates(table, racks)
    assert [entry.rate for entry in model.classes] == [row.rate for row in table.causes]
    job = sum(model.class_rate(entry) for entry in model.classes if entry.level == "job")
    assert job == pytest.approx(63 / (54 * DAY))


def test_memory_of_a_node_does_not_outlive_a_tray_of_it():
    memory = CheckpointLevel(name="memory", cost=1.0, restart=60.0, survives={"node": 0.25})
    assert (memory.survival("tray"), memory.survival("gpu"), memory.survival("rack")) == (
        0.25,
        1.0,
        1.0,
    )
    assert replace(memory, survives={"node": 0.25, "tray": 0.5}).survival("tray") == 0.5
    assert memory.survival("nvlink") == 0.25


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
    [
        ("level", "hall"),
        ("rate", -1.0),
        ("rate", float("nan")),
        ("effect", "slow"),
        ("detection", -1.0),
        ("repair", -1.0),
        ("slowdown", 0.5),
        ("slowdown", 2.0),
        ("name", 3),
    ],
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


@given(
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([1, 2]),
    st.sampled_from(LEVELS),
    st.sampled_from(list(permutations(DEGREES))),
)
def test_domains_are_what_a_count_over_every_part_finds(t, p, d, zero, shard, level, order):
    """Every part alone: its ranks, their replicas, and whether a shard has a copy elsewhere."""
    strategy = Strategy(tensor=t, pipeline=p, data=8 * d, zero_stage=zero, shard=8 * d // shard)
    wide = {"nodes_per_switch": 2, "nodes_per_rack": 2 * t * p, "nvlink_trays": 3}
    cluster = Cluster(nodes=2 * t * p * d, gpus_per_node=4, **wide)
    placement = Placement(strategy=strategy, order=order)
    entry = ComponentClass(name="part", level=level, rate=1e-9)
    found = FailureModel(classes=(entry,), cluster=cluster, placement=placement).domains
    assert sum(domain.parts for domain in found) == cluster.parts(level)
    assert sum(domain.rate for domain in found) == pytest.approx(1e-9 * cluster.parts(level))
    width, expected = cluster.gpus_per_part(level), Counter()
    shards = strategy.shard_group if zero else 1
    for part in range(cluster.parts(level)):
        first = part * width % cluster.gpus  # three switch trays before the same GPUs
        behind = set(range(first, first + width))
        hit = sum(bool(behind & set(replica)) for replica in placement.replicas.tolist())
        lost = any(
            set(group[j::shards]) <= behind
            for group in placement.data_groups.tolist()
            for j in range(shards)
        )
        expected[hit, level == "job" or lost] += 1
    if level == "job":
        assert [(domain.replicas, domain.nodes) for domain in found] == [(8 * d, 0)]
    else:
        assert {(domain.replicas, domain.state_lost): domain.parts for domain in found} == dict(
            expected
        )
        assert {domain.nodes for domain in found} == {max(width // 4, 1)}


def test_a_degraded_part_slows_and_stops_nothing():
    slow = ComponentClass(name="adapter", level="gpu", rate=1e-8, effect="degrade", slowdown=1.4)
    place = Placement(strategy=Strategy(tensor=8, data=2))
    model = FailureModel(classes=(slow,), cluster=Cluster(nodes=2), placement=place)
    assert (model.mtbf, model.node_rate, model.job_rate) == (float("inf"), 0, 0)
    (domain,) = model.domains
    assert (domain.nodes, domain.parts, domain.state_lost) == (0, 16, False)
    assert not blast_radius(slow, place, Cluster(nodes=2)).ranks


def test_domains_need_a_placement_that_fills_the_cluster():
    entry = ComponentClass(name="node", level="node", rate=1e-9)
    with pytest.raises(ValueError, match="placement must be given"):
        _ = FailureModel(classes=(entry,), cluster=Cluster(nodes=2)).domains
    with pytest.raises(ValueError, match="gpus must be"):
        FailureModel(
            classes=(entry,),
            cluster=Cluster(nodes=2),
            placement=Placement(strategy=Strategy(tensor=8)),
        )
