"""Snapshot ids in the JSON of commands: strings, since jq and JavaScript round whole numbers beyond 2^53."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from icefield import Table
from icefield_cli.output import with_ids


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


COMMANDS = [
    ("describe", "db.events"),
    ("snapshots", "db.events"),
    ("history", "db.events"),
    ("refs", "db.events"),
    ("files", "db.events"),
    ("manifests", "db.events"),
    ("partitions", "db.events"),
    ("doctor", "db.events"),
    ("metadata", "db.events"),
    ("compute-stats", "db.events"),
    ("expire-snapshots", "db.events", "--older-than", "0d"),
    ("changes", "db.events"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_whole_number_of_a_command_is_rounded_by_a_reader_of_json(
    run: Any, events: Table, command: tuple[str, ...]
) -> None:
    out = run(*command, "--output", "json").out
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(out.rstrip()):
        value, at = decoder.raw_decode(out, at)
        found.append(value)
        at += len(out[at:]) - len(out[at:].lstrip())
    assert all(abs(number) <= 2**53 - 1 for number in _numbers(found)), out
    ids = {str(snapshot.snapshot_id) for snapshot in events.snapshots()}
    if command[0] in ("describe", "snapshots", "history", "refs", "manifests", "metadata"):
        assert any(f'"{each}"' in out for each in ids)


def test_a_snapshot_id_is_a_string_whatever_its_size() -> None:
    small = {"snapshot_id": 7, "parent_id": None, "snapshot-ids": [1, 2**60], "refs": {"main": {"snapshot-id": 3}}}
    assert with_ids(small) == {
        "snapshot_id": "7",
        "parent_id": None,
        "snapshot-ids": ["1", str(2**60)],
        "refs": {"main": {"snapshot-id": "3"}},
    }
    assert with_ids({"sequence_number": 5, "first_row_id": 2**53 - 1, "x": 2**53, "yes": True}) == {
        "sequence_number": 5,
        "first_row_id": 2**53 - 1,
        "x": str(2**53),
        "yes": True,
    }


def test_rows_of_a_table_keep_their_numbers(run: Any, events: Table) -> None:
    events.append(pa.table({"id": pa.array([2**60 + 1], pa.int64()), "kind": ["x"]}))
    rows = run("scan", "db.events", "--where", "kind = 'x'", "--output", "json").objects
    assert rows[0]["id"] == 2**60 + 1


def test_metadata_without_output_is_the_file_as_it_is_stored(run: Any, events: Table) -> None:
    assert run("metadata", "db.events").object == json.loads(events.io.read_metadata(events.metadata_location))
