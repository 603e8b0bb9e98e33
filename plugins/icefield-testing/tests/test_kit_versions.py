"""Checks that are new in a version of the kit can be adopted later, seen in runs of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test is a run of pytest

SUITE = """
from icefield_testing import Suite, new_in

class Checks(Suite):
    def test_first(self):
        pass

    @new_in("0.2")
    def test_second(self):
        '''If this fails, the second version is not adopted.'''
        assert False

    @new_in("0.10.1")
    def test_third(self):
        assert False

class TestMine(Checks):
    pass
"""


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a test module in a folder with nothing else."""
    (folder / "test_mine.py").write_text(test)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-ra",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        *options,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_all_checks_run_by_default(tmp_path: Path) -> None:
    assert "2 failed, 1 passed" in run(tmp_path, SUITE).stdout


def test_the_option_leaves_out_newer_checks_and_names_them(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE, "--icefield-kit-version=0.1")
    assert ended.returncode == 0
    assert "1 passed, 2 skipped" in ended.stdout
    assert "left out: new in version 0.2 of the kit, and version 0.1 is chosen" in ended.stdout
    assert "left out: new in version 0.10.1 of the kit, and version 0.1 is chosen" in ended.stdout


def test_a_version_runs_its_own_checks_and_those_before(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE, "--icefield-kit-version=0.10")
    assert "1 failed, 1 passed, 1 skipped" in ended.stdout
    assert "If this fails, the second version is not adopted." in ended.stdout
    assert "2 failed, 1 passed" in run(tmp_path, SUITE, "--icefield-kit-version=0.10.1").stdout


def test_a_suite_chooses_for_itself(tmp_path: Path) -> None:
    suite = SUITE.replace("class TestMine(Checks):\n    pass", 'class TestMine(Checks):\n    kit_version = "0.1"')
    assert "1 passed, 2 skipped" in run(tmp_path, suite, "--icefield-kit-version=0.10.1").stdout


def test_a_word_in_place_of_a_version_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE, "--icefield-kit-version=old")
    assert ended.returncode == 4
    assert "--icefield-kit-version: 'old' is no version of the kit, such as 0.1" in ended.stderr
