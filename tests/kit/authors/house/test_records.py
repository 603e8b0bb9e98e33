"""The format ``records`` passes the kit; its property is checked when it is set, and steers its writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pyarrow as pa
import pytest
from authors.house.opened import opened, opened_with
from authors.house.record_files import RecordsFormat
from icefield import Catalog, Plugins, Table
from icefield.abc import FileFormat
from icefield.errors import InvalidArgument
from icefield.metadata.property_checks import PropertyWarning
from icefield_testing import FileFormatSuite

ROWS = pa.table({"id": range(10)})
FRAME_ROWS, OF_DELETES = "write.records.frame-rows", "write.delete.records.frame-rows"
FORMAT = {"write.format.default": "records"}


class TestRecords(FileFormatSuite):
    small_blocks: ClassVar = {FRAME_ROWS: "500"}

    @pytest.fixture
    def file_format(self) -> FileFormat:
        return RecordsFormat()


@pytest.fixture
def catalog() -> Catalog:
    return opened()


def created(catalog: Catalog, **properties: str) -> Table:
    return catalog.create_table("db.t", ROWS.schema, properties={**FORMAT, **properties})


@pytest.mark.parametrize("name", [FRAME_ROWS, OF_DELETES])
@pytest.mark.parametrize("set_it", [created, lambda catalog, **given: created(catalog).set_properties(given)])
def test_a_value_that_the_format_cannot_use_is_refused_when_it_is_set(
    catalog: Catalog, set_it: Callable[..., object], name: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"'{name}': '0' is below 1"):
        set_it(catalog, **{name: "0"})
    with pytest.raises(InvalidArgument, match=f"'{name}': 'few' is not of type integer"):
        set_it(opened(), **{name: "few"})


def test_a_slip_in_the_name_is_reported(catalog: Catalog) -> None:
    with pytest.warns(PropertyWarning, match=f"'write.records.frame-row' is not known.*was '{FRAME_ROWS}' meant"):
        created(catalog, **{"write.records.frame-row": "5"})


def test_without_the_plugin_the_property_is_kept_unchecked() -> None:
    table = opened_with(Plugins.installed()).create_table("db.t", ROWS.schema, properties={FRAME_ROWS: "0"})
    assert table.properties[FRAME_ROWS] == "0"


def test_delete_files_take_the_property_for_delete_files(catalog: Catalog) -> None:
    table = created(catalog, **{FRAME_ROWS: "3", OF_DELETES: "2", "write.delete.mode": "merge-on-read"})
    table.append(ROWS)
    table.delete("id < 8")
    assert table.scan().count() == 2
    (task,) = table.scan().plan_files()
    (deletes,) = task.delete_files
    assert frames_of(catalog, task.file.file_path, 3) == 3
    assert frames_of(catalog, deletes.file_path, 2) == 4


def frames_of(catalog: Catalog, location: str, rows: int) -> int:
    """The number of frames of a file with that many rows."""
    with catalog.io.open_input(location) as source:
        return source.read_at(0, source.size).count(b"R" + rows.to_bytes(8, "little"))
