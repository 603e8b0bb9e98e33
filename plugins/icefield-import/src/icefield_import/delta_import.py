"""A table of Delta Lake as a new table: its live files are added where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from icefield import Catalog, Table
from icefield.errors import FileMissing, InvalidFile, MissingPlugin, UnsupportedFeature
from icefield.schema import as_schema
from icefield.storage import given_location
from icefield.transaction import Transaction, property_strings

from icefield_import.folder_import import ImportedFolder, created, refuse_existing
from icefield_import.folders import ImportedFile

_FEATURES: Final = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
)
"""Features for readers whose files are read as they are, unless a table makes use of the first two."""


def import_delta(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    location: str | PathLike[str],
    *,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    properties: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> ImportedFolder:
    """Create a table of the files of a Delta table, at its newest version or at ``version``, in one commit.

    The files stay where they are, so ``VACUUM`` of the Delta table may delete them. The log is read by the library
    ``deltalake``, which takes credentials from ``storage_options`` and the environment; columns and partitions come
    from the log. With ``dry_run`` nothing is made, and the result describes the table.

    Raises ``UnsupportedFeature`` for deletion vectors, column mapping and other features that files alone do not show,
    ``FileMissing`` for a folder without a log, ``TableExists``, ``MissingPlugin`` without the library.
    """
    refuse_existing(catalog, identifier)
    root = given_location(location).rstrip("/")
    delta = _opened(root, version, storage_options)
    _refuse_features(delta, root)
    partitioned = tuple(delta.metadata().partition_columns)
    files = sorted(_live_files(delta, root, partitioned), key=lambda each: each.location)
    strings = property_strings(properties or {})
    schema = as_schema(pa.schema(delta.schema().to_arrow()), int(strings.get("format-version", 2)))
    made = ImportedFolder(files, "parquet", True, schema, partitioned)
    if dry_run:
        return made

    def fill(transaction: Transaction[Table]) -> None:
        if files:
            values = {each.location: each.values for each in files}
            transaction.add_files(list(values), partition_values=values, file_format="parquet")

    return created(catalog, identifier, made, strings, fill)


def _opened(root: str, version: int | None, storage_options: Mapping[str, str] | None) -> Any:
    if find_spec("deltalake") is None:
        raise MissingPlugin(
            'import_delta needs deltalake, which is not installed; pip install "icefield-import[delta]"'
        )
    with _damage_reported(root):
        return import_module("deltalake").DeltaTable(root, version=version, storage_options=dict(storage_options or {}))


@contextmanager
def _damage_reported(root: str) -> Iterator[None]:
    """Errors of the library as errors of Icefield, with the location of the table."""
    errors = import_module("deltalake.exceptions")
    try:
        yield
    except errors.TableNotFoundError as error:
        raise FileMissing(f"no table of Delta Lake is at {root}: {error}", location=root) from error
    except errors.DeltaError as error:
        raise InvalidFile(f"deltalake cannot read the log of {root}: {error}", location=root) from error


def _refuse_features(delta: Any, root: str) -> None:
    features = set(delta.protocol().reader_features or ())
    found = features - _FEATURES
    if delta.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        found.add("columnMapping")
    if found:
        raise UnsupportedFeature(
            f"the Delta table {root} has the feature {', '.join(sorted(found))}, which its files alone do not show: "
            "append its rows instead",
            location=root,
        )
    with _damage_reported(root):
        deleted = pa.table(delta.deletion_vectors())["filepath"] if "deletionVectors" in features else []
    if len(deleted):
        raise UnsupportedFeature(
            f"the Delta table {root} has deletion vectors, which data files do not show, such as for {deleted[0]}: run "
            "REORG TABLE ... APPLY (PURGE) on it first, or append its rows",
            location=root,
        )


def _live_files(delta: Any, root: str, partitioned: tuple[str, ...]) -> Iterator[ImportedFile]:
    for action in pa.table(delta.get_add_actions(flatten=False)).to_pylist():
        values = action.get("partition") or {}
        path = unquote(action["path"])
        location = path if "://" in path or path.startswith("/") else f"{root}/{path}"
        yield ImportedFile(location, action["size_bytes"], {name: values[name] for name in partitioned})
