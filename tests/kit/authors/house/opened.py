"""Catalogs with the plugins of a test, and processes that find the distribution installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import icefield
from authors.house import hooks
from icefield import Catalog, Plugins


def opened(*plugins: Any, **properties: str) -> Catalog:
    """A catalog in memory with the namespace ``db``, the distribution's plugin and further ones."""
    return opened_with(Plugins.installed(extra=[hooks, *plugins]), **properties)


def opened_with(plugins: Plugins, **properties: str) -> Catalog:
    """A catalog in memory with the namespace ``db``."""
    warehouse = f"memory://{uuid4().hex}"
    catalog = icefield.load_catalog("c", type="directory", warehouse=warehouse, plugins=plugins, **properties)
    catalog.create_namespace("db")
    return catalog


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process with two distributions: this one, and a user of its hook."""
    for name, target in (("house", "authors.house.hooks"), ("auditors", "authors.house.auditors")):
        installed = folder / f"site/icefield_{name}-1.0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: icefield-{name}\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(f"[icefield]\n{name} = {target}\n")
    paths = [str(folder / "site"), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}
