"""A device that is required: what would be skipped for want of it fails."""

import pytest
from plugin_machines import Machine, run

pytest_plugins = ["pytester"]


@pytest.mark.usefixtures("no_card")
@pytest.mark.parametrize(
    ("mark", "required"),
    [
        ("cuda", "cuda"),
        ("gpu", "gpu"),
        ('device_memory("1GiB")', "gpu"),
        ('device("cuda:1")', "cuda:1"),
        ('device("cuda:1")', "cuda"),
    ],
)
def test_a_required_device_that_is_missing_fails_the_test(
    pytester: pytest.Pytester, mark: str, required: str
) -> None:
    source = f"@pytest.mark.{mark}\ndef test_it(): pass\ndef test_other(): pass"
    result = run(pytester, source, "--require-device", required)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [f"--require-device {required}: no * the driver is asleep*; to mend it: sing to it"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.usefixtures("one_card")
def test_a_skip_for_a_device_that_nobody_requires_stays_one(pytester: pytest.Pytester) -> None:
    source = """
        @pytest.mark.cuda
        def test_one(): pass

        @pytest.mark.device("cuda:1")
        def test_two(): pass
        """
    required = ["--require-device=gpu", "--require-device=cuda:0", "--require-device=opencl"]
    result = run(pytester, source, *required)
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.usefixtures("one_card")
def test_a_required_backend_leaves_no_test_of_it_skipped(pytester: pytest.Pytester) -> None:
    source = """
        @pytest.mark.device("cuda:1")
        def test_two_cards(): pass

        @pytest.mark.cuda
        @pytest.mark.device_memory("80GiB")
        def test_a_large_card(): pass

        @pytest.mark.opencl
        @pytest.mark.device("cuda:1")
        def test_two_devices(): pass
        """
    result = run(pytester, source, "--require-device=cuda")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["--require-device cuda: no cuda device with 80 GiB: * has 8 GiB"])


@pytest.mark.usefixtures("no_card")
def test_a_required_device_that_no_test_asked_for_fails_the_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(): pass", "--require-device=cuda", "--require-device=gpu")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*required devices that are missing*",
            "cuda: no cuda device: the driver is asleep; to mend it: sing to it",
            "gpu: no GPU: *",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_required_device_that_is_there_changes_nothing(
    pytester: pytest.Pytester, one_card: Machine
) -> None:
    result = run(pytester, "def test_it(): pass", "--require-device=cuda")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*required devices*")
    assert result.ret == pytest.ExitCode.OK
    assert one_card.probed == 1


@pytest.mark.parametrize("name", ["cudo", "cuda:x", "gpu:0"])
def test_a_required_name_that_is_none_is_wrong_usage(pytester: pytest.Pytester, name: str) -> None:
    result = run(pytester, "def test_it(): pass", "--require-device", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--require-device: {name!r} is " in result.stderr.str()


# ------------------------------------------------------------------- it weighs nothing, and xdist
