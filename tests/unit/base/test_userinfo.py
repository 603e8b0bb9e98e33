"""A location or an endpoint with a password is refused at once, and no message shows the password."""

from __future__ import annotations

import pickle
import time
import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from icefield import Plugins, load_catalog, open_table
from icefield.base.secrets import credentials_in, has_password, scrub, without_credentials, without_userinfo
from icefield.errors import FileMissing, IcefieldError, InvalidArgument, LocationRefused, StorageError
from icefield.storage import FileIO
from icefield_cli.main import main
from tables import memory_catalog

SECRET = "planted7351"
PLACE = f"s3://me:{SECRET}@bucket/warehouse"
SCHEMA = pa.schema([("id", pa.int64())])
BARE = ["abfss://box@account.dfs.core.windows.net/a:b@c", "s3://bucket/a:b@c", "hdfs://nn:8020/u@x", "/a/b:c@d", "me@x"]


@pytest.mark.parametrize("location", BARE)
def test_what_holds_no_password_stays_as_it_is(location: str) -> None:
    assert not has_password(location)
    assert without_userinfo(f"no file {location}, or so") == f"no file {location}, or so"


def test_a_password_in_an_authority_is_hidden_wherever_it_stands() -> None:
    text = f"GET http://me:{SECRET}@host:80/x and hdfs://:{SECRET}@tail@nn/y"
    assert without_userinfo(text) == "GET http://me:***@host:80/x and hdfs://:***@nn/y"


@pytest.mark.parametrize("kind", [FileMissing, StorageError, LocationRefused, InvalidArgument])
def test_no_error_shows_a_password_of_a_location(kind: type[IcefieldError]) -> None:
    error = kind(f"cannot use {PLACE}", location=PLACE, other=3)
    again = pickle.loads(pickle.dumps(error))
    for found in (error, again):
        texts = str(found), repr(found), repr(found.args), repr(found.data), found.location  # type: ignore[attr-defined]
        assert not [text for text in texts if SECRET in text]
        assert found.location == "s3://me:***@bucket/warehouse"  # type: ignore[attr-defined]
    assert SECRET.encode() not in pickle.dumps(error)


def test_the_causes_of_an_error_are_freed_of_credentials() -> None:
    key = "abcd" + "efgh"  # so that no line of this test holds it
    try:
        try:
            raise OSError(5, f"GET {PLACE}: refused")
        except OSError as error:
            raise ValueError(f"key {key} is wrong") from error
    except ValueError as error:
        text = "".join(traceback.format_exception(scrub(error, {"x.secret-key": key})))
    assert SECRET not in text
    assert key not in text
    assert "refused" in text


@pytest.mark.parametrize(
    "name",
    [
        "warehouse",
        "s3.endpoint",
        "dynamodb.endpoint",
        "gcs.service.host",
        "adls.account-host",
        "location.map.s3://old",
        "some.other.endpoint",
    ],
)
def test_a_password_in_a_place_of_the_configuration_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"type": "directory", "warehouse": f"file://{tmp_path}", name: f"https://me:{SECRET}@host/x"}
    with pytest.raises(InvalidArgument, match=f"property '{name}' holds a password") as refused:
        load_catalog("test", **given)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    arguments = [part for key, value in given.items() for part in ("-p", f"{key}={value}")]
    for command in ("namespaces", "doctor"):
        assert main([command, *arguments]) == 1
    assert SECRET not in "".join(capsys.readouterr())


def test_a_host_without_a_scheme_is_refused_with_a_password_too() -> None:
    for name in ("hdfs.host", "webhdfs.host", "gcs.service.host"):
        with pytest.raises(InvalidArgument, match="holds a password"):
            load_catalog("test", type="directory", warehouse="memory://w", **{name: f"me:{SECRET}@host:80"})


