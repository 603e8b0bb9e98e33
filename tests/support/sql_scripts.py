"""Scripts of SQL statements that run on two sides with separate catalogs, and the states that must then be equal.

A script is a file of statements. A comment in front of a statement states the expected result: ``refused`` on both
sides, ``only here: why`` or ``only there: why`` where the second side refuses it, ``answer differs: why`` where answers
are not compared, ``masked: column, …; why`` where some columns of the answer are not, ``nullability differs: why``.
``{snapshot db.t 0}`` stands for the id of a table's first snapshot, ``{time db.t 0}`` for a time right after it,
``{metadata db.t}`` for the metadata file, and ``{lake}`` and other names for arguments of the script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from icefield.catalog import Catalog, Table

_PLACE = re.compile(r"\{(\w+)(?: ([\w.]+))?(?: (-?\d+))?\}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UNORDERED = "ORDER BY"
_OF_JAVA = ("owner", "write.parquet.compression-codec")
"""Properties that Java stores in every table that it creates, in place of leaving them to those who write."""

Answer = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One statement of a script."""

    string: str
    refused: bool = False
    only: str | None = None
    """``here`` or ``there``."""
    compares_answer: bool = True
    compares_nulls: bool = True
    masked: tuple[str, ...] = ()


def lines_of(path: Path) -> list[Line]:
    """The statements of a file."""
    found = []
    for block in re.split(r";\n", path.read_text("utf-8")):
        comments = [line[3:].strip() for line in block.splitlines() if line.startswith("-- ")]
        string = "\n".join(line for line in block.splitlines() if not line.startswith("--")).strip()
        if string:
            found.append(_line(string, comments))
    return found


def _line(string: str, comments: Iterable[str]) -> Line:
    said: dict[str, Any] = {}
    for comment in comments:
        kind, _, what = comment.partition(":")
        if kind == "refused":
            said["refused"] = True
        elif kind.startswith("only "):
            said["only"] = kind.removeprefix("only ")
        elif kind == "answer differs":
            said["compares_answer"] = False
        elif kind == "nullability differs":
            said["compares_nulls"] = False
        elif kind == "masked":
            said["masked"] = tuple(name.strip() for name in what.partition(";")[0].split(","))
    return Line(string, **said)


