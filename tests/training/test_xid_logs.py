"""Xid lines of the kernel log: what failed, how often, and from when to when was watched."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from public_data import DATA, needs_data
from relparallel.hardware import Cluster, cluster
from relparallel.training import read_failure_log
from relparallel.training.log_files import DIALECTS
from relparallel.units import DAY


def written(folder: Path, *lines: str, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def xid(stamp: str, number: int, gpu: str = "3b", front: str = "") -> str:
    return (
        f"{stamp}{front} NVRM: Xid (PCI:0000:{gpu}:00): {number}, pid=1, GPU has fallen off the "
        "bus."
    )


def at(second: float, text: str, host: str = "n1") -> str:
    """A line of the journal so many seconds into a day."""
    time = pd.Timestamp("2026-03-02", tz="UTC") + pd.Timedelta(second, "s")
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {host} kernel: {text}"


def line(number: object, gpu: str = "3b", said: str = "pid=1, name=python3") -> str:
    return f"NVRM: Xid (PCI:0000:{gpu}:00): {number}, {said}"


def read(folder: Path, *lines: str, population: int = 64, **options):
    """A log of a month with these lines, in a file that is recognised."""
    whole = [at(0, "usb 1-1: new device", "n9"), *lines, at(30 * DAY, "usb 1-1: new device", "n9")]
    return read_failure_log(written(folder, *whole), population=population, **options)


@pytest.mark.parametrize(
    ("stamps", "front"),
    [
        (("[Mon Mar  2 10:15:02 2026]", "[Tue Mar  3 10:15:12 2026]"), ""),
        (("gpu-017: [Mon Mar  2 10:15:02 2026]", "gpu-017: [Tue Mar  3 10:15:12 2026]"), ""),
        (("Mar  2 10:15:02", "Mar  3 10:15:12"), " gpu-017 kernel:"),
        (("Mar 02 10:15:02.250000", "Mar 03 10:15:12.250000"), " gpu-017 kernel:"),
        (("2026 Mar  2 10:15:02", "2026 Mar  3 10:15:12"), " gpu-017 kernel:"),
        (("Mar  2 10:15:02", "Mar  3 10:15:12"), " gpu-017 kernel: [ 1843.308145]"),
        (("2026-03-02T10:15:02+0000", "2026-03-03T11:15:12+01:00"), " gpu-017 kernel:"),
        (("2026-03-02T10:15:02.000001+00:00", "2026-03-03T10:15:12+00:00"), " gpu-017 kernel:"),
        (("Mon 2026-03-02 10:15:02 UTC", "Tue 2026-03-03 10:15:12 UTC"), " gpu-017 kernel:"),
        (("2026/03/02 10:15:02", "2026/03/03 10:15:12"), " gpu-017 kernel:"),
        (("1772446502.000000", "1772532912.000000"), " gpu-017 kernel:"),
        (("2026-03-02T10:15:02,500000+00:00", "2026-03-03T10:15:12,500000+00:00"), ""),
        (("[  123.450000]", "[86533.450000]"), ""),
        (
            (
                "kern  :warn  : [Mon Mar  2 10:15:02 2026]",
                "kern  :warn  : [Tue Mar  3 10:15:12 2026]",
            ),
            "",
        ),
        (("Feb 28 10:15:02", "Feb 29 10:15:12"), " gpu-017 kernel:"),
        (("Dec 31 10:15:02", "Jan  1 10:15:12"), " gpu-017 kernel:"),
    ],
)
def test_xid_lines_of_every_clock(tmp_path, stamps, front):
    lines = [xid(stamps[0], 79, front=front), "noise", xid(stamps[1], 119, "86", front)]
    log = read_failure_log(written(tmp_path, *lines), population=1)
    assert np.diff(log.start) == pytest.approx([86410.0])
    host = front.split()[0] if front else stamps[0].split(": [")[0]
    assert set(log.node) == {"gpu-017" if "gpu-017" in host else "log.txt"}
    assert log.cause.tolist() == ["xid 79", "xid 119"]
    assert np.isnan(log.repairs).all()
    assert all(entry.repair is None and entry.level == "gpu" for entry in log.classes())
    # nothing but the failures tells when the window began and ended
    assert log.guessed
    assert "39.5 times or more in one of twenty" in " ".join(log.notes)
    known = read_failure_log(written(tmp_path, *lines), population=1, repair=1800.0)
    assert known.repairs == pytest.approx(1800.0)


def test_the_journal_as_json_is_read_as_it_is_printed(tmp_path):
    def entry(second: int, host: str, message: object) -> str:
        fields = {
            "__REALTIME_TIMESTAMP": str(1772446502000000 + second * 10**6),
            "_HOSTNAME": host,
            "SYSLOG_IDENTIFIER": "kernel",
            "MESSAGE": message,
        }
        return json.dumps(fields)

    lines = [
        entry(0, "n1", "Linux version 6.8"),
        entry(3600, "n2", line(79)),
        entry(7200, "n1", [78, 86]),  # bytes, as the journal writes what is no text
        "{",
        entry(10 * 86400, "n1", "usb"),
    ]
    log = read_failure_log(written(tmp_path, *lines), population=4)
    assert (log.node.tolist(), log.start.tolist(), log.span) == (["n2"], [3600.0], 864000.0)


def test_the_host_of_a_syslog_line_with_fields_is_its_node(tmp_path):
    lines = [
        xid(f"<4>1 2026-03-0{d}T10:15:02.1Z {n} kernel - - -", 79)
        for d, n in ((2, "a1"), (3, "a2"))
    ]
    log = read_failure_log(written(tmp_path, *lines), population=2, dialect="xid")
    assert log.node.tolist() == ["a1", "a2"]


def test_reports_and_errors_of_programs_are_no_failures_unless_asked_for(tmp_path):
    stamps = [f"[{second}.000000]" for second in (10, 20, 400, 500, 900)]
    lines = [xid(s, n) for s, n in zip(stamps, (79, 48, 31, 13, 94), strict=True)]
    path = written(tmp_path, *lines)
    log = read_failure_log(path, population=2, dialect="xid", since=0, until=3600.0)
    assert log.cause.tolist() == ["xid 79"]  # 48 is of the same node
    assert "left out: 1 lines of Xid 31, 1 lines of Xid 13, 1 lines of Xid 94" in log.notes
    assert (log.begin, log.finish) == (0.0, 3600.0)
    asked = read_failure_log(path, population=2, dialect="xid", states=["31", 13], silence=99.0)
    assert asked.cause.tolist() == ["xid 31", "xid 13"]


def test_a_gpu_that_repeats_its_error_has_failed_once_until_it_is_silent_or_reset(tmp_path):
    repeated = [at(3600 + 90 * k, line(95)) for k in range(200)]
    log = read(tmp_path, *repeated, at(20 * DAY, line(79, "86"), "n2"))
    assert log.node.tolist() == ["n1", "n2"]
    assert log.rate == pytest.approx(2 / (64 * 30 * DAY))
    assert log.notes[0].startswith("201 lines of what failed tell of 2 incidents: ")
    for silence, many in ((90.0, 2), (89.0, 201)):
        assert (
            read(tmp_path, *repeated, at(20 * DAY, line(79), "n2"), silence=silence).incidents
            == many
        )


@pytest.mark.parametrize(
    ("between", "many"),
    [
        ("Linux version 6.8.0-1020-nvidia (buildd@lcy02)", 2),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.105.08", 2),
        ("GPU 00000000:3B:00.0 was successfully reset.", 2),
        ("NVRM: GPU at PCI:0000:3b:00: GPU reset completed", 2),
        (
            line(
                154, said="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
            ),
            2,
        ),
        (
            line(
                154, said="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
            ),
            1,
        ),
        ("NVRM: GPU0 nvAssertFailed: Reset required [NV_ERR_RESET_REQUIRED]", 1),
        ("GPU 00000000:3B:00.0: reset failed", 1),
        ("usb 1-1: new device", 1),
    ],
)
def test_a_reset_ends_an_incident_that_is_not_silent(tmp_path, between, many):
    lines = [at(3600, line(95)), at(3660, between), at(3720, line(95))]
    assert read(tmp_path, *lines).incidents == many
    # of another node it ends nothing
    lines[1] = at(3660, between, "n2")
    assert read(tmp_path, *lines).incidents == 1


def test_a_node_begins_anew_whoever_says_it(tmp_path):
    first, second = at(3600, line(95)), at(3720, line(95))
    reset = at(3660, "GPU reset executed: GPU-52f37cd4").replace(
        " kernel:", " nvsentinel-gpu-reset[7]:"
    )
    assert read(tmp_path, first, reset, second).incidents == 2
    boot = "-- Boot 3f0e6a7f4a7b4cd8a6ab12ac6c7a3f51 --"  # has no time and no host
    alone = read_failure_log(written(tmp_path, first, boot, second), population=1)
    assert (alone.incidents, alone.span) == (2, 120.0)
    # one of several hosts, nobody knows which
    assert read(tmp_path, first, boot, second).incidents == 1
    plain = [f"[Mon Mar  2 10:0{k}:00 2026] " for k in range(3)]
    lines = [
        plain[0] + line(95),
        plain[1] + "NVRM: loading NVIDIA UNIX x86_64",
        plain[2] + line(95),
    ]
    assert read_failure_log(written(tmp_path, *lines), population=1).incidents == 2


def test_what_a_gpu_tells_after_it_failed_is_the_same_incident(tmp_path):
    lines = [
        at(3600, line(79, said="GPU has fallen off the bus.")),
        at(3600, "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."),
        at(
            3601,
            line(
                154,
                said="GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            ),
        ),
        at(3605, line(45)),
        at(3650, line(119)),
    ]
    log = read(tmp_path, *lines)
    assert (log.incidents, log.cause.tolist()) == (1, ["xid 79"])
    assert log.level_of() == {"xid 79": "gpu"}


@pytest.mark.parametrize(
    "said",
    [
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 79, pid=1, GPU has fallen off the bus",
        "NVRM: Xid (0000:3b:00): 79, GPU has fallen off the bus",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus",
        "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330) installed in this system has fallen "
        "off the bus and is not responding to commands.",
        "NVRM: The NVIDIA GPU 0000:3b:00.0\n       NVRM: (PCI ID: 10de:26b5) installed in this system "
        "has\n       NVRM: fallen off the bus and is not responding to commands.",
    ],
)
def test_a_gpu_that_is_gone_without_a_number_is_xid_79(tmp_path, said):
    log = read(tmp_path, at(3600, said))
    assert log.cause.tolist() == ["xid 79"]
    assert (log.node.tolist(), log.start.tolist()) == (["n1"], [3600.0])


def test_a_line_of_three_is_of_one_gpu_in_the_journal_too(tmp_path):
    said = (
        "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:26b5) has\nNVRM: fallen off the bus"
    )
    each = [at(3600, one) for one in [*said.split("\n"), line(79)]]
    assert read(tmp_path, *each).cause.tolist() == ["xid 79"]
    entries = [
        json.dumps(
            {"__REALTIME_TIMESTAMP": f"{when * 10**6}", "_HOSTNAME": "n1", "MESSAGE": message}
        )
        for when, message in ((1772323200, "usb"), (1772409600, said), (1774915200, "usb"))
    ]
    log = read_failure_log(written(tmp_path, *entries), population=8)
    assert (log.start.tolist(), log.node.tolist()) == ([DAY], ["n1"])


def test_data_of_a_switch_that_is_not_fatally_hurt_are_no_failure(tmp_path):
    def switch(second: float, said: str) -> str:
        return at(second, f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {said}")

    mild = "Non-fatal, Link 32", "Severity 0 Engine instance 32", "Data {0x00140004, 0x00100000}"
    fatal = "Fatal, Link 30 LTSSM Fault Up", "Severity 1 Engine instance 30", "Data {0x50610002}"
    lines = [switch(1e5, f"12028, {said}") for said in mild]
    assert read(tmp_path, *lines).start.size == 0
    log = read(tmp_path, *lines, *(switch(2e5, f"20034, {said}") for said in fatal))
    assert log.cause.tolist() == ["sxid 20034"]


def test_hosts_of_talos_are_seen(tmp_path):
    lines = [
        f"192.168.11.{host}: kern: warning: [2026-04-2{host}T21:25:20.505406921Z]: {line(79)}"
        for host in (2, 4)
    ]
    log = read_failure_log(written(tmp_path, *lines), population=8)
    assert log.node.tolist() == ["192.168.11.2", "192.168.11.4"]


def test_what_repeats_after_more_than_the_silence_is_counted_and_told(tmp_path):
    lines = [at(1e5 + 300 * k, line(95)) for k in range(100)] + [at(2e6, line(79))]
    said = "99 incidents follow one of their node and cause within a day"
    log = read(tmp_path, *lines)
    assert any(note.startswith(said) for note in log.notes)
    joined = read(tmp_path, *lines, silence=600)
    assert len(joined.start) == 2
    assert not any("within a day" in note for note in joined.notes)


def test_the_severity_that_a_line_names_counts(tmp_path):
    tail = "XC0 i0 Link 09 (0x0409a0c2 0x00000008)"
    lines = [
        at(1e5, line(145, said=f"RLW_RXPIPE Nonfatal {tail}")),
        at(2e5, line(149, said=f"NETIR Fatal {tail}"), "n2"),
        at(3e5, "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, Link 32 egress"),
        at(4e5, "nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
    ]
    log = read(tmp_path, *lines)
    assert log.cause.tolist() == ["xid 149", "sxid 20034"]
    assert log.level_of() == {"xid 149": "gpu", "sxid 20034": "node"}
    assert "of these 2 lines call themselves not fatal, or are data" in log.notes


def test_one_second_of_several_gpus_is_a_node_and_of_several_nodes_a_domain_or_a_rack(tmp_path):
    eight = [at(1e5, line(74, f"{k:02x}")) for k in range(8)]
    trays = [
        at(1e6, line(149, f"{g:02x}", "NETIR Fatal"), f"r1t{t:02}")
        for t in range(16)
        for g in range(4)
    ]
    power = [at(2e6, line(79, f"{g:02x}"), f"r2t{t:02}") for t in range(4) for g in range(4)]
    log = read(tmp_path, *eight, *trays, *power, at(25 * DAY, line(79), "n2"))
    assert log.incidents == 4
    assert log.level_of() == {
        "xid 74 on several GPUs": "node",
        "xid 149 on several nodes": "nvlink",
        "xid 79 on several nodes": "rack",
        "xid 79": "gpu",
    }
    assert len(set(log.node)) == len(log.node) == 1 + 16 + 4 + 1
    assert log.rate == pytest.approx(4 / (64 * 30 * DAY))
    assert log.outage_rate == pytest.approx(22 / (64 * 30 * DAY))
    sizes = np.zeros(16)
    sizes[[0, 3, 15]] = 2 / 4, 1 / 4, 1 / 4
    assert log.shared_events().sizes == pytest.approx(sizes)
    assert log.to_frame()["failures"].sum() == 4
    # as many failures of 64 nodes as in the log, on machines with NVLink switches and without
    for place in (cluster("gb200-186gb-nvl72", gpus=72 * 8), Cluster(nodes=64, nodes_per_rack=8)):
        hosts = place.parts("tray" if place.tray < place.gpus_per_node else "node")
        total = sum(one.rate * place.parts(one.level) for one in log.classes(place))
        assert total == pytest.approx(hosts * log.rate)


def test_the_watch_is_all_that_is_dated_and_a_quiet_log_is_an_answer(tmp_path):
    quiet = read(tmp_path, dialect="xid")
    assert (quiet.incidents, quiet.rate, quiet.span, quiet.guessed) == (0, 0.0, 30 * DAY, False)
    assert [entry.name for entry in quiet.classes()] == ["none was seen"]
    assert "0 failures of 64 nodes in 30 days" in repr(quiet)
    one = read(tmp_path, at(DAY, line(79)))
    assert (one.incidents, one.rate) == (1, pytest.approx(1 / (64 * 30 * DAY)))
    longer = read(tmp_path, at(DAY, line(79)), since="2026-01-01", until="2026-04-01T00:00:00Z")
    assert longer.span == 90 * DAY
    assert longer.start.tolist() == [61 * DAY]
    with pytest.raises(ValueError, match="since= and until= say from when to when"):
        read_failure_log(written(tmp_path, at(0, line(31))), population=1)
    with pytest.raises(
        ValueError, match=r"since must be an ISO 8601 date as the times of .*, got 5"
    ):
        read(tmp_path, at(DAY, line(79)), since=5)
    with pytest.raises(
        ValueError, match=r"until must leave a failure of .*, got until='2026-03-02T01"
    ):
        read(tmp_path, at(DAY, line(79)), until="2026-03-02T01:00")
    with pytest.raises(ValueError, match="until must lie after since"):
        read(tmp_path, at(DAY, line(79)), since="2027-01-01")


def test_lines_without_a_year_take_that_of_the_watch(tmp_path):
    lines = [
        xid("Dec 30 00:00:00", 79, front=" a kernel:"),
        xid("Jan  2 00:00:00", 79, front=" b kernel:"),
    ]
    log = read_failure_log(
        written(tmp_path, *lines), population=2, since="2025-12-01", until="2026-02-01"
    )
    assert (log.start / DAY).tolist() == [29.0, 32.0]
    assert log.span == 62 * DAY


def test_lines_that_are_no_xid_of_a_gpu_refuse_nothing(tmp_path):
    torn = at(5e5, "NVRM: Xid (PCI:0000:3b")
    log = read(
        tmp_path, at(1e5, line(79)), torn, "Mar 42 noise", "2019-01-01T00:00:00 is elsewhere"
    )
    assert log.incidents == 1
    assert "left out: 1 lines, line 3 the first, whole Xids are missing" in log.notes


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["[12.5] NVRM: Xid (PCI:0000:3b"], "line 1 the first, whole Xids are missing"),
        ([xid("", 79)], "a time in every line of an event"),
        (
            [xid("[12.5]", 79), xid("[Mon Mar  2 10:15:02 2026]", 79)],
            "a time in every line of an event.*line 2",
        ),
        (
            [xid("[12.5]", 79), xid("[3.5]", 79)],
            "times since one boot .*got time '3.5' in row 2 .line 2",
        ),
        ([xid("Mar 42 10:15:02", 79)], "must hold times, got time '2001 Mar 42 10:15:02' in row 1"),
        (["noise"], "must hold a failure or two moments, got 0"),
        ([xid("[12.5]", 31)], "got 0 failures .*; left out: 1 lines of Xid 31"),
    ],
)
def test_xid_lines_that_cannot_be_read_are_refused_with_their_line(tmp_path, lines, said):
    with pytest.raises(ValueError, match=said):
        read_failure_log(written(tmp_path, *lines), population=1, dialect="xid")


def test_what_a_dialect_does_not_take_is_refused(tmp_path):
    path = written(tmp_path, xid("[12.5]", 79))
    with pytest.raises(ValueError, match="jobs must be left out for the dialect 'xid', got"):
        read_failure_log(path, population=1, dialect="xid", jobs=["train"])
    for name, value in {"clock": "h", "ignore": ["who"], "node": "host"}.items():
        with pytest.raises(ValueError, match=f"{name} must be left out for the dialect 'xid', got"):
            read_failure_log(path, population=1, dialect="xid", **{name: value})
    known = ", ".join(map(repr, DIALECTS["failures"]))
    assert {"slurm", "nvrx", "nvrx-cycles", "xid", "csv"} <= {*DIALECTS["failures"]}
    with pytest.raises(ValueError, match=f"dialect must be one of {known}, got 'dmesg'"):
        read_failure_log(path, population=1, dialect="dmesg")
    with pytest.raises(TypeError, match=r"got 'silense'; did you mean 'silence'.*silense=5"):
        read_failure_log(path, population=1, silense=5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host,start,end\nn1,0,1\n", "nearest to .* is csv, but it lacks the columns node in its"),
        (
            "JobID|State|Start|End|NodeList\n1|F|a|b|c\n",
            "is slurm, but it lacks the columns JobName",
        ),
        ("x NVRM: Xid (PCI:0\n", "is xid, but it lacks a whole line with 'NVRM: Xid': line 1"),
        (':::MLLOG {"key": "init_start"}\n', "read_run_log reads .* .mlperf."),
    ],
)
def test_a_file_that_no_reader_takes_is_told_the_nearest_and_what_it_lacks(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read_failure_log(written(tmp_path, text), population=1)


RIGHT = {"xid_repeats.log": 4.464, "xid_nonfatal.log": 2.232, "xid_90days.log": 0.3472}


@needs_data
@pytest.mark.parametrize("name", RIGHT)
def test_the_rates_of_public_cases(name):
    log = read_failure_log(DATA / "public-cases" / name, population=64)
    assert 1000 * DAY * log.rate == pytest.approx(RIGHT[name], rel=1e-3)
