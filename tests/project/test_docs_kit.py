"""The plugins that the documentation shows pass the kit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fenced import Page, is_run

PAGES = tuple(f"docs/plugins/{name}.md" for name in ("file-system", "commit-strategy", "catalog", "key-service"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_plugin_that_a_page_shows_passes_the_kit(page: str, tmp_path: Path) -> None:
    shown = "\n".join(block.text for block in Page(Path(page)).blocks if is_run(block))
    (tmp_path / "test_page.py").write_text(shown, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stdout[-5_000:]
    assert " passed" in run.stdout
