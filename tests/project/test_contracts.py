"""The contracts of import-linter reject the imports that they forbid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from repository import ROOT, text_of

CONTRACTS = text_of(Path("pyproject.toml"))
ENGINE_USERS = {"icefield_import", "icefield_maintenance", "icefield_rest_server", "icefield_testing"}
"""The plugins that work below a table."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("from icefield.storage import FileIO", "The engine tier is for plugins below a table"),
        ("from icefield.catalog import Table", "Plugins import public packages only"),
        ("from icefield.types.arrow.types import field_id", "Plugins import public packages only"),
        ("from icefield.manifest.reader import read_manifest", "Plugins import public packages only"),
        ("from icefield.metadata.properties import get_int", "Plugins import public packages only"),
        ("from icefield_avro import reader", "Plugins never import each other"),
        ("from icefield_testing import Suite", "Plugins never import each other"),
        ("from icefield_maintenance import MaintenanceTable", "Plugins never import each other"),
        ("from icefield.toolkit import field_id", None),
        ("from icefield.metadata import get_int", None),
    ],
)
def test_a_plugin_is_held_to_public_packages(tmp_path: Path, statement: str, broken: str | None) -> None:
    package = tmp_path / "icefield_stranger"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "strange.py").write_text(f"{statement}\n")
    # The test package replaces the template's plugin in every list of plugins.
    config = tmp_path / "pyproject.toml"
    config.write_text(re.sub(r'"icefield_arrow_ipc"', '"icefield_stranger"', CONTRACTS))
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--config", config, "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    kept = re.findall(r"^(.+) KEPT", run.stdout, re.MULTILINE)
    failed = re.findall(r"^(.+) BROKEN", run.stdout, re.MULTILINE)
    assert len(kept) + len(failed) == 5, run.stdout + run.stderr
    assert broken in failed if broken else failed == []


def test_no_plugin_is_left_out_of_the_contracts_and_exceptions_are_dependencies() -> None:
    settings = tomllib.loads(CONTRACTS)["tool"]["importlinter"]
    packages = {path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")} | {"icefield_arrow_ipc"}
    kernel, above, public, engine, independent = settings["contracts"]
    assert {*settings["root_packages"]} == {"icefield", *packages}
    assert {*above["forbidden_modules"]} == packages
    assert {*public["source_modules"]} == packages
    assert {*engine["source_modules"]} == packages - ENGINE_USERS
    # Spark finds the data source by this package, which belongs to the same distribution as icefield_spark.
    assert {*independent["modules"]} == packages - {"pyspark_icefield"}
    # The exceptions for icefield_maintenance, which was a part of the kernel and needs names that are not public yet.
    assert {arrow.partition(" -> ")[0] for arrow in public.get("ignore_imports", ())} <= {"icefield_maintenance.**"}
    own = [arrow for arrow in independent["ignore_imports"] if arrow not in above["ignore_imports"]]
    for importer, _, imported in (arrow.partition(" -> ") for arrow in own):
        package, _, module = importer.removesuffix(".**").partition(".")
        project = tomllib.loads(text_of(Path("plugins", package.replace("_", "-"), "pyproject.toml")))["project"]
        needed = project["dependencies"]
        part, extras = module.partition(".")[0], project.get("optional-dependencies", {})
        if part in extras:
            needed = extras[part]
        elif module:  # of a command, which runs only beside icefield-cli
            assert part in ("hooks", "command", "commands")
            assert imported == "icefield_cli"
            needed = [each for given in extras.values() for each in given]
        assert f"{imported.partition('.')[0].replace('_', '-')}>=0.1,<0.2" in needed
    assert "ignore_imports" not in engine
    # Imports from higher layers are types for the type checker only.
    for upward in {*kernel["ignore_imports"], *above["ignore_imports"]}:
        module, _, room = upward.partition(" -> ")
        place = Path("framework/src", *module.split("."))
        text = text_of(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
        imported, _, for_types = text.partition("if TYPE_CHECKING:")
        assert f"from {room} import" in for_types.partition("\n\n")[0]
        assert f"{room} import" not in imported
