"""The table's text: every value checked, whichever way it goes."""

import json
import math
from typing import Any

import msgspec
import pytest
from a_table import TABLE

from fuel_gpu.calibration.table import Curve, Table
from fuel_gpu.calibration.table_text import decode_table, encode_table, was_a_table
from fuel_gpu.errors import TableError, UsageError


def edited(*path: str | int, value: Any) -> bytes:
    """Give the table's text with one field changed by hand."""
    document = json.loads(encode_table(TABLE))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_text_is_told_from_a_wrong_field(share: float) -> None:
    text = encode_table(TABLE)
    with pytest.raises(TableError, match=r"cut\.json: not a whole JSON document.*fuel-gpu calib"):
        decode_table(text[: int(share * len(text))], name="cut.json")


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b'{"version": 1, "machine": "\xff"}', b"[]"])
def test_other_files_are_no_tables(text: bytes) -> None:
    with pytest.raises(TableError, match="table: "):
        decode_table(text)


@pytest.mark.parametrize(
    ("version", "remedy"), [(2, "update fuel-gpu, or run `fuel-gpu cal"), (0, "run `fuel-gpu cal")]
)
def test_another_format_is_refused_by_its_number(version: int, remedy: str) -> None:
    with pytest.raises(TableError, match=f"version is {version}, this fuel-gpu reads 1; {remedy}"):
        decode_table(edited("version", value=version))


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8-sig", "UTF-8 with a byte order mark"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
    ],
)
def test_another_encoding_is_named(encoding: str, name: str) -> None:
    text = encode_table(TABLE).decode().encode(encoding)
    with pytest.raises(TableError, match=f"its encoding is {name}, want UTF-8 alone"):
        decode_table(text)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_without_end_is_refused(opening: bytes) -> None:
    text = b'{"version": 1, "machine": ' + 100_000 * opening
    with pytest.raises(TableError, match="nested too deeply"):
        decode_table(text)


@pytest.mark.parametrize("key", ["version", "launch_ns", "bytes"])
def test_a_key_given_twice_is_refused(key: str) -> None:
    text = encode_table(TABLE).decode().replace(f'"{key}":', f'"{key}": 1, "{key}":').encode()
    with pytest.raises(TableError, match=f"the key '{key}' occurs twice in one object"):
        decode_table(text)


@pytest.mark.parametrize("dtype", ["tf32", "float8e4m3fn", "int8"])
def test_every_dtype_that_anything_computes_with_is_known(dtype: str) -> None:
    assert decode_table(edited("rates", 0, "dtype", value=dtype)).rates[0].dtype == dtype


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_named(number: float) -> None:
    with pytest.raises(TableError, match=r"not finite - at `\$\.rates\[0\]\.flops_per_ns`"):
        decode_table(edited("rates", 0, "flops_per_ns", value=number))


