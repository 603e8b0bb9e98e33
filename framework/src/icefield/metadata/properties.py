"""The kernel's table properties in one table: name, type, default, meaning. Plugins declare their own by a hook.

Table properties are strings that steer readers and writers; only the properties of ``remembered`` hold state. Each
property is declared once, as a constant. ``get_int``, ``get_bool``, ``get_float`` and ``get_str`` read it: they
know its default and refuse a value of the wrong form with an error that names the property.
"""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from icefield.base.secrets import has_password, holds_credential
from icefield.errors import IcefieldError, InvalidArgument

K = TypeVar("K")
V = TypeVar("V")

KIB: Final = 1024
MIB: Final = 1024 * KIB
LONG_MAX: Final = 2**63 - 1
DEFAULT_FORMAT: Final = "parquet"
"""The file format of tables that state none, as the configuration of Iceberg says."""


@dataclass(frozen=True, slots=True)
class Property:
    """One table property.

    ``type`` is ``str``, ``int``, ``float`` or ``bool``; ``default`` is of that type, or None; ``minimum`` bounds a
    number; ``choices`` lists the allowed strings, compared without regard to case. ``check`` raises ``InvalidArgument``
    or ``ValueError`` for a typed value that cannot be used. Icefield does not read an ``unread`` property: it checks
    the property, and keeps it for other engines. A name that ends in a dot is a prefix before a column's name.
    """

    name: str
    type: type
    default: str | int | float | bool | None
    doc: str
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None
    unread: bool = False

    @property
    def per_column(self) -> bool:
        """Whether the property holds for one column, whose name follows its own."""
        return self.name.endswith(".")

    def parse(self, string: str, column: str = "") -> str | int | float | bool:
        """The typed value of a string. Raises ``InvalidArgument`` that names the property."""
        try:
            value = _PARSERS[self.type](string.strip())
        except (ValueError, AttributeError):
            raise self._refused(string, column, f"is not of type {_TYPE_NAMES[self.type]}") from None
        if self.minimum is not None and value < self.minimum:
            raise self._refused(string, column, f"is below {self.minimum}")
        if self.choices and value.lower() not in self.choices:
            raise self._refused(string, column, f"is none of {', '.join(self.choices)}")
        if self.check is not None:
            try:
                self.check(value)
            except (IcefieldError, ValueError) as error:
                raise self._refused(string, column, f"cannot be used: {error}") from error
        return value  # type: ignore[no-any-return]

    def _refused(self, string: object, column: str, why: str) -> InvalidArgument:
        shown = string if not isinstance(string, str) or len(string) <= 40 else string[:40] + "..."
        name = f"{self.name}{column}"
        return InvalidArgument(f"table property '{name}': {shown!r} {why}", property=name)


class FrozenDict(dict[K, V]):
    """A dict that refuses to change, so that tables may share it. Equal to, and pickled as, a plain dict."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping cannot be changed; make a copy with dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def _parse_int(string: str) -> int:
    if len(string) > 20:  # a long has 19 digits and a sign; int() of a very long string is slow
        raise ValueError(string)
    value = int(string)
    if not -LONG_MAX - 1 <= value <= LONG_MAX:
        raise ValueError(string)
    return value


def _parse_bool(string: str) -> bool:
    if string.lower() not in ("true", "false"):
        raise ValueError(string)
    return string.lower() == "true"


_PARSERS: Final[dict[type, Any]] = {str: str, int: _parse_int, float: float, bool: _parse_bool}
_TYPE_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean (true or false)"}

TABLE_PROPERTIES: Final[dict[str, Property]] = {}
"""The kernel's properties by name; per-column properties by their prefix."""


def _property(
    name: str,
    kind: type,
    default: str | int | float | bool | None,
    doc: str,
    *choices: str,
    minimum: int | None = None,
    unread: bool = False,
) -> Property:
    TABLE_PROPERTIES[name] = Property(name, kind, default, doc, minimum, choices, unread=unread)
    return TABLE_PROPERTIES[name]


# fmt: off
# -- format -----------------------------------------------------------------------------------------------------
FORMAT_VERSION = _property("format-version", int, 2, "Selects the format version when a table is created or upgraded; never stored.", minimum=1)

