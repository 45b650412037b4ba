"""What becomes of figures that come in, of earlier ones, and of devices without any."""

import msgspec

from fuel_gpu.calibration.findings import Findings
from fuel_gpu.calibration.records import CopyMeasured, DuplexMeasured, RateMeasured, Swept
from fuel_gpu.calibration.table import Conditions, Duplex, Point, Rate, Table
from fuel_gpu.probes.report import DeviceInfo, ProbeReport


def device(name: str, driver: str = "1") -> DeviceInfo:
    return DeviceInfo(
        id=name, backend=name.partition(":")[0], name=name, memory_bytes=2**33, driver=driver
    )


CPU, GPU0, GPU1 = device("cpu:0"), device("cuda:0"), device("cuda:1")
REPORT = ProbeReport(devices=(CPU, GPU0, GPU1))


def rate(name: str, dtype: str = "float32", flops: float = 1.0) -> RateMeasured:
    return RateMeasured(
        rate=Rate(
            device=name,
            dtype=dtype,
            flops_per_ns=flops,
            bytes_per_ns=2.0,
            launch_ns=3,
            provenance="measured",
        )
    )


def copy(src: str, dst: str, size: int, ns: int) -> CopyMeasured:
    return CopyMeasured(
        src=src,
        dst=dst,
        memory="pageable",
        size_bound_bytes=2**28,
        point=Point(bytes=size, ns=ns, samples=(ns,)),
        measured="2025-01-01T00:00:00+00:00",
    )


def duplex(a: str, b: str, rate: float = 1.0) -> DuplexMeasured:
    return DuplexMeasured(
        duplex=Duplex(
            ends=(a, b), memory="pinned", bytes=4096, bytes_per_ns=rate, provenance="measured"
        )
    )


def swept(src: str, dst: str) -> Swept:
    return Swept(src=src, dst=dst, memory="pageable")


def measured_before() -> Table:
    findings = Findings(REPORT, None)
    for ends in (("cpu:0", "cuda:0"), ("cpu:0", "cuda:1"), ("cuda:0", "cuda:1")):
        findings.add_duplex(duplex(*ends))
    for name in ("cuda:0", "cuda:1"):
        findings.add_rate(rate(name))
        findings.add_rate(rate(name, "float16"))
        findings.add_copy(copy("cpu:0", name, 4096, 100))
        findings.add_copy(copy("cpu:0", name, 8192, 200))
    findings.add_copy(copy("cuda:0", "cuda:1", 4096, 10))
    findings.add_copy(copy("cuda:0", "cuda:1", 8192, 20))
    for src, dst in (("cpu:0", "cuda:0"), ("cpu:0", "cuda:1"), ("cuda:0", "cuda:1")):
        findings.end_sweep(swept(src, dst))
    findings.add_note("cuda:1", "int8, cuBLAS: wrong result, left out")
    return findings.table()


def test_points_are_sorted_and_the_latest_of_a_size_counts() -> None:
    findings = Findings(REPORT, None)
    for size, ns in ((8192, 300), (4096, 100), (8192, 200)):
        findings.add_copy(copy("cpu:0", "cuda:0", size, ns))
    (transfer,) = findings.table().transfers
    assert [(p.bytes, p.ns) for p in transfer.points] == [(4096, 100), (8192, 200)]
    assert transfer.curve.knot_ns == (50, 100, 200)
    assert (transfer.size_bound_bytes, transfer.provenance) == (2**28, "measured")


def test_the_latest_conditions_stand_for_all_sizes() -> None:
    findings = Findings(REPORT, None)
    for size, generation in ((4096, 1), (8192, 4)):
        record = copy("cpu:0", "cuda:0", size, size)
        conditions = Conditions(link_generation=generation)
        findings.add_copy(msgspec.structs.replace(record, conditions=conditions))
    (transfer,) = findings.table().transfers
    assert transfer.conditions == Conditions(link_generation=4)


def test_copies_both_ways_stay_go_and_are_shared_like_any_other_figure() -> None:
    findings = Findings(REPORT, measured_before())
    findings.add_copy(copy("cpu:0", "cuda:0", 4096, 1))
    findings.add_copy(copy("cpu:0", "cuda:0", 8192, 2))
    findings.add_duplex(duplex("cpu:0", "cuda:0", 5.0))
    findings.complete("cuda:0")
    findings.complete("cuda:1")
    made = findings.table().duplex
    assert {d.ends: d.bytes_per_ns for d in made} == {
        ("cpu:0", "cuda:0"): 5.0,
        ("cuda:0", "cuda:1"): 1.0,
    }
    findings.share("cuda:0", "cuda:1")
    shared = [d for d in findings.table().duplex if d.ends == ("cpu:0", "cuda:1")]
    assert [(d.bytes_per_ns, d.provenance) for d in shared] == [(5.0, "shared")]
    other = Findings(ProbeReport(devices=(CPU, device("cuda:0", "2"), GPU1)), measured_before())
    assert [d.ends for d in other.table().duplex] == [("cpu:0", "cuda:1")]


