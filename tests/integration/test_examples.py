"""The examples run as they stand, and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT


def run(example: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    command = [sys.executable, str(ROOT / "examples" / example), *arguments]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_time_travel(tmp_path: Path) -> None:
    assert run("time-travel/time_travel.py", str(tmp_path)) == [
        "now: 1.5",
        "by tag: 2.5",
        "by time: 2.5",
        "wrong prices on the branch: 1 and on main: 0",
        "taken back: 2.5",
        "history: 3 changes of the head",
    ]


@pytest.mark.slow
def test_changes_of_a_database(tmp_path: Path) -> None:
    assert run("cdc-upserts/cdc_upserts.py", str(tmp_path)) == [
        "1 Ann Cork",
        "2 Bob Paris",
        "4 Dan Lima",
        "stands at batch 2",
        "net changes since batch 0: 6",
        "rows: 3",
    ]
