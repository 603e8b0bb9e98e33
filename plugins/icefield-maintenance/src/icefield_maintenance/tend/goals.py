"""The goals of a table: the state in which ``tend`` keeps it, with presets for common kinds of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from icefield.errors import InvalidArgument
from icefield.metadata import Property
from icefield.toolkit import decodable, was_meant
from msgspec import Meta, Struct

from icefield_maintenance.properties import (
    LEAST_SHARE,
    MOST_COUNT,
    TEND_BYTES_PER_FILE,
    TEND_DELETE_FILES,
    TEND_DELETED_ROWS,
    TEND_FILES_PER_SCAN,
    TEND_MANIFESTS,
    TEND_ORPHAN_AGE,
    TEND_PRESET,
    TEND_SNAPSHOT_AGE,
    TEND_SNAPSHOTS,
    TEND_STATISTICS_AGE,
)
from icefield_maintenance.tend.quantities import FileSize, OrphanAge, SnapshotAge, StatisticsAge

_UNKNOWN_KEY: Final = re.compile(r"unknown field `(.*?)`")

Count = Annotated[int, Meta(ge=1, le=MOST_COUNT)]
Share = Annotated[float, Meta(ge=LEAST_SHARE, le=1)]


@decodable
class Goals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The goals of a table; ``GOALS`` describes each. A goal that is None is not pursued."""

    files_per_scan: Count | None = None
    bytes_per_file: FileSize | None = None
    deleted_rows: Share | None = None
    delete_files: Count | None = None
    manifests: Count | None = None
    snapshot_age: SnapshotAge | None = None
    snapshots: Count | None = None
    orphan_age: OrphanAge | None = None
    statistics_age: StatisticsAge | None = None

    def over(self, base: Goals) -> Goals:
        """These goals, and those of ``base`` for each that is None."""
        names = Goals.__struct_fields__
        return Goals(**{name: _first(getattr(self, name), getattr(base, name)) for name in names})


def _first(own: Any, other: Any) -> Any:
    return other if own is None else own


GOALS: Final[Mapping[str, Property]] = MappingProxyType(
    {
        "files-per-scan": TEND_FILES_PER_SCAN,
        "bytes-per-file": TEND_BYTES_PER_FILE,
        "deleted-rows": TEND_DELETED_ROWS,
        "delete-files": TEND_DELETE_FILES,
        "manifests": TEND_MANIFESTS,
        "snapshot-age": TEND_SNAPSHOT_AGE,
        "snapshots": TEND_SNAPSHOTS,
        "orphan-age": TEND_ORPHAN_AGE,
        "statistics-age": TEND_STATISTICS_AGE,
    }
)
"""The goals by their names in policies, with the table properties that describe and state them."""

PRESETS: Final[Mapping[str, Goals]] = MappingProxyType(
    {
        "append-only": Goals(
            files_per_scan=8, manifests=50, snapshot_age=SnapshotAge.parse("5d"), orphan_age=OrphanAge.parse("7d")
        ),
        "upsert-heavy": Goals(
            files_per_scan=12,
            deleted_rows=0.15,
            delete_files=4,
            manifests=50,
            snapshot_age=SnapshotAge.parse("3d"),
            orphan_age=OrphanAge.parse("7d"),
        ),
        "streaming": Goals(
            files_per_scan=16,
            deleted_rows=0.2,
            delete_files=8,
            manifests=100,
            snapshot_age=SnapshotAge.parse("1d"),
            snapshots=1000,
            orphan_age=OrphanAge.parse("7d"),
        ),
    }
)
"""The goals for common kinds of tables; the simulator justifies them."""


def preset(name: str) -> Goals:
    """The goals of a preset. Raises ``InvalidArgument`` for an unknown name."""
    if name not in PRESETS:
        raise InvalidArgument(f"there is no preset {name!r:.40}: it is one of {', '.join(PRESETS)}")
    return PRESETS[name]


def converted(given: Any, kind: type[Struct], place: str, *parts: type[Struct]) -> Any:
    """Make a value of a type from values of TOML. Raises ``InvalidArgument`` that names ``place``.

    For an unknown key, the error also names the nearest key of the type and of its ``parts``.
    """
    try:
        return msgspec.convert(given, kind, dec_hook=lambda wanted, value: wanted.parse(value))
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN_KEY.search(str(error))
        known = [key for each in (kind, *parts) for key in each.__struct_encode_fields__]
        hint = was_meant(unknown[1], known) if unknown else ""
        raise InvalidArgument(f"{place} cannot be used: {error}{hint}") from error


def goals_in(properties: Mapping[str, str], base: Goals) -> tuple[Goals, list[str]]:
    """The goals that the properties of a table state, over those of the policy; and the faults of the properties.

    A property that cannot be used states no goal, so that the goal of the policy holds.
    """
    faults: list[str] = []
    found = base
    try:
        if TEND_PRESET.name in properties:
            found = preset(properties[TEND_PRESET.name].lower()).over(found)
    except InvalidArgument as error:
        faults.append(f"table property {TEND_PRESET.name}: {error}")
    for name, declared in GOALS.items():
        if declared.name in properties:
            try:
                given = declared.parse(properties[declared.name])
                found = converted({name: given}, Goals, f"table property {declared.name}").over(found)
            except InvalidArgument as error:
                faults.append(str(error))
    return found, faults
