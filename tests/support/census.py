"""The files to which a table refers, and the files in its folder."""

from __future__ import annotations

import re
from pathlib import Path

from icefield import Table

METADATA = re.compile(r"(?:v(\d+)|(\d+)-[0-9a-f-]{36})\.metadata\.json")


def referenced(table: Table) -> set[str]:
    """Manifest lists, manifests and data files of every snapshot."""
    found: set[str] = set()
    for snapshot in table.snapshots():
        found.add(snapshot.manifest_list)
        for manifest in table.inspect.manifests(snapshot.snapshot_id).column("path").to_pylist():
            found.add(manifest)
        found |= set(table.inspect.files(snapshot.snapshot_id).column("file_path").to_pylist())
    return {path_of(location) for location in found}


def present(table: Table) -> set[str]:
    """Every file below the table's location but its metadata files and hint."""
    root = Path(path_of(table.location()))
    files = {str(path) for path in root.rglob("*") if path.is_file()}
    return {
        path for path in files if not METADATA.fullmatch(Path(path).name) and not path.endswith("version-hint.text")
    }


def metadata_versions(table: Table) -> list[int]:
    """The versions of the metadata files that are in the table's folder."""
    folder = Path(path_of(table.location())) / "metadata"
    matches = (METADATA.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match.group(1) or match.group(2)) for match in matches if match)


def path_of(location: str) -> str:
    return location.removeprefix("file://")