# -- commits ----------------------------------------------------------------------------------------------------
COMMIT_RETRY_NUM_RETRIES = _property("commit.retry.num-retries", int, 4, "How often a commit that met a conflict is tried again; when not set, an append that others overtake is tried for the total timeout.", minimum=0)
COMMIT_RETRY_MIN_WAIT_MS = _property("commit.retry.min-wait-ms", int, 100, "Shortest pause before a retry, in ms.", minimum=0)
COMMIT_RETRY_MAX_WAIT_MS = _property("commit.retry.max-wait-ms", int, 60_000, "Longest pause before a retry, in ms.", minimum=0)
COMMIT_RETRY_TOTAL_TIMEOUT_MS = _property("commit.retry.total-timeout-ms", int, 1_800_000, "No retry starts after this many ms.", minimum=0)
COMMIT_STATUS_CHECK_NUM_RETRIES = _property("commit.status-check.num-retries", int, 3, "How often the outcome of a commit is looked up after a lost reply.", minimum=0)
COMMIT_STATUS_CHECK_MIN_WAIT_MS = _property("commit.status-check.min-wait-ms", int, 1_000, "Shortest pause between such look-ups, in ms.", minimum=0)
COMMIT_STATUS_CHECK_MAX_WAIT_MS = _property("commit.status-check.max-wait-ms", int, 60_000, "Longest pause between such look-ups, in ms.", minimum=0)
COMMIT_STATUS_CHECK_TOTAL_TIMEOUT_MS = _property("commit.status-check.total-timeout-ms", int, 1_800_000, "No such look-up starts after this many ms.", minimum=0)
MANIFEST_TARGET_SIZE = _property("commit.manifest.target-size-bytes", int, 8 * MIB, "Size in bytes that merged manifests aim at.", minimum=1)
MANIFEST_MIN_COUNT_TO_MERGE = _property("commit.manifest.min-count-to-merge", int, 100, "Manifests that gather before a commit merges them.", minimum=1)
MANIFEST_MERGE_ENABLED = _property("commit.manifest-merge.enabled", bool, True, "Whether commits merge manifests.")
SNAPSHOT_ID_INHERITANCE_ENABLED = _property("compatibility.snapshot-id-inheritance.enabled", bool, False, "Whether v1 manifests are committed without snapshot ids; v2 always inherits.", unread=True)

# -- writing ----------------------------------------------------------------------------------------------------
WRITE_FORMAT_DEFAULT = _property("write.format.default", str, DEFAULT_FORMAT, "File format of new data files: any installed format.")
DELETE_FORMAT_DEFAULT = _property("write.delete.format.default", str, None, "File format of new delete files; the data format when not set.")
WRITE_TARGET_FILE_SIZE = _property("write.target-file-size-bytes", int, 512 * MIB, "Size in bytes that new data files aim at.", minimum=1)
DELETE_TARGET_FILE_SIZE = _property("write.delete.target-file-size-bytes", int, 64 * MIB, "Size in bytes that new delete files aim at.", minimum=1)
WRITE_PARTITION_SUMMARY_LIMIT = _property("write.summary.partition-limit", int, 0, "Snapshot summaries hold counts by partition when no more partitions than this change.", minimum=0)
WRITE_WAP_ENABLED = _property("write.wap.enabled", bool, False, "Whether a change for main that has a wap.id in its summary is staged, not published.")

# -- where files are --------------------------------------------------------------------------------------------
WRITE_DATA_PATH = _property("write.data.path", str, None, "Folder of data files: absolute, or relative to the table's location; `data` when not set.")
WRITE_METADATA_PATH = _property("write.metadata.path", str, None, "Folder of metadata files: absolute, or relative to the table's location; `metadata` when not set.")
OBJECT_STORAGE_ENABLED = _property("write.object-storage.enabled", bool, False, "Whether folders of hash bits spread data files over an object store's partitions.")
OBJECT_STORAGE_PARTITIONED_PATHS = _property("write.object-storage.partitioned-paths", bool, True, "Whether paths of that layout also hold partition values.")
OBJECT_STORAGE_PATH = _property("write.object-storage.path", str, None, "Former name of `write.data.path` for that layout; read only.")
FOLDER_STORAGE_PATH = _property("write.folder-storage.path", str, None, "Former name of `write.data.path`; read only.")

# -- metadata files ---------------------------------------------------------------------------------------------
METADATA_COMPRESSION = _property("write.metadata.compression-codec", str, "none", "Codec of metadata files; tables on a file system refuse gzip.", "none", "gzip")
METADATA_PREVIOUS_VERSIONS_MAX = _property("write.metadata.previous-versions-max", int, 100, "Most entries of the metadata log; at least one is kept.")
METADATA_DELETE_AFTER_COMMIT = _property("write.metadata.delete-after-commit.enabled", bool, False, "Whether a commit deletes the metadata files that leave the metadata log.")
METRICS_DEFAULT = _property("write.metadata.metrics.default", str, "truncate(16)", "Column metrics in manifests: none, counts, truncate(length), full.")
METRICS_MAX_INFERRED_COLUMNS = _property("write.metadata.metrics.max-inferred-column-defaults", int, 100, "Columns that get the default metrics; those beyond get none unless named.", minimum=0)
METRICS_COLUMN = _property("write.metadata.metrics.column.", str, None, "Metrics of the column: none, counts, truncate(length), full.")
NAME_MAPPING_DEFAULT = _property("schema.name-mapping.default", str, None, "JSON that gives field ids to the columns of files without ids.")
MANIFEST_LISTS_ENABLED = _property("write.manifest-lists.enabled", bool, True, "Kept for v1 tables of others; manifest lists are always written.", unread=True)

