"""The service's answers about tables: their metadata, and credentials for their files."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec
from icefield.abc import Committed, Current, Pointer, TableName
from icefield.errors import IcefieldError, InvalidMetadata
from icefield.metadata import TableMetadata, decode_metadata, with_deferred_snapshots
from icefield.toolkit import checked_pointer, decodable

from icefield_rest.connection import ServiceResponse
from icefield_rest.planning import scans_of
from icefield_rest.service import Service, may_say
from icefield_rest.signing import SigningConfig, signing
from icefield_rest.vended import VendedCredential, vended

TOKEN: Final = "token"
_TRUSTED_FOR: Final = 60.0
"""Seconds that credentials must be good for, where an answer without a change is to be enough."""


@decodable
class LoadTableResult(msgspec.Struct, rename="kebab"):
    """The answer to loading, creating, registering and committing."""

    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, str | None] | None = None
    storage_credentials: list[VendedCredential] | None = None
    remote_signing_config: SigningConfig | None = None


_NEXT_ROW_ID: Final = b'"next-row-id"'

_decoder = msgspec.json.Decoder(LoadTableResult)


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as the service last showed it."""

    current: Current
    etag: str | None = None
    token: str | None = field(default=None, repr=False)
    raw: msgspec.Raw | bytes = field(default=b"", repr=False)
    ends: float | None = None
    """The expiry of its credentials, in seconds since 1970; None if it is unknown or they do not expire."""

    @property
    def lasts(self) -> bool:
        """Whether its credentials do not expire soon."""
        return self.ends is None or self.ends - time.time() > _TRUSTED_FOR


def loaded(
    service: Service,
    table: TableName,
    answer: ServiceResponse,
    known: LoadedTable | None = None,
    whole: Callable[[], TableMetadata] | None = None,
) -> LoadedTable:
    """Decode the table of an answer; metadata equal to ``known`` is not decoded again.

    ``whole`` loads all snapshots of a table if the answer only has the snapshots of branches and tags.
    Raises ``InvalidMetadata``, ``StorageError``.
    """
    what = f"table {'.'.join(table)} of catalog '{service.name}'"
    found: LoadTableResult = answer.decoded(_decoder, what)
    location = checked_pointer(table, found.metadata_location)
    if known is not None and bytes(found.metadata) == bytes(known.raw) and known.current.metadata is not None:
        metadata = known.current.metadata
    else:
        metadata = _decoded(found.metadata, location or what)
        if whole is not None:
            metadata = with_deferred_snapshots(metadata, whole) if can_defer(found.metadata, metadata) else whole()
    service.follow(str(metadata.table_uuid))
    config = dict(found.config or {})
    credentials = found.storage_credentials or []
    own, access, ends = vended(service, table, config, credentials, metadata.location, time.time())
    properties = {**service.given_by_service, **may_say(config), **own}
    pointer = Pointer(location or f"rest:{metadata.table_uuid}/{metadata.last_updated_ms}")
    signer = signing(service, table, may_say(config) | own, found.remote_signing_config)
    # A service that signs requests gives no keys for S3; if it gives keys nevertheless, its signatures are used.
    opened = (*(each for each in access if signer is None or not each.prefix.startswith("s3")), *filter(None, [signer]))
    scans = scans_of(service, table, metadata.location, may_say(config), config.get(TOKEN))
    current = Current(pointer, metadata, properties, opened, scans)
    return LoadedTable(current, answer.headers.get("etag"), config.get(TOKEN), found.metadata, ends)


def can_defer(raw: msgspec.Raw | bytes, metadata: TableMetadata) -> bool:
    """Whether a table can be used before all of its snapshots are loaded.

    All snapshots are needed in version 1, which has no sequence numbers, and for a table that does not state its next
    row id.
    """
    return metadata.format_version > 1 and (metadata.format_version == 2 or _NEXT_ROW_ID in bytes(raw))


def committed(service: Service, table: TableName, answer: ServiceResponse, before: LoadedTable | None) -> LoadedTable:
    """Decode the table after a commit. The answer has no credentials, so the earlier ones stay."""
    made = loaded(service, table, answer)
    if before is None:
        return made
    known = before.current
    current = Current(made.current.pointer, made.current.metadata, known.properties, known.access, known.planner)
    return LoadedTable(current, made.etag, before.token, made.raw, before.ends)


def as_committed(made: LoadedTable) -> Committed:
    """Convert a loaded table to the result of a commit strategy."""
    current = made.current
    return Committed(current.pointer, current.metadata, current.properties, current.access, current.planner)


def _decoded(raw: msgspec.Raw, location: str) -> TableMetadata:
    try:
        return decode_metadata(bytes(raw), location)
    except RecursionError as error:
        raise InvalidMetadata(f"{location}: the metadata is nested too deeply", location=location) from error
    except IcefieldError:
        raise
