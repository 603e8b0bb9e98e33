"""Advice on the maintenance of a table: dry runs of each action, with their benefit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import IcefieldError, Table
from icefield.metadata import WRITE_TARGET_FILE_SIZE, get_int
from icefield_maintenance import RewriteDataFilesResult

from icefield_report.formats import count, size
from icefield_report.partitions import Partitions


@dataclass(frozen=True, slots=True)
class Advice:
    """A maintenance call that would help: a scan of the whole table would open ``fewer`` files of the kind ``what``.

    ``saved`` bytes would no longer be stored, or no longer be read. The call would read ``rewritten`` bytes.
    """

    title: str
    why: str
    call: str
    command: str
    what: str
    before: int
    after: int
    saved: int = 0
    saved_what: str = ""
    rewritten: int = 0
    is_estimate: bool = False

    @property
    def fewer(self) -> int:
        """The number of files by which a plan of a scan would shrink."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class MaintenanceAdvice:
    """The outcome of the maintenance checks: advice, checks in order, and failed checks with the reason."""

    advice: tuple[Advice, ...]
    in_order: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...]


def maintenance_of(table: Table, partitions: Partitions) -> MaintenanceAdvice:
    """Run the maintenance dry, each call with its own defaults."""
    name = ".".join(table.name())
    checks: dict[str, Callable[[], Advice | None]] = {
        "Data files": lambda: _data_files(table, name, partitions),
        "Manifests": lambda: _manifests(table, name),
        "Position deletes": lambda: _position_deletes(table, name, partitions),
        "Equality deletes": lambda: _equality_deletes(table, name, partitions),
        "Deletes that delete nothing": lambda: _dangling(table, name, partitions),
        "Snapshots": lambda: _snapshots(table, name),
    }
    advice: list[Advice] = []
    in_order: list[str] = []
    unknown: list[tuple[str, str]] = []
    for title, check in checks.items():
        try:
            found = check()
        except (IcefieldError, OSError) as error:
            unknown.append((title, str(error)))
            continue
        if found is None:
            in_order.append(title)
        else:
            advice.append(found)
    advice.sort(key=lambda each: (-each.fewer, -each.saved))
    return MaintenanceAdvice(tuple(advice), tuple(in_order), tuple(unknown))


def quoted(name: str) -> str:
    """A name, quoted for a shell."""
    return name if name.replace(".", "").replace("_", "").replace("-", "").isalnum() else f"'{_inside(name)}'"


def _inside(name: str) -> str:
    return name.replace("'", "'\\''")