# -- distribution and row-level changes -------------------------------------------------------------------------
WRITE_DISTRIBUTION_MODE = _property("write.distribution-mode", str, None, "How engines spread rows over writers.", "none", "hash", "range")
DELETE_DISTRIBUTION_MODE = _property("write.delete.distribution-mode", str, "hash", "The same for DELETE.", "none", "hash", "range", unread=True)
UPDATE_DISTRIBUTION_MODE = _property("write.update.distribution-mode", str, "hash", "The same for UPDATE.", "none", "hash", "range", unread=True)
MERGE_DISTRIBUTION_MODE = _property("write.merge.distribution-mode", str, None, "The same for MERGE.", "none", "hash", "range", unread=True)
COPY_ON_WRITE: Final = "copy-on-write"
DELETE_MODE = _property("write.delete.mode", str, COPY_ON_WRITE, "Whether deleting and overwriting by a filter rewrite files, or mark the rows in delete files.", COPY_ON_WRITE, "merge-on-read")
UPDATE_MODE = _property("write.update.mode", str, COPY_ON_WRITE, "The same for updating.", COPY_ON_WRITE, "merge-on-read")
MERGE_MODE = _property("write.merge.mode", str, COPY_ON_WRITE, "The same for upserting and merging.", COPY_ON_WRITE, "merge-on-read")
DELETE_ISOLATION_LEVEL = _property("write.delete.isolation-level", str, None, "What deleting and overwriting by a filter refuses of commits since the table was loaded; nothing when not set.", "serializable", "snapshot")
UPDATE_ISOLATION_LEVEL = _property("write.update.isolation-level", str, None, "What updating refuses of commits since the table was loaded; nothing when not set.", "serializable", "snapshot")
MERGE_ISOLATION_LEVEL = _property("write.merge.isolation-level", str, None, "What upserting and merging refuses of commits since the table was loaded; nothing when not set.", "serializable", "snapshot")
DELETE_GRANULARITY = _property("write.delete.granularity", str, "partition", "What one position delete file covers: a partition, or a data file.", "partition", "file")
UPSERT_ENABLED = _property("write.upsert.enabled", bool, False, "Whether inserts of a stream of changes replace the rows that have their key.")

# -- reading ----------------------------------------------------------------------------------------------------
SPLIT_TARGET_SIZE = _property("read.split.target-size", int, 128 * MIB, "Size in bytes that the tasks of a scan aim at.", minimum=1)
SPLIT_METADATA_TARGET_SIZE = _property("read.split.metadata-target-size", int, 32 * MIB, "The same for metadata tables.", minimum=1, unread=True)
SPLIT_PLANNING_LOOKBACK = _property("read.split.planning-lookback", int, 10, "Open tasks that a split may still be put into.", minimum=1)
SPLIT_OPEN_FILE_COST = _property("read.split.open-file-cost", int, 4 * MIB, "Least weight of a file, in bytes, when splits are combined.", minimum=0)
SPLIT_ADAPTIVE_SIZE_ENABLED = _property("read.split.adaptive-size.enabled", bool, True, "Whether engines may ask for smaller splits, so that each core has one.")

# -- history and maintenance ------------------------------------------------------------------------------------
GC_ENABLED = _property("gc.enabled", bool, True, "Whether expiry and purging may delete files of this table.")
OWNED_FILES_ONLY = _property("maintenance.owned-only", bool, False, "Whether maintenance and purging leave files outside of the table's own folders, even if the catalog says location.owned-only=false.")
MAX_SNAPSHOT_AGE_MS = _property("history.expire.max-snapshot-age-ms", int, 432_000_000, "Age in ms up to which expiry keeps the snapshots of a branch (5 days).", minimum=0)
MIN_SNAPSHOTS_TO_KEEP = _property("history.expire.min-snapshots-to-keep", int, 1, "Snapshots of a branch that expiry keeps whatever their age.", minimum=1)
MAX_REF_AGE_MS = _property("history.expire.max-ref-age-ms", int, LONG_MAX, "Age in ms up to which expiry keeps branches and tags other than main.", minimum=0)

