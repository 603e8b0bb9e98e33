"""Copies of tables under other locations: what is copied by the list reads as the table does."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield_maintenance import RewriteTablePathResult

ROWS = pa.table({"id": range(40), "name": [f"n{number % 3}" for number in range(40)]})


@pytest.fixture
def catalog(tmp_path):
    with icefield.load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake"
    ) as made:
        made.create_namespace("db")
        yield made


def changed(catalog, version: int, file_format: str = "parquet") -> icefield.Table:
    """A table with deletes of rows, statistics, an old version and a branch."""
    properties = {
        "format-version": str(version),
        "write.format.default": file_format,
        "write.delete.format.default": file_format,
        "write.delete.mode": "merge-on-read",
        "write.data.path": f"{catalog.properties['warehouse']}/data/of/t",
        "write.metadata.compression-codec": "gzip" if version == 2 else "none",
    }
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["name"], properties=properties)
    table.append(ROWS)
    table.append(ROWS)
    if version > 1:
        table.delete("id < 5")
        table.delete("id = 30")
        table.maintenance.compute_table_stats()
        table.refresh()
        table.maintenance.compute_partition_stats()
        table.refresh()
    with table.manage_snapshots() as update:
        update.create_branch(table.history()[0].snapshot_id, "first")
    return table


def path_of(location: str) -> Path:
    return Path(urlsplit(location).path)


def copy(result: RewriteTablePathResult) -> None:
    for source, target in zip(*result.files.to_pydict().values(), strict=True):
        path_of(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path_of(source), path_of(target))


def copied(table: icefield.Table, tmp_path: Path, **options: str) -> tuple[RewriteTablePathResult, str]:
    """The result of a rewrite, and where the metadata file of the copy is."""
    source, target = f"file://{tmp_path}/lake", f"file://{tmp_path}/far/away"
    result = table.maintenance.rewrite_table_path(source, target, **options)
    copy(result)
    folder = table.metadata_location.rsplit("/", 1)[0].replace(source, target)
    return result, f"{folder}/{result.latest_version}"


def contents(table: icefield.Table) -> list[list[str]]:
    found = []
    for each in table.history():
        rows = table.scan(snapshot_id=each.snapshot_id).to_arrow()
        found.append(sorted(map(repr, rows.to_pylist())))
    return found


@pytest.mark.parametrize(
    ("version", "file_format"), [(1, "parquet"), (2, "parquet"), (2, "avro"), (2, "orc"), (3, "parquet")]
)
def test_a_copy_reads_as_the_table_without_it(catalog, tmp_path, version, file_format):
    table = changed(catalog, version, file_format)
    wanted, branch = contents(table), table.scan(ref="first").count()
    result, location = copied(table, tmp_path)
    assert contents(table.refresh()) == wanted
    shutil.rmtree(tmp_path / "lake")
    moved = icefield.open_table(location)
    assert contents(moved) == wanted
    assert moved.scan(ref="first").count() == branch
    assert result.rewritten_delete_files > 0 or version == 1
    for each in (*moved.metadata.statistics, *moved.metadata.partition_statistics):
        assert path_of(each.statistics_path).is_file()
    names = moved.metadata.metadata_log
    assert all(path_of(each.metadata_file).is_file() for each in names)
    files = moved.inspect.files().to_pylist()
    assert all(path_of(each["file_path"]).stat().st_size == each["file_size_in_bytes"] for each in files)
    assert not any("/lake/" in str(each) for each in files)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_can_be_changed_in_a_registered_copy(catalog, tmp_path, version):
    table = changed(catalog, version)
    _, location = copied(table, tmp_path)
    with icefield.load_catalog(
        "far", type="sql", uri=f"sqlite:///{tmp_path}/far.db", warehouse=f"file://{tmp_path}/far"
    ) as far:
        far.create_namespace("db")
        moved = far.register_table("db.t", location)
        moved.delete("id = 31")
        moved.maintenance.rewrite_position_delete_files()
        assert moved.refresh().scan(row_filter="id >= 30").count() == 16
        assert table.scan(row_filter="id >= 30").count() == 18


def test_a_later_copy_takes_what_came_since(catalog, tmp_path):
    table = changed(catalog, 2)
    first, _ = copied(table, tmp_path)
    start = first.latest_version
    table.append(ROWS)
    table.delete("id = 7")
    wanted = contents(table)
    second, location = copied(table, tmp_path, start_version=start)
    data = [path for path in second.files["target"].to_pylist() if "/data/of/t/" in path]
    assert len(data) == 3 + second.rewritten_delete_files
    assert first.latest_version not in [path.rsplit("/", 1)[-1] for path in second.files["target"].to_pylist()]
    shutil.rmtree(tmp_path / "lake")
    assert contents(icefield.open_table(location)) == wanted


def sizes_of(table: icefield.Table) -> list[tuple[int, int, int, int]]:
    """By snapshot the bytes of its files and of those that it added, as its summary and as its entries have them."""
    found = []
    for each in table.snapshots():
        live = table.inspect.entries(each.snapshot_id).to_pylist()
        held = [(row["status"], row["snapshot_id"], row["data_file"]) for row in live if row["status"] != 2]
        counted = [
            (status == 1 and owner == each.snapshot_id, file["content_size_in_bytes"] or file["file_size_in_bytes"])
            for status, owner, file in held
        ]
        summary = {name: int(each.summary.get(name, 0)) for name in ("total-files-size", "added-files-size")}
        whole = sum(size for _, size in counted)
        found.append((*summary.values(), whole, sum(size for is_new, size in counted if is_new)))
    return found


@pytest.mark.parametrize(
    ("version", "file_format"), [(1, "parquet"), (2, "parquet"), (2, "avro"), (2, "orc"), (3, "parquet")]
)
def test_summaries_of_a_copy_state_the_bytes_of_its_own_files(catalog, tmp_path, version, file_format):
    table = changed(catalog, version, file_format)
    if version > 1:
        table.maintenance.rewrite_position_delete_files(rewrite_all=True)
        table.delete("id = 33")
    _, location = copied(table, tmp_path)
    for total, added, of_files, of_new in sizes_of(icefield.open_table(location)):
        assert (total, added) == (of_files, of_new)
    assert all(total == of_files for total, _, of_files, _ in sizes_of(table.refresh()))


def test_a_later_copy_states_no_total_that_it_does_not_know(catalog, tmp_path):
    table = changed(catalog, 2)
    first, _ = copied(table, tmp_path)
    table.delete("id = 31")
    table.append(ROWS)
    known = {each.snapshot_id for each in table.snapshots()[-2:]}
    _, location = copied(table, tmp_path, start_version=first.latest_version)
    moved = icefield.open_table(location)
    for each, (total, _, held, _) in zip(moved.snapshots(), sizes_of(moved), strict=True):
        assert total == held or (each.snapshot_id not in known and "total-files-size" not in each.summary)


def test_a_copy_may_end_with_an_earlier_version(catalog, tmp_path):
    table = changed(catalog, 2)
    end = table.metadata.metadata_log[2].metadata_file
    assert path_of(end).is_file()
    _, location = copied(table, tmp_path, end_version=end.rsplit("/", 1)[-1])
    shutil.rmtree(tmp_path / "lake")
    assert len(icefield.open_table(location).history()) == 2


def test_the_list_is_a_file_of_lines(catalog, tmp_path):
    table = changed(catalog, 2)
    result, _ = copied(table, tmp_path, staging_location=f'file://{tmp_path}/stage, and "more"')
    assert result.file_list_location is not None
    with path_of(result.file_list_location.replace("%", "%25")).open() as lines:
        listed = [tuple(row) for row in csv.reader(lines)]
    assert listed == list(zip(*result.files.to_pydict().values(), strict=True))
    assert not (tmp_path / "stage2").exists()
    quiet = table.maintenance.rewrite_table_path(
        f"file://{tmp_path}/lake", "s3://there/t", staging_location=f"file://{tmp_path}/stage2", create_file_list=False
    )
    assert quiet.file_list_location is None
    assert not (tmp_path / "stage2" / "file-list").exists()
    assert all(target.startswith("s3://there/t/") for target in quiet.files["target"].to_pylist())


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("lake/nowhere", {}, "is not below"),
        ("la", {}, "is not below"),
        ("lake/db", {}, "is not below"),
        ("there", {}, "the same"),
        ("lake", {"end_version": "v0.json"}, "no metadata file 'v0.json'"),
        ("lake", {"start_version": "v0.json"}, "no metadata file 'v0.json'"),
        ("lake", {"staging_location": "lake"}, "the files of the table itself"),
    ],
)
def test_what_cannot_be_copied_is_refused_and_leaves_nothing(catalog, tmp_path, source, options, said):
    table = changed(catalog, 2)
    before = sorted(tmp_path.rglob("*"))
    if "staging_location" in options:
        options = {"staging_location": f"file://{tmp_path}/lake/"}
    with pytest.raises(InvalidArgument, match=said):
        table.maintenance.rewrite_table_path(f"file://{tmp_path}/{source}", f"file://{tmp_path}/there", **options)
    after = sorted(path for path in tmp_path.rglob("*") if path.is_file() or path in before)
    assert after == before


def test_an_empty_prefix_is_refused(catalog, tmp_path):
    with pytest.raises(InvalidArgument, match="may not be empty"):
        changed(catalog, 2).maintenance.rewrite_table_path("/", "file:///there")