def only_copies() -> Findings:
    findings = Findings(REPORT, None)
    findings.add_rate(rate("cuda:1"))
    for name in ("cuda:0", "cuda:1"):
        findings.add_copy(copy("cpu:0", name, 4096, 1))
        findings.add_copy(copy("cpu:0", name, 8192, 2))
    return findings


def test_a_device_with_copies_but_no_rate_is_noted_once_and_the_host_is_not() -> None:
    note = "cuda:0: none of its kernels has a rate, only copies: plans leave it out"
    table = only_copies().table()
    assert table.notes == (note,)
    assert Findings(REPORT, table).table().notes == (note,)


def test_the_note_goes_with_the_first_rate() -> None:
    findings = Findings(REPORT, only_copies().table())
    findings.add_rate(rate("cuda:0"))
    assert findings.table().notes == ()


def test_one_size_makes_no_curve() -> None:
    findings = Findings(REPORT, None)
    findings.add_copy(copy("cpu:0", "cuda:0", 4096, 100))
    assert findings.table().transfers == ()


def test_a_device_of_which_nothing_was_measured_is_left_out_with_its_note() -> None:
    findings = Findings(REPORT, None)
    findings.add_rate(rate("cpu:0"))
    findings.add_note("cuda:0", "its measuring process crashed with SIGSEGV")
    made = findings.table()
    assert [d.id for d in made.devices] == ["cpu:0"]
    assert made.notes == ("cuda:0: its measuring process crashed with SIGSEGV",)


def test_earlier_figures_stay_until_measured_again() -> None:
    findings = Findings(REPORT, measured_before())
    findings.expect(["cuda:0"], [])
    findings.add_rate(rate("cuda:0", flops=9.0))
    rates = {(r.device, r.dtype): r.flops_per_ns for r in findings.table().rates}
    assert rates == {
        ("cuda:0", "float32"): 9.0,
        ("cuda:0", "float16"): 1.0,
        ("cuda:1", "float32"): 1.0,
        ("cuda:1", "float16"): 1.0,
    }
    assert len(findings.table().transfers) == 3
    assert findings.table().notes == ("cuda:1: int8, cuBLAS: wrong result, left out",)


def test_what_a_complete_measurement_no_longer_found_is_dropped() -> None:
    findings = Findings(REPORT, measured_before())
    findings.expect(["cuda:1"], [])
    findings.add_rate(rate("cuda:1"))
    findings.complete("cuda:1")
    made = findings.table()
    assert [(r.device, r.dtype) for r in made.rates if r.device == "cuda:1"] == [
        ("cuda:1", "float32")
    ]
    assert {(t.src, t.dst) for t in made.transfers} == {
        ("cpu:0", "cuda:0"),
        ("cuda:0", "cuda:1"),
    }
    assert made.notes == ()


def test_another_driver_makes_earlier_figures_void() -> None:
    report = ProbeReport(devices=(CPU, GPU0, device("cuda:1", driver="2")))
    made = Findings(report, measured_before()).table()
    assert {r.device for r in made.rates} == {"cuda:0"}
    assert [(t.src, t.dst) for t in made.transfers] == [("cpu:0", "cuda:0")]
    assert made.notes == (
        "cuda:1: incomplete: earlier figures, of cuda:1 with driver 1, were dropped",
    )


def test_another_machine_makes_all_of_them_void() -> None:
    other = msgspec.structs.replace(CPU, name="another processor")
    made = Findings(ProbeReport(devices=(other, GPU0)), measured_before()).table()
    assert (made.devices, made.rates, made.transfers) == ((), (), ())


def test_a_twin_shares_rates_and_host_copies_marked_as_shared() -> None:
    findings = Findings(REPORT, None)
    findings.add_rate(rate("cuda:0", flops=7.0))
    findings.add_copy(copy("cpu:0", "cuda:0", 4096, 100))
    findings.add_copy(copy("cpu:0", "cuda:0", 8192, 200))
    findings.add_copy(copy("cuda:0", "cuda:1", 4096, 10))
    findings.add_copy(copy("cuda:0", "cuda:1", 8192, 20))
    findings.share("cuda:0", "cuda:1")
    made = findings.table()
    shared = [r for r in made.rates if r.device == "cuda:1"]
    assert [(r.flops_per_ns, r.provenance) for r in shared] == [(7.0, "shared")]
    provenances = {(t.src, t.dst): t.provenance for t in made.transfers}
    assert provenances == {
        ("cpu:0", "cuda:0"): "measured",
        ("cpu:0", "cuda:1"): "shared",
        ("cuda:0", "cuda:1"): "measured",
    }


