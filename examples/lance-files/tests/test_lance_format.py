"""The kit, run on the plugin, and tests of the paths that Lance gets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import icefield
import pyarrow as pa
import pytest

pytest.importorskip("lance", reason="Lance is not installed")

from icefield import Catalog, MemoryFileSystem, Plugins
from icefield.abc import FileFormat
from icefield.errors import InvalidFile
from icefield_lance.lance_format import LanceFormat
from icefield_testing import FileFormatSuite, TableBehaviourSuite
from lance.file import LanceFileReader

PLUGINS = Plugins.installed(extra=["icefield_lance.hooks"])  # for the case that the plugin itself is not installed
ROWS = pa.table({"id": range(20_000), "name": [f"n{n}" for n in range(20_000)]})


@pytest.mark.slow
class TestLanceFormat(FileFormatSuite):
    small_blocks: ClassVar = {"write.lance.block-rows": "100"}
    survives_fork = False  # Lance has threads of its own

    @pytest.fixture
    def file_format(self) -> FileFormat:
        return LanceFormat()


@pytest.mark.slow
class TestTablesOfLanceFiles(TableBehaviourSuite):
    """Tables whose files are Lance files."""

    table_properties: ClassVar = {"write.format.default": "lance"}
    one_process = True  # Lance does not survive a fork

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return catalog_at(f"file://{tmp_path}/wh", tmp_path)


def catalog_at(warehouse: str, folder: Path) -> Catalog:
    uri = f"sqlite:///{folder}/demo.db"
    return icefield.load_catalog("demo", plugins=PLUGINS, type="sql", uri=uri, warehouse=warehouse)


def table_at(warehouse: str, folder: Path) -> icefield.Table:
    catalog = catalog_at(warehouse, folder)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", ROWS.schema, properties={"write.format.default": "lance"})


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_on_a_local_disk_nothing_is_copied(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    right = tempfile.mkdtemp

    def recorded(*args: Any, **options: Any) -> str:
        made.append(right(*args, **options))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", recorded)
    table = table_at(f"file://{tmp_path}/wh", tmp_path)
    table.append(ROWS)
    assert made
    assert {os.path.dirname(folder).partition("/wh/")[0] for folder in made} == {str(tmp_path)}
    made.clear()
    assert table.scan("id >= 19990").count() == 10
    assert made == []
    data = [path for path in Path(tmp_path, "wh").rglob("*") if path.parent.name == "data"]
    assert [path.suffix for path in data] == [".lance"]
    assert [*temporary.iterdir()] == []


def test_elsewhere_a_copy_is_read_and_deleted(tmp_path: Path, temporary: Path) -> None:
    table = table_at("memory://lance-files/wh", tmp_path)
    table.append(ROWS)
    table.delete("id < 5")
    assert table.scan().to_arrow().sort_by("id").equals(ROWS.slice(5))
    assert [*temporary.iterdir()] == []


def test_another_reader_of_lance_reads_the_files(tmp_path: Path) -> None:
    table_at(f"file://{tmp_path}/wh", tmp_path).append(ROWS)
    (path,) = Path(tmp_path, "wh").rglob("*.lance")
    read = LanceFileReader(str(path)).read_all().to_table()
    assert read.column_names == ["1", "2"]
    assert read.column("2").to_pylist() == ROWS.column("name").to_pylist()


def test_a_file_that_another_program_wrote_is_refused(tmp_path: Path) -> None:
    location = f"memory://lance-files/{tmp_path.name}"
    with MemoryFileSystem().open_output(location) as sink:
        sink.write(b"LANC" * 100)
    with pytest.raises(InvalidFile, match="is no footer of a file that this plugin wrote"):
        LanceFormat().open_reader(MemoryFileSystem().open_input(location), location)
