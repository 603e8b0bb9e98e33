"""Finding the orphan files of a table, and removing them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import OperationProgress
from icefield.engine import folders_around, metadata_of_another
from icefield.errors import InvalidArgument
from icefield.metadata import GC_ENABLED, METADATA_FOLDER, TableMetadata, Timestamp, get_bool
from icefield.storage import FileIO, HashedLocations, LocationProvider, delete_files, refuse_twins, tables_noted
from icefield.toolkit import without_userinfo
from icefield.transaction import TableAccess

from icefield_maintenance.orphans import clock
from icefield_maintenance.orphans.belonging import PrefixMismatch, ReferencedFiles
from icefield_maintenance.orphans.listing import Listing
from icefield_maintenance.orphans.prefixes import EqualPrefixes
from icefield_maintenance.orphans.result import SCHEMA, RemoveOrphanFilesResult
from icefield_maintenance.orphans.versions import Versions


def remove_orphans(
    target: TableAccess,
    *,
    older_than: Timestamp | None,
    location: str | None,
    dry_run: bool,
    allow_recent: bool,
    prefixes: EqualPrefixes,
    mismatch: PrefixMismatch,
    exclusive: bool,
) -> RemoveOrphanFilesResult:
    """See ``MaintenanceTable.remove_orphan_files``."""
    if mismatch not in ("error", "ignore", "delete"):
        raise InvalidArgument(f"prefix_mismatch is 'error', 'ignore' or 'delete', not {mismatch!r}")
    _refuse_shared(target.metadata)
    if target.newest is None and not dry_run:
        target.begin()  # raises, as the table is read-only
    name = target.name
    io, root = target.io, location or target.metadata.location
    limit = clock.limit_ms(older_than, clock.local_now_ms(), allow_recent=allow_recent)
    places = HashedLocations(io, target.metadata.location, follows_links=True)
    held = ReferencedFiles(io, places, prefixes, target.runner)
    versions = Versions(io, held.place_of, target.metadata, target.metadata_location)
    is_own = _is_own(places, root, target.metadata)
    listing = Listing(root, limit, versions.has, versions.is_of_another_table, is_own=is_own)
    refuse_twins(io, target.strategy, target.metadata, target.metadata_location, "removing orphan files")

    def hold(metadata: TableMetadata, metadata_location: str | None) -> None:
        _refuse_shared(metadata)
        held.add(metadata, metadata_location)

    target.reading(target.metadata, target.metadata_location, hold)
    batches = []
    try:
        for batch in listing.candidates(io.list_files(root)):
            left = held.orphans(batch, mismatch)
            batches += [left] if left.num_rows else []
            io.listeners.tell(OperationProgress(name, "remove-orphan-files", "list", listing.listed, None))
    finally:
        io.listeners.tell(OperationProgress(name, "remove-orphan-files", "list", listing.listed, listing.listed))
    # The newest version is loaded after the listing: files committed during the listing belong to the table.
    if target.newest is not None:
        metadata, metadata_location = target.newest()
        target.reading(metadata, metadata_location, hold)
        versions.add(metadata, metadata_location)
    if not exclusive:
        _refuse_shared_folder(target, places, listing, versions)
    kept = [held.orphans(batch, mismatch) for batch in batches]
    orphans = listing.without_others(pa.Table.from_batches(kept, schema=SCHEMA))
    if listing.listed and not dry_run:  # otherwise the clock's file would create a missing folder
        # The store's clock sets the times of files. If the store's clock is behind, the files are younger than they
        # seem by the difference.
        behind = clock.local_now_ms() - clock.store_now_ms(io, root.rstrip("/"))
        orphans = orphans.filter(pc.less(orphans.column("modified_ms"), limit - max(behind, 0)))
    undeleted = 0 if dry_run else _delete(io, name, orphans)
    return RemoveOrphanFilesResult(
        orphans=orphans, dry_run=dry_run, undeleted=undeleted, listed=listing.listed, others=listing.other_places()
    )


def _refuse_shared_folder(target: TableAccess, places: HashedLocations, listing: Listing, versions: Versions) -> None:
    """Raise ``InvalidArgument`` for a folder that other tables use, or may use, by its files and its location."""
    io, metadata, root = target.io, target.metadata, listing.root.rstrip("/")
    strangers = [each for each in listing.unknown if versions.is_of_another_table(each)]
    if not strangers:
        around = (metadata_of_another(io.storage(each), each, metadata.table_uuid) for each in folders_around(root))
        strangers = [each for each in around if each is not None]
    noted = (tables_noted(io, target.strategy, each.rpartition("/")[0], metadata.table_uuid) for each in listing.notes)
    if users := sorted({each for some in noted for each in some}):
        raise InvalidArgument(
            f"{without_userinfo(root)} is not the folder of one table alone: {without_userinfo(', '.join(users[:5]))} "
            "has files there, which would be taken for orphans. Nothing was deleted. Move one of the tables; where no "
            "other needs a file of the folder, say so by exclusive=True",
            location=root,
        )
    if strangers:
        first = without_userinfo(strangers[0])
        raise InvalidArgument(
            f"{without_userinfo(root)} is not the folder of one table alone: {first} is the metadata of another table, "
            "or of one that was dropped, whose files would be taken for orphans. Nothing was deleted. Purge that "
            "table, or move one of the two; where no table needs its files any more, say so by exclusive=True",
            location=root,
        )
    placed = LocationProvider.from_metadata(metadata)
    home = [metadata.location, placed.metadata_folder]
    if placed.data_folder.startswith(f"{metadata.location.rstrip('/')}/"):
        home.append(placed.data_folder)  # which may be a link
    inside = any(places.place(f"{root}/-").startswith(places.place(f"{each.rstrip('/')}/-")[:-1]) for each in home)
    if not (inside or listing.own_versions or "" in listing.others) and listing.listed:
        raise InvalidArgument(
            f"{without_userinfo(root)} is outside of the table's location {without_userinfo(metadata.location)}, and "
            "nothing there shows whether other tables write to it, whose files would be taken for orphans. Nothing was "
            "deleted; where this table alone uses the folder, say so by exclusive=True",
            location=root,
        )


def _is_own(places: HashedLocations, root: str, metadata: TableMetadata) -> bool:
    """Whether a metadata folder in ``root`` would be the table's own, and not the folder of another table."""
    own = LocationProvider.from_metadata(metadata).metadata_folder
    return places.place(f"{root.rstrip('/')}/{METADATA_FOLDER}/-") == places.place(f"{own}/-")


def _refuse_shared(metadata: TableMetadata) -> None:
    if not get_bool(metadata.properties, GC_ENABLED):
        raise InvalidArgument(
            "the table has gc.enabled=false, which says that others may use its files; orphans of such a table are not "
            "removed. Set the property to true where it is the only one"
        )


def _delete(io: FileIO, name: tuple[str, ...], orphans: pa.Table) -> int:
    def notify(done: int) -> None:
        io.listeners.tell(OperationProgress(name, "remove-orphan-files", "delete", done, orphans.num_rows))

    return delete_files(io, _locations(orphans), notify)


def _locations(orphans: pa.Table) -> Iterator[str]:
    for batch in orphans.to_batches(max_chunksize=8192):
        yield from batch.column(0).to_pylist()
