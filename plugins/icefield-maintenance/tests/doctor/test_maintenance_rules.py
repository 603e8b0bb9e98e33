"""The rules of maintenance count the files that a call would rewrite, and no others."""

from __future__ import annotations

import re
from uuid import uuid4

import icefield
import pyarrow as pa
from icefield import Table
from icefield_maintenance.doctor import Result, examine_table

KINDS = pa.schema([("id", pa.int64()), ("kind", pa.string())])


def table_of(*kinds: str, partitioned: bool = True) -> Table:
    """A table with one small file for each kind."""
    catalog = icefield.load_catalog("m", type="directory", warehouse=f"memory://{uuid4().hex}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", KINDS, partition_spec="kind" if partitioned else None)
    for number, kind in enumerate(kinds):
        table.append(pa.table({"id": [number], "kind": [kind]}, schema=KINDS))
    return table


def small_files(table: Table) -> tuple[int, ...]:
    """The files, partitions and bytes that the finding of small files states; empty if the rule holds."""
    (found,) = [each for group in examine_table(table) for each in group.findings if each.check == "small-files"]
    if found.result is Result.OK:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+(?= data| part| bytes)", found.found.replace(",", "")))


def bytes_of(table: Table, *kinds: str) -> int:
    files = table.inspect.files().to_pylist()
    return sum(file["file_size_in_bytes"] for file in files if file["partition"]["kind"] in kinds)


def test_bytes_of_small_files_are_of_the_partitions_that_are_worth_it() -> None:
    table = table_of(*"aaaaabbbbccccc")
    assert small_files(table) == (10, 2, bytes_of(table, "a", "c"))
    assert bytes_of(table, "a", "c") < bytes_of(table, "a", "b", "c")


def test_no_partition_with_few_small_files_is_a_finding() -> None:
    assert small_files(table_of(*"aaaabbbb")) == ()


def test_all_files_of_an_unpartitioned_table_count_together() -> None:
    assert small_files(table_of(*"abcd", partitioned=False)) == ()
    assert small_files(table_of(*"abcde", partitioned=False))[:2] == (5, 1)