def _data_files(table: Table, name: str, partitions: Partitions) -> Advice | None:
    planned = table.maintenance.rewrite_data_files(dry_run=True)
    before = planned.rewritten_data_files
    if not before:
        return None
    target = get_int(table.metadata.properties, WRITE_TARGET_FILE_SIZE)
    after = sum(max(1, -(-group.rewritten_bytes // target)) for group in planned.groups)
    return Advice(
        "Compact data files",
        f"Far from the target size of {size(target)}, or with many deleted rows: "
        f"{count(before, 'data file')} in {count(_places(planned), 'partition')}.",
        "table.maintenance.rewrite_data_files()",
        f"icefield rewrite-data-files {quoted(name)}",
        "data files",
        before,
        after,
        saved=_deleted_bytes(planned, partitions),
        saved_what="of deleted rows no longer read",
        rewritten=planned.rewritten_bytes,
        is_estimate=True,
    )


def _places(planned: RewriteDataFilesResult) -> int:
    return len({group.partition for group in planned.groups})


def _deleted_bytes(planned: RewriteDataFilesResult, partitions: Partitions) -> int:
    """An estimate of the bytes that deleted rows take in the rewritten files, as if all rows had one size."""
    rows, total = int(partitions.rows.sum()), int(partitions.bytes.sum())
    if not rows or not total:
        return 0
    deleted = min(1.0, float(partitions.position_deletes.sum()) / rows)
    return int(deleted * min(planned.rewritten_bytes, total))


def _manifests(table: Table, name: str) -> Advice | None:
    planned = table.maintenance.rewrite_manifests(dry_run=True)
    before, after = planned.rewritten_manifests, planned.added_manifests
    if not before:
        return None
    why = f"{count(before, 'manifest')} would become about {count(after, 'manifest')}, clustered by partition: scans "
    why += "with a filter read fewer."
    if not after:
        why = (
            f"{count(before, 'manifest')} {'names' if before == 1 else 'name'} only files that are gone, and would go."
        )
    return Advice(
        "Cluster manifests",
        why,
        "table.maintenance.rewrite_manifests()",
        f"icefield rewrite-manifests {quoted(name)}",
        "manifests",
        before,
        after,
        saved=max(0, planned.rewritten_bytes - planned.added_bytes),
        saved_what="of manifests no longer read",
        rewritten=planned.rewritten_bytes,
        is_estimate=bool(after),
    )


def _position_deletes(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.delete_files.any():
        return None
    planned = table.maintenance.rewrite_position_delete_files(dry_run=True)
    before = planned.rewritten_position_delete_files + planned.rewritten_puffin_files
    if not before:
        return None
    concerned = int(np.count_nonzero(partitions.position_deletes))
    return Advice(
        "Pack position deletes",
        f"{count(before, 'small delete file')} would become about one for each partition that has deletes.",
        "table.maintenance.rewrite_position_delete_files()",
        f"icefield rewrite-deletes {quoted(name)}",
        "delete files",
        before,
        min(before, max(1, concerned)),
        rewritten=planned.rewritten_bytes,
        is_estimate=True,
    )


def _equality_deletes(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.equality_deletes.any():
        return None
    planned = table.maintenance.convert_equality_deletes(dry_run=True)
    before = planned.converted_equality_delete_files
    if not before:
        return None
    read = count(planned.read_data_files, "data file")
    return Advice(
        "Convert equality deletes",
        f"Scans look up the keys of {count(before, 'file')} in every row of the data files that they apply to. Marks "
        f"by position cost little; the key columns of {read} would be read once.",
        "table.maintenance.convert_equality_deletes()",
        f"icefield rewrite-deletes {quoted(name)} --convert-equality",
        "equality delete files",
        before,
        0,
        saved=planned.converted_bytes,
        saved_what="of equality deletes no longer read",
        rewritten=planned.converted_bytes + planned.read_bytes,
    )


def _dangling(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.delete_files.any():
        return None
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    before = (
        planned.removed_position_delete_files + planned.removed_deletion_vectors + planned.removed_equality_delete_files
    )
    if not before:
        return None
    return Advice(
        "Drop deletes that delete nothing",
        f"Without a data file to apply to: {count(before, 'delete file')}.",
        "table.maintenance.remove_dangling_deletes()",
        f"icefield rewrite-deletes {quoted(name)} --remove-dangling",
        "delete files",
        before,
        0,
        saved=planned.removed_bytes,
        saved_what="of delete files",
    )


def _snapshots(table: Table, name: str) -> Advice | None:
    if table.current_snapshot() is None:
        return None
    planned = table.maintenance.expire_snapshots(dry_run=True)
    if not planned.snapshot_ids:
        return None
    kept = len(table.snapshots()) - len(planned.snapshot_ids)
    freed = _stored_bytes(table, _locations(planned.locations()))
    return Advice(
        "Expire snapshots",
        f"Beyond the age to which the table keeps them: {count(len(planned.snapshot_ids), 'snapshot')}. Needed by none "
        f"that is kept: {count(planned.files, 'file')}.",
        "table.maintenance.expire_snapshots()",
        f"icefield expire-snapshots {quoted(name)}",
        "snapshots",
        len(table.snapshots()),
        kept,
        saved=freed,
        saved_what="freed in storage",
    )


def _locations(found: pa.RecordBatchReader) -> Iterator[pa.Array]:
    content = pa.array(["data", "position-deletes", "equality-deletes", "deletion-vectors"])
    for batch in found:
        is_content = pc.is_in(batch.column("kind"), value_set=content)
        yield batch.column("location").filter(is_content)


def _stored_bytes(table: Table, locations: Iterator[pa.Array]) -> int:
    """The size of some of the files that the table ever had."""
    wanted = pa.concat_arrays([pa.array([], pa.string()), *(each.cast(pa.string()) for each in locations)])
    if not len(wanted):
        return 0
    sizes: list[pa.RecordBatch] = []
    columns = ("file_path", "file_size_in_bytes")
    with table.inspect.scan("all_files", selected_fields=columns).to_arrow_batch_reader() as batches:
        for batch in batches:
            sizes.append(batch.filter(pc.is_in(batch.column("file_path"), value_set=wanted)))
    # A file that several manifests name is stored once.
    each = pa.Table.from_batches(sizes).group_by("file_path").aggregate([("file_size_in_bytes", "max")])
    return int(pc.sum(each["file_size_in_bytes_max"]).as_py() or 0)