def test_a_device_that_is_not_found_keeps_its_figures_and_a_note() -> None:
    before = measured_before()
    made = Findings(ProbeReport(devices=(CPU, GPU0)), before).table()
    assert (made.rates, made.transfers, made.duplex) == (
        before.rates,
        before.transfers,
        before.duplex,
    )
    assert made.devices == before.devices
    assert len(made.notes) == 2
    assert made.notes[1].startswith("cuda:1: not found when this table was written last")
    again = Findings(ProbeReport(devices=(CPU, GPU0)), made).table()
    assert again.notes == made.notes  # said once
    assert Findings(REPORT, made).table().notes == before.notes  # it is back


def test_only_a_whole_rate_replaces_an_earlier_one() -> None:
    findings = Findings(REPORT, measured_before())
    begun = msgspec.structs.replace(rate("cuda:0", flops=9.0), whole=False)
    findings.add_rate(begun)
    assert {r.flops_per_ns for r in findings.table().rates} == {1.0}
    findings.add_rate(rate("cuda:0", flops=9.0))
    assert {r.flops_per_ns for r in findings.table().rates} == {1.0, 9.0}
    fresh = Findings(REPORT, None)
    fresh.add_rate(begun)
    assert [(r.flops_per_ns, r.flags) for r in fresh.table().rates] == [(9.0, ("incomplete",))]


def test_an_incomplete_rate_is_replaced_by_any() -> None:
    begun = Findings(REPORT, None)
    begun.add_rate(msgspec.structs.replace(rate("cuda:0", flops=8.0), whole=False))
    findings = Findings(REPORT, begun.table())
    findings.add_rate(msgspec.structs.replace(rate("cuda:0", flops=9.0), whole=False))
    assert [r.flops_per_ns for r in findings.table().rates] == [9.0]


def test_copies_replace_earlier_ones_once_they_are_swept() -> None:
    def first_point(findings: Findings) -> tuple[int, str]:
        (found,) = [t for t in findings.table().transfers if t.dst == "cuda:0"]
        return found.points[0].ns, found.notes

    findings, fresh = Findings(REPORT, measured_before()), Findings(REPORT, None)
    for size in (4096, 8192):
        findings.add_copy(copy("cpu:0", "cuda:0", size, size))
        fresh.add_copy(copy("cpu:0", "cuda:0", size, size))
    assert first_point(findings) == (100, "")
    assert first_point(fresh) == (4096, "incomplete: not measured to the end")
    findings.complete("cuda:0")  # the sweep failed, all else was measured
    assert first_point(findings) == (100, "")
    findings.end_sweep(swept("cpu:0", "cuda:0"))
    assert first_point(findings) == (4096, "")


def test_what_is_expected_and_was_never_measured_makes_the_table_incomplete() -> None:
    findings = Findings(REPORT, None)
    findings.expect(["cuda:0", "cuda:1"], [("cuda:0", "cuda:1")])
    pair = "cuda:0: incomplete: copies to cuda:1 were not measured to the end"
    each = "{}: incomplete: it was not measured to the end"
    assert findings.table().notes == (each.format("cuda:0"), pair, each.format("cuda:1"))
    stopped = findings.table()
    findings.complete("cuda:0")
    findings.give_up("cuda:1")
    assert findings.table().notes == (pair,)
    findings.end_pair(("cuda:0", "cuda:1"))
    assert findings.table().notes == ()
    later = Findings(REPORT, stopped)
    later.expect(["cuda:0"], [])
    assert set(later.table().notes) == {each.format("cuda:0"), pair, each.format("cuda:1")} - {pair}


def test_whole_earlier_figures_are_not_incomplete_for_being_measured_again() -> None:
    findings = Findings(REPORT, measured_before())
    findings.expect(["cuda:0", "cuda:1"], [("cuda:0", "cuda:1")])
    assert findings.table().notes == measured_before().notes


def test_nothing_new_leaves_date_and_crossover() -> None:
    before = msgspec.structs.replace(measured_before(), created="2001-01-01", engine_crossover=7)
    findings = Findings(REPORT, before)
    findings.add_note("cuda:0", "crashed")
    assert (findings.table().created, findings.table().engine_crossover) == ("2001-01-01", 7)
    findings.add_rate(rate("cuda:0"))
    assert findings.table().created != "2001-01-01"


def test_of_two_interrupted_calibrations_the_one_with_more_runs_stays() -> None:
    def begun(samples: int, earlier: Table | None = None) -> Table:
        findings = Findings(REPORT, earlier)
        for size in (4096, 8192):
            record = copy("cpu:0", "cuda:0", size, 10 * samples)
            point = msgspec.structs.replace(record.point, samples=(10 * samples,) * samples)
            findings.add_copy(msgspec.structs.replace(record, point=point))
        plain = rate("cuda:0", flops=float(samples)).rate
        made = msgspec.structs.replace(plain, flops_samples=(float(samples),) * samples)
        findings.add_rate(RateMeasured(rate=made, whole=False))
        return findings.table()

    for second, stays in ((2, 5), (5, 5), (7, 7)):
        table = begun(second, begun(5))
        assert [t.points[0].ns for t in table.transfers] == [10 * stays]
        assert [r.flops_per_ns for r in table.rates] == [stays]
