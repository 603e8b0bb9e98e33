"""A file format by rows, written with the documentation and public names alone: it passes the kit, and holds tables."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar
from uuid import uuid4

import json_lines
import pyarrow as pa
import pytest
from icefield import Plugins, Provider, hookimpl, load_catalog
from icefield.abc import FileFormat
from icefield.scan import read_tasks
from icefield_testing import FileFormatSuite
from json_lines import BLOCK_ROWS, JsonLinesFormat

PUBLIC = {"icefield", "icefield.abc", "icefield.errors", "icefield.expressions", "icefield.toolkit", "icefield.types"}


@pytest.mark.slow
class TestJsonLines(FileFormatSuite):
    small_blocks: ClassVar = {BLOCK_ROWS: "100"}

    @pytest.fixture
    def file_format(self) -> FileFormat:
        return JsonLinesFormat()


def test_it_is_written_with_public_names_alone() -> None:
    tree = ast.parse(Path(json_lines.__file__).read_text("utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert {module for module in modules if module.startswith("icefield")} <= PUBLIC


def test_a_table_of_it_is_read_in_splits_and_under_filters() -> None:
    class Plugin(SimpleNamespace):
        @hookimpl
        def icefield_file_formats(self) -> list[Provider]:
            return [Provider(("json-lines",), "json_lines:JsonLinesFormat")]

    plugins = Plugins.installed(extra=[Plugin()])
    with load_catalog("rows", plugins=plugins, type="directory", warehouse=f"memory://rows/{uuid4().hex}") as catalog:
        catalog.create_namespace("db")
        rows = pa.table({"id": pa.array(range(5_000), pa.int64()), "name": [f"n{n % 10}" for n in range(5_000)]})
        properties = {
            "write.format.default": "json-lines",
            BLOCK_ROWS: "500",
            "read.split.target-size": "50000",
            "read.split.open-file-cost": "1",
        }
        table = catalog.create_table("db.t", rows.schema, properties=properties)
        table.append(rows)
        groups = list(table.scan().plan_tasks())
        assert len(groups) == 3
        parts = [batch for group in groups for batch in read_tasks(group, table.scan().context)]
        assert sorted(pa.Table.from_batches(parts)["id"].to_pylist()) == list(range(5_000))
        tasks = list(table.scan().plan_files())
        assert table.scan().to_arrow().sort_by("id").equals(rows.cast(table.scan().to_arrow().schema))
        assert len(tasks) == 1
        assert tasks[0].file.file_path.endswith(".jsonl")
        assert len(tasks[0].file.split_offsets or ()) == 10
        with table.update_schema() as update:
            update.rename_column("name", "label")
        table.delete("id < 10")
        assert table.scan("label = 'n7' and id > 4980").to_arrow()["id"].to_pylist() == [4987, 4997]
        assert table.scan().count() == 4_990
