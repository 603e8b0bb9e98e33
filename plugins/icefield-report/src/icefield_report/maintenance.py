"""Advice on the maintenance of a table: dry runs of each action, with their benefit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import IcefieldError, Table
from icefield.metadata import WRITE_TARGET_FILE_SIZE, get_int
from icefield_maintenance import gains
from icefield_maintenance.gains import Gain

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
    gain = gains.of_data_files(table, _deleted_share(partitions))
    if gain is None:
        return None
    target = get_int(table.metadata.properties, WRITE_TARGET_FILE_SIZE)
    return _advice(
        gain,
        "Compact data files",
        f"Far from the target size of {size(target)}, or with many deleted rows: "
        f"{count(gain.before, 'data file')} in {count(gain.places, 'partition')}.",
        f"icefield rewrite-data-files {quoted(name)}",
        "data files",
        saved_what="of deleted rows no longer read",
        is_estimate=True,
    )


def _advice(
    gain: Gain, title: str, why: str, command: str, what: str, *, saved_what: str = "", is_estimate: bool = False
) -> Advice:
    return Advice(
        title,
        why,
        f"table.maintenance.{gain.operation}()",
        command,
        what,
        gain.before,
        gain.after,
        saved=gain.saved,
        saved_what=saved_what,
        rewritten=gain.rewritten,
        is_estimate=is_estimate,
    )


def _deleted_share(partitions: Partitions) -> float:
    """The share of the rows that position deletes delete, as if all rows had one size."""
    rows = int(partitions.rows.sum())
    return float(partitions.position_deletes.sum()) / rows if rows else 0.0


def _manifests(table: Table, name: str) -> Advice | None:
    gain = gains.of_manifests(table)
    if gain is None:
        return None
    before, after = gain.before, gain.after
    why = f"{count(before, 'manifest')} would become about {count(after, 'manifest')}, clustered by partition: scans "
    why += "with a filter read fewer."
    if not after:
        why = (
            f"{count(before, 'manifest')} {'names' if before == 1 else 'name'} only files that are gone, and would go."
        )
    command = f"icefield rewrite-manifests {quoted(name)}"
    what = "of manifests no longer read"
    return _advice(gain, "Cluster manifests", why, command, "manifests", saved_what=what, is_estimate=bool(after))


def _position_deletes(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.delete_files.any():
        return None
    gain = gains.of_position_deletes(table, int(np.count_nonzero(partitions.position_deletes)))
    if gain is None:
        return None
    why = f"{count(gain.before, 'small delete file')} would become about one for each partition that has deletes."
    command = f"icefield rewrite-deletes {quoted(name)}"
    return _advice(gain, "Pack position deletes", why, command, "delete files", is_estimate=True)


def _equality_deletes(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.equality_deletes.any():
        return None
    gain = gains.of_equality_deletes(table)
    if gain is None:
        return None
    return _advice(
        replace(gain, after=0),  # what comes in their place marks positions
        "Convert equality deletes",
        f"Scans look up the keys of {count(gain.before, 'file')} in every row of the data files that they apply to. "
        f"Marks by position cost little; the key columns of {count(gain.read_files, 'data file')} would be read once.",
        f"icefield rewrite-deletes {quoted(name)} --convert-equality",
        "equality delete files",
        saved_what="of equality deletes no longer read",
    )


def _dangling(table: Table, name: str, partitions: Partitions) -> Advice | None:
    if not partitions.delete_files.any():
        return None
    gain = gains.of_dangling_deletes(table)
    if gain is None:
        return None
    why = f"Without a data file to apply to: {count(gain.before, 'delete file')}."
    command = f"icefield rewrite-deletes {quoted(name)} --remove-dangling"
    title = "Drop deletes that delete nothing"
    return _advice(gain, title, why, command, "delete files", saved_what="of delete files")


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