# -- engines and encryption -------------------------------------------------------------------------------------
ENCRYPTION_KEY_ID = _property("encryption.key-id", str, None, "Master key of an encrypted table, by its id in the key service of the catalog. Set once, and never changed.")
ENCRYPTION_DATA_KEY_LENGTH = _property("encryption.data-key-length", int, 16, "Length of the keys of files, in bytes: 16, 24 or 32.", minimum=16)
# fmt: on

RESERVED_PROPERTIES: Final = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that engines show as properties but that are state of the metadata; they cannot be set."""


def find_property(name: str, declared: Mapping[str, Property] = TABLE_PROPERTIES) -> Property | None:
    """The declaration of a property, found by its name or its per-column prefix; None for an unknown name."""
    found = declared.get(name)
    if found is None:
        found = next((each for each in declared.values() if each.per_column and name.startswith(each.name)), None)
    return found


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Check properties that are to be set, and return a copy.

    Raises ``InvalidArgument`` for a name or value that is not a string and for a value that does not fit its property.
    A reserved name and a credential raise it as well, since metadata files must not hold credentials. A credential is
    recognised by the property's name, or by a password in a URI.
    """
    for name, value in properties.items():
        check_key(name)
        if not isinstance(value, str):
            raise InvalidArgument(
                f"table property '{name}' must be a string, not {type(value).__name__}; write it as a string",
                property=name,
            )
        check_property_name(name)
        declared = find_property(name)
        if declared is not None:
            declared.parse(value, name[len(declared.name) :])
        try:
            (name + value).encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidArgument("a table property must be valid Unicode text", property=ascii(name)) from None
        if has_password(value):
            raise InvalidArgument(
                f"table property '{name}' holds a password in its URI, and metadata files are no place for one: remove "
                "it there, and give the credentials by properties of the catalog",
                property=name,
            )
    return dict(properties)


def property_strings(properties: Mapping[str, Any]) -> dict[str, str]:
    """Properties as the metadata holds them: text, always. Raises ``InvalidArgument``."""
    if not isinstance(properties, Mapping):
        raise InvalidArgument(f"properties are a mapping of names to values, not {properties!r:.200}")
    for key in properties:
        check_key(key)
    return {key: property_string(key, value) for key, value in properties.items()}


def check_key(key: object) -> None:
    """Raise ``InvalidArgument`` for an invalid name of a property."""
    if not isinstance(key, str) or not key:
        raise InvalidArgument(f"the name of a property must be a non-empty string, not {key!r}")


def property_string(key: str, value: Any) -> str:
    """The value of a property of a table or a catalog as text. Raises ``InvalidArgument``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidArgument(f"property {key!r} must be a string, a number or a boolean, not {type(value).__name__}")


def check_property_name(name: str) -> None:
    """Raise ``InvalidArgument`` for a name that no table property may have."""
    if name in RESERVED_PROPERTIES:
        raise InvalidArgument(f"table property '{name}' is reserved: it shows state and cannot be set", property=name)
    if holds_credential(name) or name.lower().endswith("access-key-id"):
        raise InvalidArgument(
            f"table property '{name}' would store a credential in the table's metadata, where every reader sees it; "
            "give it to the catalog or the environment instead",
            property=name,
        )


def find_value(properties: Mapping[str, str], declared: Property, column: str = "") -> Any:
    """The typed value of a property, of ``column`` where it holds for one; its default, or None, when not set."""
    string = properties.get(declared.name + column)
    return declared.default if string is None else declared.parse(string, column)


def get_str(properties: Mapping[str, str], declared: Property, column: str = "") -> str:
    """The value of a string property that has a default."""
    return str(_required(properties, declared, column))


def get_int(properties: Mapping[str, str], declared: Property, column: str = "") -> int:
    """The value of an integer property that has a default. Raises ``InvalidArgument`` for another string."""
    return int(_required(properties, declared, column))


def get_float(properties: Mapping[str, str], declared: Property, column: str = "") -> float:
    """The value of a number property that has a default. Raises ``InvalidArgument`` for another string."""
    return float(_required(properties, declared, column))


def get_bool(properties: Mapping[str, str], declared: Property, column: str = "") -> bool:
    """The value of a boolean property that has a default. Raises ``InvalidArgument`` for another string."""
    return bool(_required(properties, declared, column))


def _required(properties: Mapping[str, str], declared: Property, column: str) -> Any:
    value = find_value(properties, declared, column)
    if value is None:
        raise InvalidArgument(f"table property '{declared.name}{column}' is not set and has no default")
    return value
