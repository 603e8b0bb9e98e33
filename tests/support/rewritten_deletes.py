"""Maintenance of delete files by name, the delete files that it leaves, and tables that need it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from icefield.catalog import Table
from icefield.manifest import DataFile, DataFileContent
from icefield.manifest import schemas as f
from tables import entries, manifests

MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
MaintenanceCall = Callable[[Table], Any]


def rewrite(table: Table) -> Any:
    return table.maintenance.rewrite_position_delete_files(min_input_files=2)


def rewrite_all(table: Table) -> Any:
    return table.maintenance.rewrite_position_delete_files(rewrite_all=True)


def remove_dangling(table: Table) -> Any:
    return table.maintenance.remove_dangling_deletes()


def convert(table: Table) -> Any:
    return table.maintenance.convert_equality_deletes()


def deletes(table: Table) -> dict[tuple[str, int | None], tuple[DataFile, int]]:
    """The live delete files, each with its data sequence number."""
    found = {}
    for manifest in manifests(table):
        read = entries(table, manifest)
        read = read.filter(read.live())
        for file, number in zip(read.data_files(), read.column(f.SEQUENCE_NUMBER).to_pylist(), strict=True):
            if file.content is not DataFileContent.DATA:
                found[file.file_path, file.content_offset] = file, number
    return found


def kinds(table: Table) -> Counter[str]:
    """How many delete files of each kind."""
    return Counter(
        "vector" if file.is_deletion_vector else file.content.name.lower() for file, _ in deletes(table).values()
    )


def live(table: Table) -> list[tuple[Any, ...]]:
    """The rows, with all columns."""
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=str)
