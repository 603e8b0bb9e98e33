"""No credential of a catalog is in anything that Spark prints, logs or keeps, nor in a table's files.

A job of its own process plants them in every property that holds one, runs every road, provokes errors on the driver
and on executors, with every log at DEBUG and the event log on. Everything that it leaves is searched.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, LocationRefused
from icefield_spark import attach
from icefield_spark.chunks import ChunkContext, ChunkReader, plan_chunks
from icefield_spark.source import QuerySource
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import ChunkWriter, spark_write_context
from icefield_testing import RecordingServer
from left_by_spark import run_job, search

JOB = Path(__file__).with_name("secrets_job.py")
MARK = "PLANTED7351"
SECRETS = {
    "s3.secret-access-key": f"{MARK}-s3-secret",
    "s3.session-token": f"{MARK}-s3-token",
    "client.secret-access-key": f"{MARK}-client",
    "dynamodb.secret-access-key": f"{MARK}-dynamodb",
    "gcs.oauth2.token": f"{MARK}-gcs",
    "adls.account-key": f"{MARK}-account-key",
    "adls.sas-token": f"sv=2024&sig={MARK}-sas",
    "adls.connection-string": f"AccountName=a;AccountKey={MARK}-connection;EndpointSuffix=core.windows.net",
    "adls.client-secret": f"{MARK}-client-secret",
    "adls.token": f"{MARK}-adls-token",
    "hive.metastore.password": f"{MARK}-hive",
    "unknown.property": f"{MARK}-of-a-plugin-to-come",
}


@pytest.mark.spark
@pytest.mark.slow
def test_no_credential_is_printed_logged_or_kept(postgres: str, tmp_path: Path) -> None:
    properties = {
        "type": "sql",
        "uri": postgres.replace("test@", f"test:{MARK}-in-a-uri@"),
        "warehouse": f"file://{tmp_path}/warehouse",
        "file.sync": "false",
        **SECRETS,
    }
    ran = run_job(JOB, tmp_path, properties)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    assert "provoked 14" in ran.stdout
    _was_worth_searching(tmp_path, search(tmp_path, [MARK]))


def _was_worth_searching(folder: Path, searched: int) -> None:
    """What was searched is what would hold it: plans, an event log, logs of the JVM and of workers at DEBUG."""
    assert searched > 30
    printed = (folder / "out.txt").read_text("utf-8")
    assert "== Physical Plan ==" in printed
    assert "MapInArrow" in printed
    assert "catalog.s3.secret-access-key=" in printed, "Spark shows the options of the data source"
    assert "planted in an executor" in printed
    jvm = (folder / "logs" / "jvm.log").read_text("utf-8")
    assert "\nDEBUG org.apache.spark" in jvm
    assert len([*(folder / "logs").glob("python-*.log")]) >= 3, "the driver and its workers"
    events = "".join(path.read_text("utf-8") for path in (folder / "events").rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in events
    assert [*folder.glob("warehouse/**/*.metadata.json")]
    assert [*folder.glob("warehouse/**/*.avro")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("adls.account-key", MARK),
        ("adls.connection-string", f"AccountName=a;AccountKey={MARK}"),
        ("uri", f"postgresql+psycopg://me:{MARK}@host/db"),
        ("adls.credential", MARK),
        ("warehouse", f"https://host/path?sig={MARK}"),
    ],
)
def test_an_option_whose_credential_spark_would_show_is_refused_without_it(name: str, value: str) -> None:
    QuerySource({"path": "db.t", f"catalog.{name}": "x"} if name in ("uri", "warehouse") else {"path": "db.t"})
    try:
        QuerySource({"path": "db.t", f"catalog.{name}": value})
    except InvalidArgument as refused:
        said = str(refused)
    assert f"'catalog.{name}'" in said
    assert "icefield.toml" in said
    assert MARK not in said


@pytest.mark.parametrize("name", ["s3.secret-access-key", "gcs.oauth2.token", "hive.metastore.password", "s3.region"])
def test_an_option_that_spark_hides_is_taken(name: str) -> None:
    assert MARK not in repr(QuerySource({"path": "db.t", f"catalog.{name}": MARK}))


def test_executors_are_given_the_credentials_of_the_store_and_none_of_metastore_or_lock(
    catalog: icefield.Catalog, properties: dict[str, str]
) -> None:
    own = {"dynamodb.secret-access-key": f"{MARK}-lock", "hive.metastore.password": f"{MARK}-hive", "lock.table": MARK}
    with icefield.load_catalog("test", **properties, **own) as opened:
        rows = pa.table({"id": [1, 2]})
        table = opened.create_table("db.given", rows.schema)
        table.append(rows)
        scan = table.scan()
        columns = to_spark_schema(scan.projection)
        reads, writes = ChunkContext.of(scan, columns), spark_write_context(table)
        for sent in (pickle.dumps(reads), pickle.dumps(ChunkReader(reads, [])), pickle.dumps(ChunkWriter(writes))):
            assert MARK.encode() not in sent
            assert b"sqlite" not in sent
            assert properties["s3.secret-access-key"].encode() in sent, "the store is reached with it"
        again: ChunkContext = pickle.loads(pickle.dumps(reads))
        (chunk,) = plan_chunks(scan)
        assert sum(batch.num_rows for batch in again.read(chunk)) == 2


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_whose_metadata_names_a_foreign_host_gets_no_credential_from_an_executor(
    spark: Any, catalog: icefield.Catalog, properties: dict[str, str], tmp_path: Path
) -> None:
    rows = pa.table({"id": [1, 2]})
    with RecordingServer() as stranger:
        foreign = f"webhdfs://{stranger.host}:{stranger.port}/data"
        # Who writes the metadata can write the data elsewhere, and name the host all the same.
        with icefield.load_catalog("test", **properties, **{f"location.map.{foreign}": f"file://{tmp_path}/d"}) as evil:
            evil.create_table("db.lure", rows.schema, properties={"write.data.path": foreign}).append(rows)
        secret = {"webhdfs.token": f"{MARK}-token", "webhdfs.host": "127.0.0.1", "webhdfs.port": "1"}
        with icefield.load_catalog("test", **properties, **secret) as opened:
            table = opened.load_table("db.lure")
            scan = table.scan()
            context = ChunkContext.of(scan, to_spark_schema(scan.projection))
            assert f"{MARK}-token".encode() in pickle.dumps(context), "an executor has it"
            ice = attach(spark, opened)
            numbers = spark.createDataFrame([(3,)], "id bigint")
            for ask in (lambda: ice.table("db.lure").collect(), lambda: ice.append(numbers, "db.lure")):
                with pytest.raises(Exception, match=r"webhdfs\.host.*location\.credentials-for") as refused:
                    ask()
                assert MARK not in f"{refused.value!r} {refused.value}"
            (chunk,) = plan_chunks(scan)
            with pytest.raises(LocationRefused):
                list(pickle.loads(pickle.dumps(context)).read(chunk))
        stranger.settle()
        assert stranger.received() == []