@dataclass
class Side:
    """One of the two sides: a function that runs statements, and the catalog for reading by Icefield's kernel."""

    run: Callable[[str], Answer]
    catalog: Catalog
    given: Mapping[str, str]
    names: dict[int, str] = field(default_factory=dict)
    """The names of known snapshots, which are the same on both sides."""

    def answer(self, line: Line) -> Any:
        """The columns and rows of a statement, in a form that is the same on both sides; None when it is refused."""
        found = self.run(_PLACE.sub(self._place, line.string))
        self._look()
        columns = [each["name"] for each in found["columns"]]
        rows = [
            [None if name in line.masked else self._same(value) for name, value in zip(columns, row, strict=True)]
            for row in found["rows"]
        ]
        if _UNORDERED not in line.string.upper():
            rows.sort(key=repr)
        shown = [(each["name"], each["type"], each["nullable"]) for each in found["columns"]]
        if not line.compares_nulls:
            shown = [(name, _without_nulls(kind), None) for name, kind, _ in shown]
        return {"columns": shown, "rows": rows}

    def state(self) -> dict[str, Any]:
        """Every table of the catalog: its shape, its properties, its branches and tags, and its rows."""
        self._look()
        return {".".join(name): self._table(self.catalog.load_table(name)) for name in _tables(self.catalog)}

    def _table(self, table: Table) -> dict[str, Any]:
        made = json.loads(Path(urlsplit(table.metadata_location).path).read_text("utf-8"))
        (schema,) = [each for each in made["schemas"] if each["schema-id"] == made["current-schema-id"]]
        (spec,) = [each for each in made["partition-specs"] if each["spec-id"] == made["default-spec-id"]]
        (order,) = [each for each in made["sort-orders"] if each["order-id"] == made["default-sort-order-id"]]
        return {
            "version": made["format-version"],
            "schema": _spelt({key: value for key, value in schema.items() if key != "schema-id" and value != []}),
            "last column": made["last-column-id"],
            "spec": spec["fields"],
            "order": order["fields"],
            "properties": {k: _parsed(v) for k, v in made["properties"].items() if k not in _OF_JAVA},
            "refs": {name: {k: self._same(v) for k, v in ref.items()} for name, ref in made.get("refs", {}).items()},
            "operations": [
                [*map(self._same, (each["snapshot-id"], each.get("parent-snapshot-id"))), _operation(each)]
                for each in made.get("snapshots", ())
            ],
            "rows": sorted(map(repr, table.scan().to_arrow().to_pylist())),
        }

    def _look(self) -> None:
        """Give every new snapshot its name."""
        for name in _tables(self.catalog):
            table = self.catalog.load_table(name)
            for each in sorted(table.snapshots(), key=lambda each: each.sequence_number or each.timestamp_ms):
                if each.snapshot_id not in self.names:
                    self.names[each.snapshot_id] = f"{table.metadata.table_uuid} {len(self._ids(table))}"

    def _ids(self, table: Table) -> list[int]:
        """The ids of a table's snapshots, expired ones included."""
        start = f"{table.metadata.table_uuid} "
        return [id_ for id_, called in self.names.items() if called.startswith(start)]

    def _place(self, found: re.Match[str]) -> str:
        kind, name, number = found.groups()
        if name is None:
            return self.given[kind]
        table = self.catalog.load_table(name)
        if kind == "metadata":
            return table.metadata_location
        id_ = self._ids(table)[int(number)]
        if kind == "snapshot":
            return str(id_)
        snapshot = table.snapshot_by_id(id_)
        assert kind == "time", found[0]
        assert snapshot is not None, found[0]
        made = datetime.fromtimestamp((snapshot.timestamp_ms + 1) / 1000, UTC)
        return f"{made:%Y-%m-%d %H:%M:%S}.{(snapshot.timestamp_ms + 1) % 1000:03d}Z"

    def _same(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._same(each) for each in value]
        if isinstance(value, dict):
            return {key: self._same(each) for key, each in value.items()}
        if isinstance(value, int) and value in self.names:
            return f"snapshot {self.names[value].split()[1]}"
        if isinstance(value, str):
            value = value.replace("file://", "file:")  # Java writes both forms
            for id_, called in self.names.items():
                value = value.replace(str(id_), f"snapshot {called.split()[1]}")
            for key, given in self.given.items():
                value = value.replace(given, f"<{key}>")
            return _UUID.sub("<uuid>", value)
        return value


def _without_nulls(kind: Any) -> Any:
    """A Spark type without its information on nullability."""
    if isinstance(kind, dict):
        return {key: _without_nulls(each) for key, each in kind.items() if "ull" not in key}
    return [_without_nulls(each) for each in kind] if isinstance(kind, list) else kind


def _operation(snapshot: dict[str, Any]) -> str:
    """The operation of a snapshot. Java calls the first snapshot of a replaced table an overwrite, with no parent."""
    return snapshot["summary"]["operation"] if "parent-snapshot-id" in snapshot else "append"


def _parsed(value: str) -> Any:
    """Parse a property that holds a list in JSON; return any other property as it is."""
    return json.loads(value) if value.startswith("[") else value


def _spelt(value: Any) -> Any:
    """Types in one spelling: some write ``decimal(9, 2)``."""
    if isinstance(value, dict):
        return {key: _spelt(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spelt(each) for each in value]
    return value.replace(", ", ",") if isinstance(value, str) and value.startswith("decimal(") else value


def _tables(catalog: Catalog) -> list[tuple[str, ...]]:
    namespaces: list[tuple[str, ...]] = list(catalog.list_namespaces())
    namespaces += [inner for name in namespaces for inner in catalog.list_namespaces(name)]
    return sorted(name for namespace in set(namespaces) for name in catalog.list_tables(namespace))
