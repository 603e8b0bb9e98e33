"""The environment of a job on a cluster: the wheels of this repository, and a home of Spark that workers write to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from repository import ROOT


def build_wheels(folder: Path, plugins: Iterable[str]) -> Path:
    """The kernel and some plugins, by their names after ``icefield-``, as an index would have them."""
    for distribution in (".", *(f"plugins/icefield-{name}" for name in plugins)):
        command = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", folder, ROOT / distribution]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
    return folder


def spark_home(folder: Path) -> Path:
    """The installed Spark under a home of its own: its workers write below it."""
    folder.mkdir()
    installed = find_spec("pyspark")
    assert installed is not None
    assert installed.submodule_search_locations is not None
    for path in Path(installed.submodule_search_locations[0]).iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder
