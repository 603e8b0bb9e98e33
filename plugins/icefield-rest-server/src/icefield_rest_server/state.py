"""The shared state of a server's handlers: its catalog, settings, and cached metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import msgspec
from icefield import Catalog, FileIO
from icefield.abc import CommitStrategy, Current, Pointer
from icefield.commit import is_permanent
from icefield.errors import FileMissing, InvalidArgument, NoSuchTable
from icefield.metadata import TableMetadata, ViewMetadata, decode_metadata, encode_metadata, inflated
from icefield.toolkit import LruCache

from icefield_rest_server.answers import Refused
from icefield_rest_server.aws_signature import S3_SCHEMES
from icefield_rest_server.calls import Call
from icefield_rest_server.location_policy import LocationPolicy
from icefield_rest_server.places import TablePlaces
from icefield_rest_server.settings import Settings
from icefield_rest_server.tokens import Principal

_TRIES = 5
_WRITING = ("updateTable", "createTable")
"""Either right is a right to write files of a table."""

_NONE: Mapping[str, str] = {}

Name = tuple[str, ...]
Judge = Callable[[Name, Any, Any], None]
_NO_SNAPSHOTS: Mapping[Name, Collection[int]] = {}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table at one version: the location of its metadata file, the metadata, and its own configuration.

    ``version`` identifies it uniquely. It is a digest of location and contents: without a metastore, another table may
    appear at the same location.
    """

    location: str
    metadata: TableMetadata
    json: bytes = field(repr=False)
    config: dict[str, str] = field(default_factory=dict, repr=False)
    version: str = ""

    def __post_init__(self) -> None:
        if not self.version:  # once, as long as it is cached
            digest = sha256(f"{self.location}\n".encode())
            digest.update(self.json)
            object.__setattr__(self, "version", digest.hexdigest())


class State:
    """A catalog with the settings and caches of its server."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self.catalog = catalog
        self.settings = settings
        self._cache: LruCache[str, Loaded] = LruCache(settings.cached_bytes, lambda loaded: len(loaded.json))
        self.places = TablePlaces(catalog, settings, self._placed)
        self.policy = LocationPolicy(self.places)

    def loaded(self, table: tuple[str, ...]) -> Loaded:
        """A table at its current version. Raises ``NoSuchTable``, ``InvalidMetadata``."""
        strategy = self.catalog.backend.strategy(table)
        for tries_left in reversed(range(_TRIES)):
            found = strategy.load()
            if found is None:
                raise NoSuchTable(f"no table {'.'.join(table)} in catalog '{self.catalog.name}'", table=table)
            current = Current(found) if isinstance(found, Pointer) else found
            if current.metadata is not None:
                json = encode_metadata(current.metadata)
                return Loaded(current.pointer.location, current.metadata, json, dict(current.properties))
            location = current.pointer.location
            if is_permanent(strategy, location) and (known := self._cache.get(location)) is not None:
                return known
            try:
                json = inflated(self.catalog.io.read_metadata(location), location)
            except FileMissing:
                if not tries_left:
                    raise
                continue
            loaded = Loaded(location, decode_metadata(json, location), json, dict(current.properties))
            self.keep(strategy, loaded)
            return loaded
        raise AssertionError("unreachable")

    def keep(self, strategy: CommitStrategy, loaded: Loaded) -> None:
        """Cache a metadata file whose location never names another file.

        A file that takes more than a quarter of the cache is not cached: it would evict the files of all other tables.
        """
        if is_permanent(strategy, loaded.location) and len(loaded.json) <= self.settings.cached_bytes // 4:
            self._cache.put(loaded.location, loaded)

    def _placed(self, table: Name) -> tuple[str, TableMetadata]:
        """Return the location of a table's metadata file, and the metadata."""
        loaded = self.loaded(table)
        return loaded.location, loaded.metadata

    def committed(self, location: str, metadata: TableMetadata) -> Loaded:
        """A version that was committed here."""
        return Loaded(location, metadata, encode_metadata(metadata))

    def vended(
        self, principal: Principal | None, table: tuple[str, ...], location: str
    ) -> list[tuple[str, dict[str, str]]]:
        """Return credentials for a table's files; none without a vendor.

        With an authorizer, a location that is not the table's own gets none either. Otherwise a client with the right
        to create tables could get the credentials of another table by naming its location.
        """
        vendor = self.settings.vendor
        if vendor is None or not self.may_open(table, location):
            return []
        writes = any(self.allows(principal, each, table) for each in _WRITING)
        return vendor.credentials(principal, self.catalog.kept_name(table), location, writes)

    def signs(self, table: tuple[str, ...], location: str) -> bool:
        """Whether the server signs requests for a table's files: in S3, for a location that ``may_open`` allows."""
        return (
            self.settings.signer is not None
            and location.partition("://")[0] in S3_SCHEMES
            and self.may_open(table, location)
        )

    def allows(self, principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
        """Whether the authorizer, if there is one, allows an operation on the object with a name.

        The authorizer is asked with the name that the catalog keeps: a client that may not load ``db.t`` may not load
        ``DB.T`` either, if it is the same table.
        """
        authorizer = self.settings.authorizer
        return authorizer is None or authorizer(principal, operation, self.catalog.kept_name(name))

    def check_allowed(
        self, principal: Principal | None, operation: str, name: tuple[str, ...], said: str | None = None
    ) -> None:
        """Raise ``Refused`` where an operation on a name is not allowed; the message calls the operation ``said``."""
        if not self.allows(principal, operation, name):
            target = ".".join(name) or "the catalog"
            raise Refused(403, "ForbiddenException", f"you may not do {said or operation} with {target:.300}")

    def may_open(self, table: tuple[str, ...], location: str) -> bool:
        """Whether clients may get credentials or signatures for a table's location; see ``vended``."""
        return self.settings.authorizer is None or self.places.is_own(table, location)

    def check_file(self, name: Name, location: str) -> None:
        """Raise ``Refused`` for a client's metadata file in a location that the table may not take."""
        if self.settings.authorizer is not None:
            self.places.check(name, location.rpartition("/")[0])

    def check_place(self, name: Name, location: str) -> None:
        """Raise ``Refused`` for a client's location that the table may not take."""
        if self.settings.authorizer is not None:
            self.places.check(name, location)

    def check_made(self, name: Name, metadata: TableMetadata | ViewMetadata) -> None:
        """Raise ``Refused`` for a new table or view with locations that the policy forbids."""
        if self.settings.authorizer is not None:
            self.policy.check(name, None, metadata)

    def judge(self, call: Call, added: Mapping[Name, Collection[int]] = _NO_SNAPSHOTS) -> Judge | None:
        """Return a check of the metadata before and after each change of a request; None without an authorizer.

        ``added`` are the snapshots that the request states, by table. A change that creates a table needs the right to
        create it.
        """
        if self.settings.authorizer is None:
            return None

        def judge(name: Name, before: TableMetadata | ViewMetadata | None, after: TableMetadata | ViewMetadata) -> None:
            if before is None:
                for target in (name[:-1], name):
                    self.check_allowed(call.principal, "createTable", target)
            self.policy.check(name, before, after, added.get(name, ()))

        return judge

    def io_for_clients(self, name: Name, loaded: Loaded) -> FileIO:
        """Return the file IO for a table's manifests; with an authorizer, it reads no other table's manifests."""
        io = self.catalog.io.for_table(loaded.metadata.location, loaded.config)
        return io if self.settings.authorizer is None else self.policy.confined(io, name, loaded.metadata)


def table_body(
    loaded: Loaded,
    vended: Iterable[tuple[str, dict[str, str]]] = (),
    signing: Mapping[str, str] = _NONE,
    *,
    staged: bool = False,
) -> bytes:
    """Encode an answer with a table: its metadata as in the file, and credentials or signing properties.

    Properties that a service behind this server gave for the table stay in the server.
    """
    body: dict[str, Any] = {} if staged else {"metadata-location": loaded.location}
    body["metadata"] = msgspec.Raw(loaded.json)
    return msgspec.json.encode(body | credentials_body(list(vended), signing))


def credentials_body(vended: list[tuple[str, dict[str, str]]], signing: Mapping[str, str] = _NONE) -> dict[str, Any]:
    """Return the part of an answer for access to a table's files: credentials, or else signing properties."""
    config = dict(vended[0][1]) if vended else dict(signing)
    body: dict[str, Any] = {"config": config}
    if vended:
        body["storage-credentials"] = [{"prefix": prefix, "config": properties} for prefix, properties in vended]
    return body


def only_of_refs(loaded: Loaded) -> Loaded:
    """Return a table with only the snapshots of branches and tags."""
    metadata = loaded.metadata
    wanted = {ref.snapshot_id for ref in metadata.refs.values()}
    kept = [place for snapshot_id, place in metadata.snapshots.positions.items() if snapshot_id in wanted]
    fewer = replace(metadata, snapshots=metadata.snapshots.kept(sorted(kept)))
    return replace(loaded, metadata=fewer, json=encode_metadata(fewer))


def etag_of(loaded: Loaded, mode: str) -> str:
    """Return the ETag of a table version for a snapshot mode."""
    return f'"{sha256(f"{mode} {loaded.version}".encode()).hexdigest()[:32]}"'


def is_held(call: Call, etag: str) -> bool:
    """Whether the client states that it has the version of an ETag; a proxy may have weakened the ETag."""
    given = call.headers.get("if-none-match", "")
    return given.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in given.split(","))


def page_size(call: Call, most: int) -> int:
    """How many names a page has at most. Raises ``InvalidArgument``."""
    string = call.query.get("pageSize", "")
    if not string:
        return most
    if not (string.isascii() and string.isdigit() and len(string) < 10 and int(string) > 0):
        raise InvalidArgument(f"pageSize is a positive number, not '{string:.40}'")
    return min(int(string), most)
