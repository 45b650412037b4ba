"""The example of a user's own pathfinder and optimizer runs and says what it should."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_passes.py"


def test_the_example_offers_the_fused_kernel_and_drops_the_dear_arms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    decisions = re.findall(r"decision \d+: (.*)((?:\n  arm .*)+)", said)
    arms = {
        where: re.findall(r"arm \d: (\S+) on (\S+), (\d+) ns", listed)
        for where, listed in decisions
    }
    # A Relu on the CPU would cost over ten times the Relu on the card, a product would not; each
    # product and its Relu could be one kernel.
    assert {where: [arm[:2] for arm in each] for where, each in arms.items()} == {
        "x -> relu0": [("product0", "cuda:0"), ("product0@cpu:0", "cpu:0")],
        "relu0 -> relu1": [("product1", "cuda:0"), ("product1@cpu:0", "cpu:0")],
        "relu1 -> relu2": [("product2", "cuda:0"), ("product2@cpu:0", "cpu:0")],
        "x -> product1": [("relu0", "cuda:0"), ("product0+relu", "cuda:0")],
        "relu0 -> product2": [("relu1", "cuda:0"), ("product1+relu", "cuda:0")],
        "relu1 -> softmax": [("relu2", "cuda:0"), ("product2+relu", "cuda:0")],
    }
    for where, ((_, device, chosen_ns), (_, other_device, other_ns)) in arms.items():
        dearer = int(other_ns) / int(chosen_ns)
        assert dearer < 1 if device == other_device else 1 < dearer <= 10, where
    assert said.splitlines()[-2:] == [
        "as planned: x w0 product0 relu0 w1 product1 relu1 w2 product2 relu2 softmax",
        "with the fused kernel: x w0 product0+relu w1 product1+relu w2 product2+relu softmax",
    ]
