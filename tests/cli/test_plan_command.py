"""`fuel-gpu plan`: what it prints, what it writes, and how it refuses."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from fuel_gpu.cli.main import run

DESKTOP = str(Path(__file__).parents[2] / "examples" / "tables" / "desktop.json")


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Input x (N, 1024) -> MatMul -> Relu -> MatMul -> y, with weights of 1024 by 1024."""
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, (1024, 1024), bytes(4 << 20), raw=True)
        for name in ("w1", "w2")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MatMul", ["b", "w2"], ["y"], "second"),
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", 1024)) for name in ("x", "y")
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "two", [x], [y], weights)), path)
    return str(path)


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["plan", *arguments, "--json"]) == 0
    record: dict[str, object] = json.loads(capsys.readouterr().out)
    return record


def refused(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    assert run(["plan", *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.startswith("fuel-gpu: ")
    return captured.err


def test_prints_placement_copies_baselines_and_memory(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", model, "--batch", "1024", "--table", DESKTOP]) == 0
    printed = capsys.readouterr().out
    for part in ("Placement", "Copies", "Compared with", "all on cpu:0", "greedy", "Peak memory"):
        assert part in printed
    assert "datasheet figures, not measurements" in printed


def test_json_out_and_pins(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plan.json"
    arguments = [model, "--batch", "1024", "--table", DESKTOP, "--pin", "relu=cpu:0"]
    record = planned(capsys, *arguments, "--out", str(out))
    assert json.loads(out.read_text()) == record
    nodes = record["nodes"]
    assert isinstance(nodes, list)
    assert {n["name"]: n["device"] for n in nodes}["relu"] == "cpu:0"


def test_why_shows_candidates_and_copies_avoided(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["plan", model, "--batch", "1024", "--table", DESKTOP, "--why", "relu"]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert "relu (Relu) runs on cuda:0" in printed
    assert "cpu.elementwise.float32" in printed
    assert "Copies avoided by not running on cpu:0" in printed


def test_branches_are_recorded_with_each_arms_price(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = planned(capsys, model, "--batch", "1024", "--table", DESKTOP, "--branches")
    branches = record["branches"]
    assert isinstance(branches, list)
    relu = next(b for b in branches if b["node"] == "relu")
    assert [arm["device"] for arm in relu["arms"]] == ["cuda:0", "cpu:0"]
    assert (relu["diverge"], relu["reconverge"]) == ("first", "second")
    assert relu["arms"][0]["time_ns"] < relu["arms"][1]["time_ns"]


def test_devices_may_be_left_out(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = planned(
        capsys, model, "--batch", "8", "--table", DESKTOP, "--without-device", "cuda:0"
    )
    assert record["baselines"].keys() == {"cpu:0", "greedy"}  # type: ignore[attr-defined]  # a dict
    only = planned(capsys, model, "--batch", "8", "--table", DESKTOP, "--device", "cuda:0")
    assert {n["device"] for n in only["nodes"]} == {"cuda:0"}  # type: ignore[attr-defined]  # a list


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--pin", "relu=cuda:7", "no device cuda:7; it has cpu:0, cuda:0"),
        ("--pin", "rellu=cpu:0", "no node 'rellu'; did you mean relu?"),
        ("--pin", "relu", "write NODE=DEVICE"),
        ("--pin", "relu=", "is not a device"),
        ("--device", "gpu7", "no device gpu7:0"),
        ("--without-device", "cuda:3", "no device cuda:3"),
        ("--exit", "c u d a", "is not a device"),
        ("--exit", "cuda:4", "no device cuda:4"),
        ("--entry", "cuda:4", "no device cuda:4"),
        ("--memory", "cuda:0", "write DEVICE=SIZE"),
        ("--memory", "cuda:0=much", "is not a size"),
        ("--memory", "cuda:0=-1GiB", "is not a size"),
        ("--memory", "cuda:9=1GiB", "no device cuda:9"),
        ("--dim", "N=0", "positive whole number"),
        ("--dim", "Q=3", "Q"),
        ("--why", "rellu", "did you mean relu?"),
    ],
)
def test_wrong_usage_names_the_value_and_ends_with_status_2(
    model: str, option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, 2, model, "--batch", "8", "--table", DESKTOP, option, value)
    assert message in error


def test_no_device_left(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--without-device", "cuda:0", "--without-device", "cpu:0"]
    error = refused(capsys, 2, model, "--batch", "8", "--table", DESKTOP, *both)
    assert "no device is left" in error


def test_an_open_dimension_is_named(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, 1, model, "--table", DESKTOP)
    assert "N: dimension 0 of input x; give --dim N=SIZE" in error


def test_a_missing_model_and_a_missing_table(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "no.onnx")
    assert missing in refused(capsys, 1, missing, "--table", DESKTOP)
    table = str(tmp_path / "no.json")
    assert table in refused(capsys, 1, model, "--batch", "8", "--table", table)


def test_a_file_that_cannot_be_written_is_named(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "no folder" / "plan.json")
    error = refused(capsys, 1, model, "--batch", "8", "--table", DESKTOP, "--out", out)
    assert out in error


def test_what_does_not_fit_says_by_how_much(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--memory", "cuda:0=1MiB", "--memory", "cpu:0=1MiB"]
    error = refused(capsys, 1, model, "--batch", "8", "--table", DESKTOP, *limits)
    assert "by " in error
    assert "largest node is" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pin", "relu=cpu:0", "--pin", "relu=cuda:0"], "relu is given twice"),
        (["--dim", "N=8", "--dim", "N=9"], "N is given twice, as 8 and as 9"),
        (["--memory", "cpu=1GiB", "--memory", "cpu:0=2GiB"], "cpu:0 is given twice"),
        (["--pin", "relu=cuda:0", "--without-device", "cuda:0"], "which is left out"),
        (["--pin", "relu=cuda:0", "--device", "cpu:0"], "which is left out"),
        (["--device", "cpu", "--without-device", "cpu:0"], "both wanted and left out"),
        (["--pin", "w1=cpu:0"], "w1 is a weight"),
        (["--dim", "N=99999999999999999999"], "positive whole number"),
        (["--engine", "gpu"], "--engine 'gpu' is none of"),
    ],
)
def test_contradictions_are_refused(
    model: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    size = [] if "--dim" in options else ["--batch", "8"]
    assert message in refused(capsys, 2, model, *size, "--table", DESKTOP, *options)


def test_nothing_that_is_read_is_written_over(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(model).read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(model)
    for out in (model, str(link), DESKTOP):
        error = refused(capsys, 2, model, "--batch", "8", "--table", DESKTOP, "--out", out)
        assert "is a file that is read" in error
    assert Path(model).read_bytes() == before


def test_nodes_lists_every_node(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", model, "--batch", "8", "--table", DESKTOP, "--nodes"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("first", "relu", "second"))


def test_why_and_branches_go_together_and_into_json(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [model, "--batch", "1024", "--table", DESKTOP, "--why", "relu", "--branches"]
    assert run(["plan", *asked]) == 0
    printed = capsys.readouterr().out
    assert "relu (Relu) runs on" in printed
    assert "Recorded decisions" in printed
    record = planned(capsys, *asked)
    why = record["why"]
    assert isinstance(why, list)
    assert why[0]["node"] == "relu"
    assert {c["fate"] for c in why[0]["candidates"]} >= {"chosen"}


def test_a_node_goes_by_its_output_too(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", model, "--batch", "8", "--table", DESKTOP, "--why", "b"]) == 0
    assert "relu (Relu) runs on" in capsys.readouterr().out


def test_an_empty_path_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "empty" in refused(capsys, 2, "", "--table", DESKTOP)


def test_pins_are_named_beside_the_baselines(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["plan", model, "--batch", "8", "--table", DESKTOP, "--pin", "relu=cpu:0"]
    assert run(arguments) == 0
    assert "all on cuda:0, but for the pins" in capsys.readouterr().out
