"""``icefield kit``: it finds the contract of a class, runs its suites and reports the checks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield_cli.main import main

STRATEGY = """
from icefield.abc import PutMode
from icefield.toolkit import VersionedStrategy, publish_by_create


class Right(VersionedStrategy):
    def publish(self, target, data):
        return publish_by_create(self.file_system, target, data)


class Wrong(VersionedStrategy):
    def publish(self, target, data):
        self.file_system.put(target, data, PutMode.OVERWRITE)
        return self.pointer_to(target)


class Ends(VersionedStrategy):
    def publish(self, target, data):
        import os
        os._exit(9)


class Lacks(VersionedStrategy):
    pass


class Own:
    pass
"""
LISTENER = """
from icefield import hookimpl


@hookimpl
def icefield_events(event, properties):
    assert properties["label"] == "mine", properties
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules that are found from the folder in which the command runs."""
    (tmp_path / "kit_made_strategy.py").write_text(STRATEGY)
    (tmp_path / "kit_made_listener.py").write_text(LISTENER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [name for name in sys.modules if name.startswith("kit_made_")]:
        del sys.modules[name]


def kit(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The status, the output and the errors of the command."""
    try:
        status = main(["kit", *arguments])
    except SystemExit as ended:
        status = int(str(ended.code))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.slow
def test_a_right_class_passes_and_the_suites_are_those_of_its_contract(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = kit(capsys, "kit_made_strategy:Right", "--check", "test_dropping or test_a_dropped")
    assert (status, err) == (0, "")
    first, heading, own, tables, *_ = out.splitlines()
    assert first == (
        "kit_made_strategy:Right: a commit strategy, by version 2 of the contract icefield.abc.CommitStrategy"
    )
    assert heading.split() == ["suite", "passed", "failed", "skipped", "left", "out"]
    assert own.split()[0] == "CommitStrategySuite"
    assert int(own.split()[1]) > 0
    assert tables.split()[0] == "TableBehaviourSuite"
    assert int(tables.split()[1]) > 0


@pytest.mark.slow
def test_a_failed_check_is_reported_with_its_advice(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--suite", "CommitStrategySuite", "--check", "race or racing or replac")
    status, out, err = kit(capsys, "kit_made_strategy:Wrong", *options)
    assert status == 1
    assert "failed: CommitStrategySuite.test_" in out
    assert "  If this fails, " in out
    assert "checks failed" in err


@pytest.mark.slow
def test_the_report_can_be_read_by_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--suite", "CommitStrategySuite", "--check", "states_its_contract", "--output", "json")
    status, out, _ = kit(capsys, "kit_made_strategy:Right", *options)
    assert status == 0
    (record,) = map(json.loads, out.splitlines())
    assert record == {
        "suite": "CommitStrategySuite",
        "check": "test_the_plugin_states_its_contract_number",
        "outcome": "skipped",
        "reason": "no installed plugin provides Right",
        "advice": "",
    }


@pytest.mark.slow
def test_a_skipped_check_is_reported_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = kit(
        capsys, "kit_made_strategy:Right", "--suite", "CommitStrategySuite", "--check", "states_its_contract"
    )
    assert out.endswith("skipped:\n    1  no installed plugin provides Right\n")


@pytest.mark.slow
def test_newer_checks_are_left_out_and_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    newer = "\nfrom icefield_testing import CommitStrategySuite, new_in\n"
    newer += 'new_in("9.0")(CommitStrategySuite.test_the_plugin_states_its_contract_number)\n'
    (tmp_path / "kit_made_newer.py").write_text(STRATEGY + newer)
    options = ("--suite", "CommitStrategySuite", "--check", "states_its_contract")
    # The module is imported by this process as well, and marks the check here.
    from icefield_testing import CommitStrategySuite

    check = CommitStrategySuite.test_the_plugin_states_its_contract_number
    try:
        _, out, _ = kit(capsys, "kit_made_newer:Right", *options, "--kit-version", "0.1")
    finally:
        vars(check).pop("new_in", None)
    assert "left out:\n    1  left out: new in version 9.0 of the kit, and version 0.1 is chosen\n" in out


@pytest.mark.slow
def test_a_listener_gets_the_properties(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--check", "test_every_event_is_heard")
    status, out, _ = kit(capsys, "kit_made_listener", "-p", "label=mine", *options)
    assert status == 0
    assert out.startswith("kit_made_listener: a listener, by the hook icefield_events\n")
    status, out, _ = kit(capsys, "kit_made_listener", "-p", "label=other", "-p", "my.password=hidden", *options)
    assert status == 1
    assert "'label': 'other'" in out
    assert "hidden" not in out, "a credential shows in the report"


@pytest.mark.slow
def test_a_file_system_is_tried_at_its_location_and_looked_at_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--location",
        "file://{folder}/{fresh}",
        "--raw",
        "{folder}/{fresh}",
        "--check",
        "test_a_put_file or abort",
    )
    status, out, err = kit(capsys, "icefield:LocalFileSystem", *options, "--suite", "FileSystemSuite")
    assert (status, err) == (0, "")
    assert "FileSystemSuite" in out


@pytest.mark.slow
def test_a_process_that_a_class_ends_is_reported_with_the_last_check(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = kit(capsys, "kit_made_strategy:Ends", "--suite", "CommitStrategySuite")
    assert status == 1
    assert "the checks ended early, with status 9" in err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["kit_made_nothing:Right"], 1, "the module 'kit_made_nothing' cannot be imported: No module named"),
        (["kit_made_strategy:Rihgt"], 1, "the module 'kit_made_strategy' has no 'Rihgt'; was 'Right' meant?"),
        (["kit_made_strategy:Own"], 1, "kit_made_strategy:Own fulfils no contract: it is no subclass of icefield.abc."),
        (["kit_made_strategy:Lacks"], 1, "kit_made_strategy:Lacks lacks methods of its contract: publish"),
        (["kit_made_strategy:Right", "--suite", "Commits"], 1, "the kit has no suite 'Commits'"),
        (["kit_made_strategy:Right", "--set", "lease_secnds=1"], 1, "was 'lease_seconds' meant?"),
        (["kit_made_strategy:Right", "--check", "test_none"], 1, "no check has 'test_none' in its name"),
        (["kit_made_strategy:Right", "--kit-version", "old"], 1, "'old' is no version of the kit, such as 0.1"),
        (["icefield:LocalFileSystem"], 2, "give --location with a location of its scheme, and --raw"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else None,
)
def test_a_wrong_argument_is_said_in_one_sentence(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, _, err = kit(capsys, *arguments)
    assert words in err
    assert ended == status
    assert "Traceback" not in err