def test_a_number_too_large_for_any_float_is_named() -> None:
    text = encode_table(TABLE).replace(b"10000.0", b"1e999")
    with pytest.raises(TableError, match=r"out of range - at `\$\.rates\[0\]\.flops_per_ns`"):
        decode_table(text)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("rates", 0, "flops_per_ns"), -1.0, r"rates\[0\]\.flops_per_ns"),
        (("rates", 0, "bytes_per_ns"), 0, r"rates\[0\]\.bytes_per_ns"),
        (("rates", 0, "bytes_per_ns"), 1e300, r"rates\[0\]\.bytes_per_ns"),
        (("rates", 0, "flops_per_ns"), "fast", r"rates\[0\]\.flops_per_ns"),
        (("rates", 0, "launch_ns"), -5, r"rates\[0\]\.launch_ns"),
        (("rates", 0, "launch_ns"), 10**12, r"rates\[0\]\.launch_ns"),
        (("rates", 0, "device"), "cuda:9", r"rates\[0\]\.device"),
        (("rates", 0, "provenance"), "guessed", r"rates\[0\]\.provenance"),
        (("rates", 0, "colour"), "red", "colour"),
        (("transfers", 0, "dst"), "opencl:0", r"transfers\[0\]\.dst"),
        (("transfers", 0, "points", 1, "bytes"), 4096, r"transfers\[0\]\.points\[1\]\.bytes"),
        (("transfers", 0, "points", 0, "ns"), 0, r"transfers\[0\]\.points\[0\]\.ns"),
        (("transfers", 0, "points", 0, "bytes"), 2**64, r"points\[0\]\.bytes"),
        (("transfers", 0, "points", 0, "samples"), [-1], r"points\[0\]\.samples"),
        (("transfers", 0, "points", 0, "interval"), [9, 8], r"points\[0\]\.interval"),
        (("transfers", 0, "curve", "tail_bytes_per_ns"), 0.0, r"curve\.tail_bytes_per_ns"),
        (("transfers", 0, "curve", "knot_ns"), [], r"curve"),
        (("transfers", 0, "curve", "knot_bytes"), [5, 5], r"curve"),
        (("devices", 0, "id"), "CPU zero", r"devices\[0\]\.id"),
        (("devices", 0, "id"), "cpu", r"devices\[0\]\.id"),
        (("devices", 0, "backend"), "cuda", r"devices\[0\]\.backend"),
        (("rates", 0, "flops_interval"), [-1.0, 2.0], r"rates\[0\]\.flops_interval"),
        (("rates", 0, "bytes_samples"), [1.0, -2.0], r"rates\[0\]\.bytes_samples"),
        (("duplex", 0, "ends", 1), "cuda:9", r"duplex\[0\]\.ends\[1\]"),
        (("duplex", 0, "bytes"), 0, r"duplex\[0\]\.bytes"),
        (("duplex", 0, "bytes_per_ns"), 0.0, r"duplex\[0\]\.bytes_per_ns"),
        (("duplex", 0, "interval"), [2.0, 1.0], r"duplex\[0\]\.interval"),
        (("duplex", 0, "samples"), [-1.0], r"duplex\[0\]\.samples"),
        (("duplex", 0, "conditions", "sm_clock_mhz"), [1], r"conditions\.sm_clock_mhz"),
        (("devices", 0, "memory_bytes"), -1, r"devices\[0\]\.memory_bytes"),
        (("devices", 0, "memory_bytes"), 2**60 + 1, r"devices\[0\]\.memory_bytes"),
        (("devices", 1, "largest_allocation_bytes"), -1, r"\[1\]\.largest_allocation_bytes"),
        (("rates", 0, "dtype"), "float31", r"rates\[0\]\.dtype"),
        (("rates", 0, "measured"), "last week", r"rates\[0\]\.measured"),
        (("transfers", 0, "dst"), "cpu:0", r"copies to itself.*transfers\[0\]\.dst"),
        (("transfers", 0, "size_bound_bytes"), -1, r"transfers\[0\]\.size_bound_bytes"),
        (("transfers", 0, "curve", "median_error"), -0.1, r"curve\.median_error"),
        (("created",), "yesterday", r"'yesterday' is no ISO 8601 time - at `\$\.created"),
    ],
)
def test_an_impossible_value_names_its_field_and_what_to_do(
    path: tuple[str | int, ...], value: object, where: str
) -> None:
    with pytest.raises(TableError, match=rf"mine\.json: .*{where}.*mend that field, or run"):
        decode_table(edited(*path, value=value), name="mine.json")


