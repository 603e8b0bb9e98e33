"""The contracts of import-linter reject what they are there for."""

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("from icefield.storage import FileIO", "Plugins import public modules only"),
        ("from icefield.types.arrow.types import field_id", "Plugins import public modules only"),
        ("from icefield.metadata.properties import get_int", "Plugins import public modules only"),
        ("from icefield_avro import reader", "Plugins never import each other"),
        ("from icefield.toolkit import field_id", None),
        ("from icefield.metadata import get_int", None),
    ],
)
def test_a_plugin_is_held_to_public_modules(tmp_path: Path, statement: str, broken: str | None) -> None:
    package = tmp_path / "icefield_stranger"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "strange.py").write_text(f"{statement}\n")
    # The stranger takes the place of the template's plugin in every list of plugins.
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
    assert len(kept) + len(failed) == 3, run.stdout + run.stderr
    assert failed == ([broken] if broken else [])


def test_no_plugin_is_left_out_of_the_contracts_and_none_has_an_exception() -> None:
    settings = tomllib.loads(CONTRACTS)["tool"]["importlinter"]
    packages = {path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")} | {"icefield_arrow_ipc"}
    kernel, public, independent = settings["contracts"]
    assert {*settings["root_packages"]} == {"icefield", *packages}
    assert {*public["source_modules"]} == packages
    # The package by which Spark finds the data source is of the same distribution as icefield_spark.
    assert {*independent["modules"]} == packages - {"pyspark_icefield"}
    assert not [contract["name"] for contract in (public, independent) if "ignore_imports" in contract]
    # What the kernel names upwards are types, for a type checker alone.
    for upward in kernel["ignore_imports"]:
        module, _, room = upward.partition(" -> ")
        text = text_of(Path("framework/src", *module.split(".")).with_suffix(".py"))
        above, _, below = text.partition("if TYPE_CHECKING:")
        assert f"from {room} import" in below.partition("\n\n")[0]
        assert f"{room} import" not in above