def test_a_location_with_a_password_is_neither_opened_nor_shown() -> None:
    io = FileIO(Plugins.installed(), {})
    for action in (
        lambda: io.read(f"{PLACE}/a"),
        lambda: list(io.list_files(PLACE)),
        lambda: io.file_system(PLACE),
        lambda: io.storage(PLACE),
        lambda: io.delete_many([f"{PLACE}/a"]),
        lambda: open_table(f"{PLACE}/v1.metadata.json"),
    ):
        with pytest.raises(LocationRefused, match="holds a password") as refused:
            action()
        assert SECRET not in "".join(traceback.format_exception(refused.value)) + repr(refused.value.data)
    assert SECRET not in repr(io.relative_to(PLACE))


def test_a_table_or_namespace_takes_no_location_with_a_password(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with load_catalog("test", type="sql", uri=uri, warehouse=f"file://{tmp_path}/w") as catalog:
        with pytest.raises(InvalidArgument, match="namespace property 'location' holds a password"):
            catalog.create_namespace("db", {"location": PLACE})
        catalog.create_namespace("db")
        with pytest.raises(InvalidArgument, match="holds a password"):
            catalog.update_namespace_properties("db", updates={"location": PLACE})
        with pytest.raises(LocationRefused, match="holds a password"):
            catalog.create_table("db.t", SCHEMA, location=PLACE)
        table = catalog.create_table("db.t", SCHEMA)
        with pytest.raises(InvalidArgument, match=r"table property 'write\.data\.path' holds a password"):
            table.set_properties({"write.data.path": PLACE})
        with pytest.raises(InvalidArgument, match="holds a password"):
            table.update_location(PLACE) if hasattr(table, "update_location") else _update_location(table)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def _update_location(table: object) -> None:
    with table.transaction() as changes:  # type: ignore[attr-defined]
        changes.update_location(PLACE)


def test_a_table_of_another_engine_that_has_such_locations_is_read_by_a_map_and_shows_no_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = f"file://{tmp_path}/w"
    with load_catalog("test", type="directory", warehouse=warehouse) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": [1, 2]}))
    at = Path(table.metadata_location.removeprefix("file://"))
    at.write_text(at.read_text("utf-8").replace(warehouse, PLACE), "utf-8")
    mapped = {f"location.map.{PLACE}": warehouse}
    with load_catalog("test", type="directory", warehouse=warehouse, **mapped) as catalog:
        opened = catalog.load_table("db.t")
        assert opened.scan().to_arrow().num_rows == 2
        task = next(iter(opened.scan().plan_files()))
        for value in (opened, opened.io, opened.metadata, task, catalog):
            assert SECRET not in repr(value)
    arguments = ["-p", "type=directory", "-p", f"warehouse={warehouse}", "-p", f"location.map.{PLACE}={warehouse}"]
    for output in ("text", "json"):
        assert main(["describe", "db.t", "--output", output, *arguments]) == 0
    assert SECRET not in "".join(capsys.readouterr())


@pytest.mark.parametrize("tail", ["@tail7351", "/tail7351", "?tail7351", "#tail7351", "@a/tail7351"])
def test_the_tail_of_a_password_that_is_not_escaped_is_known(tail: str) -> None:
    properties = {"uri": f"postgresql://me:{SECRET}{tail}@host/db"}
    assert "7351" not in without_credentials(f"cannot reach {properties['uri']}", properties)
    for piece in (f"{SECRET}{tail}", SECRET + tail.partition("@")[0]):
        assert SECRET not in without_credentials(f"failed: {piece}", properties)


def test_nothing_is_written_in_memory_for_a_refused_location() -> None:
    catalog = memory_catalog()
    with pytest.raises(IcefieldError):
        catalog.create_table("db.t", SCHEMA, location=PLACE)


@pytest.mark.parametrize("word", ["a", "a:", "a://", "a://b:", "://"])
def test_long_words_are_looked_through_in_one_pass(word: str) -> None:
    string = f"x://{word * 200_000}@"
    began = time.process_time()
    without_userinfo(string)
    credentials_in({"uri": string})
    assert time.process_time() - began < 3.0  # a pass for each letter takes minutes
