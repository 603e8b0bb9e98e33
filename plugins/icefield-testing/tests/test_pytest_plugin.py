"""What an installed kit does to a run of pytest, seen in runs of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest
from icefield import MemoryFileSystem
from icefield_testing import FileSystemSuite

class TestMine(FileSystemSuite):
    @pytest.fixture
    def file_system(self):
        return MemoryFileSystem()

    @pytest.fixture
    def root(self):
        return "memory://kit-plugin"

    def raw_get(self, location):
        return b"other bytes"

    def raw_put(self, location, data):
        MemoryFileSystem.files[location] = data, 0
"""


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a test module in a folder with nothing else."""
    (folder / "test_mine.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_a_check_that_fails_shows_the_values_in_its_assertion(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE, "-k", "test_creating_refuses_a_taken_name")
    assert ended.returncode == 1
    assert "assert b'other bytes' == b'" in ended.stdout


def test_a_run_without_a_suite_does_not_import_the_kit(tmp_path: Path) -> None:
    ended = run(tmp_path, "import sys\n\ndef test_absent():\n    assert 'icefield_testing' not in sys.modules\n")
    assert ended.returncode == 0, ended.stdout
