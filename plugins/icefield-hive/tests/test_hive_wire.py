"""The protocol: what is not known is kept, and whatever comes ends in an answer or in one kind of error."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from forked import ended
from hypothesis import given
from hypothesis import strategies as st
from icefield import Catalog, FileIO, Plugins, load_catalog
from icefield.errors import InvalidArgument, InvalidMetadata, StorageError, UnsupportedFeature
from icefield_hive import connection as connection_module
from icefield_hive.backend import HiveBackend
from icefield_hive.client import Metastore
from icefield_hive.connection import ConnectionLost, MetastoreConnection, MetastoreRefusal
from icefield_hive.messages import CREATE_DATABASE, GET_ALL_DATABASES, GET_DATABASE, GET_TABLE, TABLE
from icefield_hive.settings import settings_of
from icefield_hive.structs import MalformedStruct, Record, Struct, Undescribed, read_struct, write_struct
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer


def written(kind: Struct, record: Record) -> bytes:
    buffer = TMemoryBuffer()
    write_struct(TBinaryProtocol(buffer), kind, record)
    data: bytes = buffer.getvalue()
    return data


def read(kind: Struct, data: bytes) -> Record:
    return read_struct(TBinaryProtocol(TMemoryBuffer(data)), kind)


TEXT_VALUE = Undescribed(TType.STRING, b"\xff not text")
UNDESCRIBED = st.recursive(
    st.one_of(
        st.booleans().map(lambda value: Undescribed(TType.BOOL, value)),
        st.integers(-(2**7), 2**7 - 1).map(lambda value: Undescribed(TType.BYTE, value)),
        st.integers(-(2**15), 2**15 - 1).map(lambda value: Undescribed(TType.I16, value)),
        st.integers(-(2**31), 2**31 - 1).map(lambda value: Undescribed(TType.I32, value)),
        st.integers(-(2**63), 2**63 - 1).map(lambda value: Undescribed(TType.I64, value)),
        st.floats(allow_nan=False).map(lambda value: Undescribed(TType.DOUBLE, value)),
        st.binary(max_size=20).map(lambda value: Undescribed(TType.STRING, value)),
    ),
    lambda inner: st.one_of(
        st.lists(st.tuples(st.integers(1, 99), inner), max_size=3).map(lambda v: Undescribed(TType.STRUCT, v)),
        inner.flatmap(lambda one: st.integers(0, 3).map(lambda n: Undescribed(TType.LIST, (one.code, [one] * n)))),
        inner.flatmap(lambda one: st.integers(0, 3).map(lambda n: Undescribed(TType.SET, (one.code, [one] * n)))),
        st.tuples(inner, inner).flatmap(
            lambda p: st.integers(0, 2).map(lambda n: Undescribed(TType.MAP, (p[0].code, p[1].code, [[*p]] * n)))
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.integers(100, 32767), UNDESCRIBED, max_size=4))
def test_fields_of_a_newer_metastore_go_back_as_they_came(more: dict[int, Undescribed]) -> None:
    record: Record = {"tableName": "t", "parameters": {"a": "ü"}, "sd": {"cols": [{"name": "id"}]}, **more}
    data = written(TABLE, record)
    assert read(TABLE, data) == record
    assert written(TABLE, read(TABLE, data)) == data


def test_what_is_not_set_is_not_sent() -> None:
    assert written(TABLE, {"owner": None, "tableName": None}) == b"\0"
    with pytest.raises(KeyError):
        written(TABLE, {"tablename": "a name that the struct does not have"})


def test_a_field_of_another_type_is_malformed() -> None:
    other = Struct("other", {"tableName": (1, TABLE.fields["createTime"][1])})
    with pytest.raises(MalformedStruct, match="tableName"):
        read(TABLE, written(other, {"tableName": 1}))


def test_depth_is_bounded() -> None:
    deep = b"\x0c\x00\x63" * 5_000  # a struct in field 99, and so on
    with pytest.raises(MalformedStruct, match="levels"):
        read(TABLE, deep)


# -- one connection


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that reads a message and does with the connection what ``answer`` says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(1 << 16)
                answer(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def sending(data: bytes) -> Callable[[socket.socket], None]:
    return lambda client: client.sendall(data)


def reply(name: str, body: bytes, kind: int = TMessageType.REPLY, number: int = 1) -> bytes:
    buffer = TMemoryBuffer()
    TBinaryProtocol(buffer).writeMessageBegin(name, kind, number)
    return bytes(buffer.getvalue()) + body


def names(*found: str) -> bytes:
    texts = b"".join(struct.pack("!i", len(text)) + text for text in map(str.encode, found))
    return b"\x0f\0\0\x0b" + struct.pack("!i", len(found)) + texts + b"\0"


def ask(data: bytes) -> object:
    with answering(sending(data)) as port:
        connection = MetastoreConnection("127.0.0.1", port, 5, 5)
        try:
            return connection.call(GET_ALL_DATABASES, ())
        finally:
            connection.close()


def test_an_answer_is_read() -> None:
    assert ask(reply("get_all_databases", names("a", "ü"))) == ["a", "ü"]


WHOLE = reply("get_all_databases", names("one", "two"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        *(WHOLE[:length] for length in range(1, len(WHOLE), 5)),
        reply("get_all_databases", names("a"), number=2),
        reply("get_database", names("a")),
        reply("get_all_databases", b"\0"),
        reply("get_all_databases", b"\x0f\0\0\x0b\x7f\xff\xff\xff"),
        reply("get_all_databases", b"\x0f\0\0\x0b\xff\xff\xff\xff"),
        reply("get_all_databases", b"\x0f\0\0\x0b\0\0\0\x01\x7f\xff\xff\xff"),
        reply("get_all_databases", b"\x0f\0\0\x0b\0\0\0\x01\0\0\0\x01\xff\0"),
        reply("get_all_databases", b"\x0b\0\0\0\0\0\0\0"),
    ],
)
def test_what_is_no_answer_is_a_lost_connection(data: bytes) -> None:
    with pytest.raises(ConnectionLost) as caught:
        ask(data)
    assert caught.value.sent
    assert "get_all_databases at 127.0.0.1" in str(caught.value)


@pytest.fixture(scope="module")
def feed() -> Iterator[tuple[int, list[bytes]]]:
    """The port of a server, and what it sends next."""
    given_next: list[bytes] = [b""]
    with answering(lambda client: client.sendall(given_next[0])) as port:
        yield port, given_next


@given(st.data())
def test_damaged_answers_end_in_an_answer_or_a_lost_connection(
    feed: tuple[int, list[bytes]], data: st.DataObject
) -> None:
    port, given_next = feed
    body = b"\x0c\0\0" + b"\x0c\0\x01" + written(TABLE, {"tableName": "t", "parameters": {"a": "b"}}) + b"\0\0"
    whole = bytearray(reply("get_table_req", body))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    given_next[0] = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    connection = MetastoreConnection("127.0.0.1", port, 5, 5)
    try:
        assert isinstance(connection.call(GET_TABLE, ({"dbName": "a", "tblName": "t"},)), dict)
    except (ConnectionLost, MetastoreRefusal):
        pass
    finally:
        connection.close()


def test_an_answer_that_is_too_long_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_MESSAGE_BYTES", 1_000)
    with pytest.raises(ConnectionLost, match="longer than 1000 bytes"):
        ask(reply("get_all_databases", names(*["x" * 100] * 20)))


@pytest.mark.slow
def test_a_server_that_drips_does_not_hold_a_call_beyond_its_time() -> None:
    asked: list[float] = []

    def drip(client: socket.socket) -> None:
        asked.append(time.monotonic())
        for byte in WHOLE:
            try:
                client.sendall(bytes([byte]))
            except OSError:
                return
            time.sleep(0.2)

    with answering(drip) as port:
        connection = MetastoreConnection("127.0.0.1", port, 5, 1)
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="too long"):
            connection.call(GET_ALL_DATABASES, ())
        assert time.monotonic() - began < 0.2 * len(WHOLE) / 2
        quick = {"hive.metastore.client.socket.timeout": "1"}
        with pytest.raises(StorageError, match="too long"):  # and it is not asked a second time
            Metastore("test", {"uri": f"thrift://127.0.0.1:{port}", **quick}).ask(GET_ALL_DATABASES)
        assert len(asked) == 2


def test_an_exception_of_the_metastore_is_no_lost_connection() -> None:
    said = b"\x0c\0\x01\x0b\0\x01" + struct.pack("!i", 6) + b"broken" + b"\0\0"
    with pytest.raises(MetastoreRefusal, match="Meta: broken"):
        ask(reply("get_all_databases", said))
    failure = b"\x0b\0\x01" + struct.pack("!i", 5) + b"inner" + b"\x08\0\x02\0\0\0\x06\0"
    with pytest.raises(MetastoreRefusal, match="Failure: inner"):
        ask(reply("get_all_databases", failure, TMessageType.EXCEPTION))


# -- the client


def test_a_call_that_may_be_repeated_is() -> None:
    left = [2]

    def hang_up_twice(client: socket.socket) -> None:
        if left[0]:
            left[0] -= 1
            return
        client.sendall(reply("get_all_databases", names("a")))

    with answering(hang_up_twice) as port:
        metastore = Metastore("test", {"uri": f"thrift://127.0.0.1:{port}"})
        assert metastore.ask(GET_ALL_DATABASES) == ["a"]
        metastore.close()


def test_a_connection_that_the_server_closed_while_it_was_idle_is_not_used() -> None:
    with answering(sending(reply("create_database", b"\0"))) as port:
        metastore = Metastore("test", {"uri": f"thrift://127.0.0.1:{port}"})
        for _ in range(3):  # the server hangs up after each answer, and this call is not repeated
            metastore.call(CREATE_DATABASE, {"name": "a"})
            assert metastore._idle
            time.sleep(0.1)
        metastore.close()


def test_another_process_makes_connections_of_its_own(hive: str) -> None:
    metastore = Metastore("test", {"uri": hive})
    assert "default" in metastore.ask(GET_ALL_DATABASES)
    assert pickle.loads(pickle.dumps(metastore)).ask(GET_DATABASE, "default")["name"] == "default"

    def ask() -> None:
        inherited = set(metastore._idle)
        assert "default" in metastore.ask(GET_ALL_DATABASES)
        assert not inherited & set(metastore._idle)

    assert ended(ask, 60.0) == 0
    assert "default" in metastore.ask(GET_ALL_DATABASES)
    metastore.close()


# -- properties


@pytest.mark.parametrize(
    ("uri", "servers"),
    [
        ("thrift://host:1234", (("host", 1234),)),
        ("thrift://host", (("host", 9083),)),
        ("thrift://one:1, thrift://[::1]:2/", (("one", 1), ("::1", 2))),
    ],
)
def test_servers_are_named_by_uris(uri: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert settings_of("c", {"uri": uri}).servers == servers


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"uri": ""},
        {"uri": "http://user:hunter2@host"},
        {"uri": "thrift://user:hunter2@host:1"},
        {"uri": "thrift://host:hunter2"},
        {"uri": "hunter2"},
        {"uri": "thrift://host:1,"},
        {"uri": "thrift://h", "commit": "rename"},
        {"uri": "thrift://h", "iceberg.hive.lock-timeout-ms": "soon"},
        {"uri": "thrift://h", "hive.hive2-compatible": "maybe"},
    ],
)
def test_properties_that_cannot_be_are_refused_without_showing_a_password(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        settings_of("prod", properties)
    assert "hunter2" not in str(caught.value)


def test_kerberos_is_refused_and_not_ignored() -> None:
    with pytest.raises(UnsupportedFeature, match=r"hive\.kerberos-authentication"):
        settings_of("prod", {"uri": "thrift://h", "hive.kerberos-authentication": "true"})


def test_nobody_at_home_is_said_in_words() -> None:
    metastore = Metastore("prod", {"uri": "thrift://127.0.0.1:1,thrift://127.0.0.1:2"})
    with pytest.raises(StorageError, match="prod") as caught:
        metastore.ask(GET_ALL_DATABASES)
    assert "127.0.0.1:1" in str(caught.value)
    assert "127.0.0.1:2" in str(caught.value)
    assert caught.value.retryable


def test_a_uri_of_thrift_is_a_hive_catalog_without_saying_so() -> None:
    assert type(load_catalog("x", uri="thrift://127.0.0.1:1").backend) is HiveBackend
    assert type(load_catalog("x", uri="sqlite://").backend).__name__ == "SqlBackend"


@pytest.mark.parametrize("count", [1_000_002, 2**31 - 1])
def test_a_listing_that_claims_very_many_names_is_the_error_of_one_that_is_too_long(count: int) -> None:
    data = reply("get_all_databases", b"\x0f\0\0\x0b" + struct.pack("!i", count))
    with answering(sending(data)) as port:
        given = {"uri": f"thrift://127.0.0.1:{port}"}
        catalog = Catalog(HiveBackend("test", given, FileIO(Plugins.installed(), given)))
        with pytest.raises(InvalidMetadata, match="the namespaces of catalog 'test' hold more names than 1,000,000"):
            catalog.list_namespaces()
