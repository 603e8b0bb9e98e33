"""Strings in manifests and manifest lists that are not UTF-8: every way of reading gives rows, or a typed error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from avro_files import uncompressed
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.errors import IcefieldError
from icefield.manifest import clear_caches
from tables import SCHEMA, manifests, new_table

TABLES = (
    "manifests",
    "all_manifests",
    "entries",
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "partitions",
    "snapshots",
    "history",
    "refs",
    "metadata_log_entries",
)
TEXTS = rb"qqqq|zzzz|memory://|PARQUET|snapshot-id|\"kind\""


def table() -> Table:
    made = new_table("kind")
    made.append(pa.table({"id": [1, 2], "kind": ["qqqq", "zzzz"], "value": [1.0, 2.0]}, schema=SCHEMA))
    for location in locations(made):
        data, changed = MemoryFileSystem.files[location]
        MemoryFileSystem.files[location] = uncompressed(data), changed
    clear_caches()
    return made


def locations(made: Table) -> dict[str, str]:
    return {made.current_snapshot().manifest_list: "list", manifests(made)[0].manifest_path: "manifest"}


def roads(made: Table) -> dict[str, Callable[[], Any]]:
    inspected = {name: getattr(made.inspect, name) for name in TABLES}
    return {
        **inspected,
        "scan": lambda: made.scan().to_arrow(),
        "filtered": lambda: made.scan("kind = 'qqqq'").to_arrow(),
        "plan": lambda: made.scan().plan_arrow(include_stats=True),
        "tasks": lambda: [task.file for task in made.scan().plan_files(include_stats=True)],
        "delete": lambda: made.delete("kind = 'qqqq'"),
        "append": lambda: made.append(pa.table({"id": [3], "kind": ["a"], "value": [1.0]}, schema=SCHEMA)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "manifest"])
def test_every_road_over_a_damaged_string_gives_rows_or_an_error_with_the_location(kind: str) -> None:
    place = next(location for location, found in locations(table()).items() if found == kind)
    spots = [found.start() for found in re.finditer(TEXTS, MemoryFileSystem.files[place][0])]
    assert len(spots) > 3
    located: list[tuple[str, str]] = []
    unlocated: list[tuple[str, str]] = []
    for number in range(len(spots)):
        made = table()
        location = next(location for location, found in locations(made).items() if found == kind)
        data, changed = MemoryFileSystem.files[location]
        spot = [found.start() for found in re.finditer(TEXTS, data)][number]
        MemoryFileSystem.files[location] = data[: spot + 1] + b"\xff" + data[spot + 2 :], changed
        for name, road in roads(made).items():
            clear_caches()
            try:
                result = road()
                if isinstance(result, pa.Table):
                    result.to_pylist()
            except IcefieldError as error:
                (located if error.data.get("location") else unlocated).append((name, str(error)))
    assert unlocated == []
    assert located


def test_a_bound_that_is_no_value_of_its_type_is_shown_as_unknown() -> None:
    made = table()
    (location,) = [location for location, found in locations(made).items() if found == "list"]
    data, changed = MemoryFileSystem.files[location]
    MemoryFileSystem.files[location] = data.replace(b"\x08qqqq", b"\x08q\xffqq"), changed
    clear_caches()
    for inspected in (made.inspect.manifests(), made.inspect.all_manifests()):
        ((summary,),) = inspected["partition_summaries"].to_pylist()
        assert (summary["lower_bound"], summary["upper_bound"]) == (None, "zzzz")
