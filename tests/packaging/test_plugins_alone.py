"""The tests of each plugin run from its own folder: their common code is installed. Run with ``make packaging``."""

import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

pytestmark = pytest.mark.packaging

# Empty, so that no folder of this repository is on the path of these tests.
COLLECT = [
    sys.executable,
    "-m",
    "pytest",
    "tests",
    "--collect-only",
    "-q",
    "-o",
    "pythonpath=",
    "-p",
    "no:cacheprovider",
]


@pytest.mark.parametrize("folder", sorted(ROOT.glob("plugins/*")), ids=lambda folder: folder.name)
def test_the_tests_of_a_plugin_are_found_from_its_own_folder(folder: Path) -> None:
    ran = subprocess.run(COLLECT, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert f"plugins/{folder.name}/tests/test_" in ran.stdout
