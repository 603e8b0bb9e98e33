"""The unchanged examples run, and print the promised lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nbclient
import nbformat
import pytest
from repository import ROOT
from servers.gcs import Gcs
from servers.s3 import S3


def run(
    example: str, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> list[str]:
    """The lines that an example prints."""
    command = [sys.executable, str(ROOT / "examples" / example), *arguments]
    given = {**os.environ, **(environment or {})}
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, cwd=folder, env=given)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_time_travel(tmp_path: Path) -> None:
    assert run("time-travel/time_travel.py", str(tmp_path)) == [
        "now: 1.5",
        "by tag: 2.5",
        "by time: 2.5",
        "wrong prices on the branch: 1 and on main: 0",
        "taken back: 2.5",
        "history: 3 changes of the head",
    ]


@pytest.mark.slow
def test_changes_of_a_database(tmp_path: Path) -> None:
    assert run("cdc-upserts/cdc_upserts.py", str(tmp_path)) == [
        "1 Ann Cork",
        "2 Bob Paris",
        "4 Dan Lima",
        "stands at batch 2",
        "net changes since batch 0: 6",
        "rows: 3",
    ]


@pytest.mark.slow
def test_a_notebook_shows_every_value_as_a_page() -> None:
    notebook = nbformat.read(ROOT / "examples/notebook/tables.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells), "the notebook is kept without outputs"
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    pages = [output.data["text/html"] for cell in cells for output in cell.outputs if "data" in output]
    assert len(pages) == len(cells)
    assert all('<div class="icefield-page">' in page for page in pages)
    titles = [re.findall("<strong>(.*?)</strong>", page)[0] for page in pages]
    assert [title for title in titles if not title.isdigit()] == [
        "lake",
        "WriteResult",
        "shop.orders",
        "Schema",
        "Partition spec",
        "WriteResult",
        "shop.orders",
        "TableScan",
        "Plan",
        "RewriteDataFilesResult",
        "ExpireSnapshotsResult",
        "RemoveOrphanFilesResult",
    ]


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.slow
def test_a_pipeline_of_streams_goes_on_where_it_stood(tmp_path: Path) -> None:
    end = [
        "6099 flights up to January 7",
        "  B6: 1107 flights, at worst 366 minutes late",
        "  UA: 1067 flights, at worst 379 minutes late",
    ]
    assert run("streaming/streaming.py", str(tmp_path)) == [
        "4334 flights up to January 5",
        "  B6: 802 flights, at worst 252 minutes late",
        "  UA: 772 flights, at worst 379 minutes late",
        *end,
    ]
    assert run("streaming/streaming.py", str(tmp_path)) == end * 2


@pytest.mark.slow
def test_a_table_in_two_clouds(s3: S3, gcs: Gcs, tmp_path: Path) -> None:
    properties = {
        "PRIMARY": {**s3.properties, "warehouse": f"s3://{s3.bucket}/primary"},
        "COPY": {**gcs.properties, "warehouse": f"gs://{gcs.bucket}/copy"},
    }
    given = {
        f"ICEFIELD_CATALOG__{catalog}__{name.upper().replace('.', '__').replace('-', '_')}": value
        for catalog, found in properties.items()
        for name, value in found.items()
    }
    given["ICEFIELD_CONFIG"] = str(ROOT / "examples/two-clouds/icefield.toml")
    assert run("two-clouds/two_clouds.py", folder=tmp_path, environment=given) == [
        "copied: 500",
        "copied again: 0",
        "copied after a new column: 100",
        "eu 144 5328.0",
        "us 156 5772.0",
        "both say so: True",
        "the copy is in gs",
    ]