def test_falling_knots_are_refused() -> None:
    curve = {"knot_bytes": [0, 9], "knot_ns": [5, 4], "tail_bytes_per_ns": 1.0}
    with pytest.raises(TableError, match=r"must not fall.*curve\.knot_ns\[1\]"):
        decode_table(edited("transfers", 0, "curve", value=curve))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("devices", "id cpu:0"),
        ("transfers", r"pair cpu:0 -> cuda:0 \(pageable\)"),
        ("rates", "device, dtype cuda:0 float32"),
        ("duplex", r"pair cpu:0 and cuda:0 \(pinned\)"),
    ],
)
def test_what_occurs_twice_is_refused(name: str, what: str) -> None:
    document = json.loads(encode_table(TABLE))
    twice = [document[name][0], *document[name]]
    with pytest.raises(TableError, match=rf"{what} occurs twice - at `\$\.{name}\[1\]`"):
        decode_table(edited(name, value=twice))


def test_a_missing_field_is_named() -> None:
    document = json.loads(encode_table(TABLE))
    del document["machine"]
    with pytest.raises(TableError, match="machine"):
        decode_table(json.dumps(document).encode())


def with_rate(**changes: Any) -> Table:
    (rate,) = TABLE.rates
    return msgspec.structs.replace(TABLE, rates=(msgspec.structs.replace(rate, **changes),))


def with_details(value: object) -> Table:
    first, *others = TABLE.devices
    changed = msgspec.structs.replace(first, details={"a": [value]})
    return msgspec.structs.replace(TABLE, devices=(changed, *others))


def with_curve(**changes: Any) -> Table:
    (transfer,) = TABLE.transfers
    curve: Curve = msgspec.structs.replace(transfer.curve, **changes)
    return msgspec.structs.replace(
        TABLE, transfers=(msgspec.structs.replace(transfer, curve=curve),)
    )


@pytest.mark.parametrize(
    ("table", "where"),
    [
        (with_rate(flops_per_ns=math.nan), r"not finite - at `\$\.rates\[0\]\.flops_per_ns`"),
        (with_rate(flops_samples=(1.0, math.inf)), r"\$\.rates\[0\]\.flops_samples\[1\]"),
        (with_rate(bytes_per_ns=-1.0), r"\$\.rates\[0\]\.bytes_per_ns"),
        (with_rate(launch_ns=-1), r"\$\.rates\[0\]\.launch_ns"),
        (with_rate(launch_ns="soon"), r"\$\.rates\[0\]\.launch_ns"),
        (with_rate(launch_ns=2**65), "rates"),
        (with_rate(device="cuda:7"), r"\$\.rates\[0\]\.device"),
        (with_rate(dtype=None), r"\$\.rates\[0\]\.dtype"),
        (with_rate(flags=object()), "object"),
        (with_curve(worst_error=math.nan), r"\$\.transfers\[0\]\.curve\.worst_error"),
        (with_details(math.nan), r"\$\.devices\[0\]\.details\.a\[0\]"),
        (msgspec.structs.replace(TABLE, version=7), r"\$\.version"),
        (msgspec.structs.replace(TABLE, rates=None), r"\$\.rates"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(table: Table, where: str) -> None:
    with pytest.raises(TableError, match=f"mine: not written: .*{where}"):
        encode_table(table, name="mine")


@pytest.mark.parametrize("other", [None, {}, "table.json", TABLE.rates[0]])
def test_what_is_no_table_is_refused(other: Any) -> None:
    with pytest.raises(UsageError, match="is no table"):
        encode_table(other)


def test_a_table_and_what_is_left_of_one_are_known() -> None:
    text = encode_table(TABLE)
    assert all(was_a_table(text[:length]) for length in range(13, len(text) + 1))
    assert was_a_table(edited("version", value=99))
    assert was_a_table(edited("rates", 0, "launch_ns", value=-1))


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\x08\x07\x12\x07pytorch", b"\0" * 9, b"notes of mine", b"{}", b"[]"),
        *(b'{"version": 1}', b'{"machine": {}}'),
        *(b'{"version": 1, "total_ns": 5}', b'{"version": 1, "total_ns'),  # a plan
    ],
)
def test_other_files_never_were_tables(text: bytes) -> None:
    assert not was_a_table(text)
