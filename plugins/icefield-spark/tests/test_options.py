"""The names of the data source's options, and what they come to. Without a Spark session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import IcefieldError, InvalidArgument
from icefield_spark.options import KNOWN, canonical
from icefield_spark.source import QuerySource
from icefield_spark.writer import IcefieldWriter
from pyspark.sql import types as spark

COLUMNS = spark.StructType([spark.StructField("id", spark.LongType(), False)])


@pytest.mark.parametrize("name", ["snapshot-id", "snapshot_id", "snapshotid", "SnapshotId", "SNAPSHOT_ID"])
def test_case_hyphens_and_underscores_of_a_name_do_not_count(name: str) -> None:
    assert canonical({name: "7"}) == {"snapshot-id": "7"}


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("mergeSchema", "merge-schema"),
        ("partitionOverwriteMode", "partition-overwrite-mode"),
        ("overwrite-mode", "partition-overwrite-mode"),
        ("replaceWhere", "overwrite-where"),
        ("timestampAsOf", "as-of-timestamp"),
        ("compression", "compression-codec"),
    ],
)
def test_names_of_spark_and_of_others_mean_what_they_mean_there(name: str, same: str) -> None:
    assert canonical({name: "x"}) == {same: "x"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("snapshot-idd", "no option 'snapshot-idd'; was 'snapshot-id' meant?"),
        ("mergeShema", "no option 'mergeshema'; was 'merge-schema' meant?"),
        ("brunch", "was 'branch' meant?"),
        ("header", "it has path, catalog, branch"),
        ("catalogue.uri", "no option 'catalogue.uri'"),
        ("overwriteSchema", "'overwrite-schema' is not supported: .*mergeSchema"),
        ("versionAsOf", "name the version by snapshot-id"),
        ("distribution-mode", "ice.append"),
        ("maxRecordsPerFile", "target-file-size-bytes"),
        ("provider", "CREATE TABLE … USING icefield"),
    ],
)
def test_a_name_that_has_no_effect_is_refused_with_what_to_do(name: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        canonical({"path": "db.t", name: "x"})


def test_an_option_that_is_given_in_two_spellings_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'snapshot-id' and 'snapshot_id' are one"):
        canonical({"snapshot-id": "1", "snapshot_id": "1"})


def test_properties_of_the_catalog_and_the_summary_keep_their_names() -> None:
    given = {"catalog.s3.path_style": "true", "snapshot-property.my_job": "n"}
    assert canonical(given) == given
    assert canonical(canonical({"snapshot_id": "1"})) == {"snapshot-id": "1"}
    assert set(canonical(dict.fromkeys(KNOWN, "x"))) == set(KNOWN)


# -- reading ------------------------------------------------------------------------------------------------------


@pytest.fixture
def scanned(people: icefield.Table, options: dict[str, str]) -> Callable[..., list[int]]:
    """The ids that a scan with some options gives."""

    def found(**more: str) -> list[int]:
        source = QuerySource({**options, "path": "db.people", **more})
        return sorted(source.scan(source.table()).to_arrow()["id"].to_pylist())

    return found


def test_an_earlier_state_is_named_by_snapshot_branch_tag_ref_and_time(
    people: icefield.Table, scanned: Callable[..., list[int]]
) -> None:
    first = people.current_snapshot()
    people.manage_snapshots().create_tag(first.snapshot_id, "before").create_branch(first.snapshot_id, "side").commit()
    people.append(pa.table({"id": pa.array([4], pa.int64())}))
    at = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC).isoformat()
    ways = {"snapshot_id": str(first.snapshot_id), "tag": "before", "branch": "side", "ref": "before"}
    for name, value in {**ways, "as-of-timestamp": str(first.timestamp_ms), "timestampAsOf": at}.items():
        assert scanned(**{name: value}) == [1, 2, 3], name
    assert scanned(branch="main") == scanned() == [1, 2, 3, 4]
    with pytest.raises(InvalidArgument, match="'before' is no branch but a tag"):
        scanned(branch="before")
    with pytest.raises(InvalidArgument, match="give one of snapshot-id and tag"):
        scanned(**{"snapshot-id": "1", "tag": "before"})


def test_splits_are_as_large_as_is_asked_for(people: icefield.Table, options: dict[str, str]) -> None:
    people.append(pa.table({"id": pa.array([4], pa.int64())}))

    def tasks(**more: str) -> int:
        source = QuerySource({**options, "path": "db.people", **more})
        return len([*source.scan(source.table()).plan_tasks()])

    assert (tasks(), tasks(split_size="1", file_open_cost="1")) == (1, 2)


# -- writing ------------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(people: icefield.Table, options: dict[str, str]) -> Callable[..., IcefieldWriter]:
    def made(overwrite: bool = True, **more: str) -> IcefieldWriter:
        return IcefieldWriter(QuerySource({**options, "path": "db.people", **more}), COLUMNS, overwrite)

    return made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "id = 1"}, "'where' is for reading .overwrite-where is what mode overwrite replaces.; leave it out"),
        ({"snapshot_id": "1"}, "'snapshot-id' is for reading"),
        ({"ref": "main"}, "branch is what to write"),
        ({"overwrite": False, "replaceWhere": "id = 1"}, "needs mode overwrite"),
        ({"partitionOverwriteMode": "dinamic"}, "is static or dynamic, not 'dinamic'"),
        ({"partitionOverwriteMode": "dynamic", "replaceWhere": "id = 1"}, "and not both"),
        ({"mergeSchema": "yes"}, "merge-schema is true or false"),
        ({"target-file-size-bytes": "small"}, "target-file-size-bytes is a whole number"),
        ({"write-format": "csv"}, "csv"),
    ],
)
def test_a_write_whose_options_do_not_fit_fails_when_it_is_made(
    writer: Callable[..., IcefieldWriter], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(IcefieldError, match=message):
        writer(**given)


def test_a_write_may_set_the_size_and_the_compression_of_its_files(writer: Callable[..., IcefieldWriter]) -> None:
    context = writer(
        **{"target-file-size-bytes": "1000", "compression-codec": "gzip", "compressionLevel": "3"}
    )._context
    assert context.target_file_bytes == 1000
    assert context.properties["write.parquet.compression-codec"] == "gzip"
    assert context.properties["write.parquet.compression-level"] == "3"
