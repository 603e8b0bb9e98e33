"""The contracts of import-linter reject what they are there for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
        ("from icefield_avro import reader", "Plugins never import each other"),
        ("from icefield.toolkit import field_id", None),
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
