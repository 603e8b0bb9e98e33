"""Plugins that are rendered from the template of this repository, and look installed to another process."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from copier import run_copy
from repository import ROOT

TEMPLATE = ROOT / "templates" / "plugin"
KINDS = ("file-format", "file-system", "commit-strategy", "catalog", "key-service", "listener", "command")


def render(folder: Path, kind: str, name: str, **answers: str) -> Path:
    """Render a plugin into a folder, as ``copier copy`` does with these answers. Returns the folder."""
    run_copy(str(TEMPLATE), folder, data={"kind": kind, "name": name, **answers}, defaults=True, quiet=True)
    return folder


def install(project: Path, folder: Path) -> dict[str, str]:
    """The environment of a process that finds the plugin installed: its metadata are written to ``folder``."""
    stated = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = folder / f"{stated['name'].replace('-', '_')}-{stated['version']}.dist-info"
    metadata.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {stated['name']}", f"Version: {stated['version']}"]
    (metadata / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
    points = [f"[{group}]\n{k} = {v}" for group, given in stated["entry-points"].items() for k, v in given.items()]
    (metadata / "entry_points.txt").write_text("\n".join(points) + "\n", "utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "src"), str(folder)])}


def run_pytest(project: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a rendered plugin in its folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, encoding="utf-8", check=False)
