"""The process that runs the suites of a request: ``python -m icefield_testing.command.child FOLDER``.

The folder holds the request. The process writes a line of JSON there for the outcome of each check.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from pytest_icefield import LEFT_OUT

from icefield_testing.command.request import Request

REQUEST: Final = "request.json"
OUTCOMES: Final = "outcomes.jsonl"
_TESTS: Final = """\
from pathlib import Path

from icefield_testing.command.request import Request
from icefield_testing.command.suites import classes

globals().update(classes(Request.read(Path(__file__).with_name("request.json"))))
"""


class Recorder:
    """A plugin of pytest that writes the outcome of each check."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the outcome of the call, and of a setup or teardown that did not pass."""
        report = yield
        if report.when == "call" or not report.passed:
            self._write(item, report, call)
        return report

    def _write(self, item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        reason, advice = "", ""
        outcome: str = report.outcome
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reason = reason.removeprefix("Skipped: ")
            outcome = "left out" if reason.startswith(LEFT_OUT) else outcome
        elif error is not None:
            said = str(error).strip()
            is_check = isinstance(error, AssertionError | pytest.fail.Exception)
            reason = said if is_check else f"{type(error).__name__}: {said}"
            advice = "\n".join(getattr(error, "__notes__", ()))
        suite = getattr(getattr(item, "cls", None), "__name__", "").removeprefix("Test")
        record = {"suite": suite, "check": item.name, "outcome": outcome, "reason": reason, "advice": advice}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def main(folder: Path) -> int:
    """Run the suites of the request in a folder."""
    request = Request.read(folder / REQUEST)
    (folder / "test_kit.py").write_text(_TESTS, "utf-8")
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\n", "utf-8")  # so that pytest finds no configuration of the author's tests
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(folder), "-c", str(settings)]
    if request.check:
        arguments += ["-k", request.check]
    if request.kit_version:
        arguments += ["--icefield-kit-version", request.kit_version]
    return int(pytest.main([*arguments, str(folder / "test_kit.py")], [Recorder(folder / OUTCOMES)]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
