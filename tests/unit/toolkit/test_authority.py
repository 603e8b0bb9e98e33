"""The grammar of locations and authorities, and the hosts and accounts that the configuration names."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest
from fsspec.implementations.http import HTTPFileSystem
from icefield.errors import InvalidArgument, LocationRefused
from icefield.toolkit import (
    Endpoint,
    FsspecFileSystem,
    Host,
    LocationParts,
    authorities_named,
    endpoint_of,
    split_host,
    split_location,
)
from icefield.toolkit.authority import add_named


@pytest.mark.parametrize(
    ("location", "parts"),
    [
        ("s3://bucket/a//b/c%20d?e#f", ("s3", "bucket", "a//b/c%20d?e#f")),
        ("S3A://Bucket_1.x", ("s3a", "Bucket_1.x", "")),
        ("abfss://$logs@a.dfs.core.windows.net/..a/b..", ("abfss", "$logs@a.dfs.core.windows.net", "..a/b..")),
        ("hdfs:/a/b", ("hdfs", "", "a/b")),
        ("hdfs:///a", ("hdfs", "", "a")),
        ("webhdfs://[::1]:9870/a", ("webhdfs", "[::1]:9870", "a")),
        ("s3://arn:aws:s3:eu-1:12:accesspoint:ap/k", ("s3", "arn:aws:s3:eu-1:12:accesspoint:ap", "k")),
        ("/a/../b", ("", "", "a/../b")),
        ("//a/b", ("", "", "/a/b")),
        ("file:///a/../b\udc80", ("file", "", "a/../b\udc80")),
    ],
)  # fmt: skip
def test_a_location_is_taken_apart_to_the_letter(location: str, parts: tuple[str, str, str]) -> None:
    assert split_location(location) == LocationParts(*parts)


@pytest.mark.parametrize("character", [*"#?%\\ \t\n\r\v\0\x7f\"'<>|^`{}*+,;&=!()", *"\u3002\uff0f\u2024ü\u200b"])
def test_an_authority_has_no_character_that_a_parser_may_stop_at(character: str) -> None:
    for authority in (f"{character}host", f"ho{character}st", f"host{character}", f"c@ho{character}st:1"):
        with pytest.raises(LocationRefused) as refused:
            split_location(f"x://{authority}/path")
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("location", ["", "relative/path", "s3:bucket/key", "s3:", "1s3://b/k", ":/b", "\u017f3://b/k"])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(LocationRefused, match="absolute path"):
        split_location(location)


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("host", Host("host", None)),
        ("Name_Node-1.Example:8020", Host("name_node-1.example", 8020)),
        ("127.0.0.1:1", Host("127.0.0.1", 1)),
        ("[::1]:65535", Host("::1", 65535)),
        ("[fe80::A]", Host("fe80::a", None)),
    ],
)
def test_a_host_is_a_name_or_an_address_and_perhaps_a_port(authority: str, host: Host) -> None:
    assert split_host(authority, "x://") == host
    assert str(host).lower() == authority.lower()


@pytest.mark.parametrize(
    "authority",
    [
        "", ":1", "host:", "host:0", "host:65536", "host:x", "host:1:2", "host:+1", "host:1_0", "host:٣", "user@host",
        "-host", ".host", "host.", "a..b", "[::1", "::1", "[::1]x", "[host]", "[]", "[::1%25eth0]", "[::1]:", "a" * 256,
    ],
)  # fmt: skip
def test_what_is_no_host_is_refused(authority: str) -> None:
    with pytest.raises(LocationRefused, match="names no host and port"):
        split_host(authority, f"x://{authority}/a")


def test_the_address_of_a_service_is_strict_too_and_is_not_shown() -> None:
    assert endpoint_of("store.example/", "p") == Endpoint(True, Host("store.example", None), "")
    assert str(endpoint_of("HTTP://127.0.0.1:9000/a/b/", "p")) == "http://127.0.0.1:9000/a/b"
    for text in ("http://key:secret@host", "http://host#x", "http://host/?secret", "ftp://secret", "http://", "a b"):
        with pytest.raises(InvalidArgument, match=r"s3\.endpoint") as refused:
            endpoint_of(text, "s3.endpoint")
        assert "secret" not in str(refused.value)


def test_the_configuration_names_places_by_warehouse_roots_maps_and_a_list() -> None:
    properties = {
        "warehouse": "x://one/wh",
        "location.allowed-roots": "x://two/a, file:///x, y://no/a",
        "location.map.x://old": "x://three",
        "location.map.y://old": "/local",
        "location.credentials-for": "x://four",
        "other": "x://five",
    }
    found = [place.authority for place in authorities_named(properties, frozenset({"x"}))]
    assert sorted(found) == ["four", "one", "three", "two"]
    assert not [*authorities_named({}, frozenset({"x"}))]


def test_a_location_that_its_user_names_is_added_to_what_is_there() -> None:
    assert add_named({}, "X://a/b,c") == {"location.credentials-for": "x://a"}
    assert add_named({"location.credentials-for": "x://a"}, "y://b/c") == {"location.credentials-for": "x://a, y://b"}
    for location in ("file:///a", "/a", "hdfs:/a", "relative"):
        assert add_named({"p": "v"}, location) == {"p": "v"}


class Web(FsspecFileSystem):
    """A plugin over fsspec's file system of URLs, which connects to the host of each URL."""

    def connect(self) -> Any:
        return HTTPFileSystem()


class Connected(FsspecFileSystem):
    """A plugin over an fsspec file system that is connected to one host, and omits the host from its paths."""

    def connect(self) -> Any:
        class Remote(fsspec.AbstractFileSystem):  # type: ignore[misc]
            protocol = "remote"
            host, port = "here", 22

            @classmethod
            def _strip_protocol(cls, path: str) -> str:
                return "/" + path.partition("://")[2].partition("/")[2]

            @staticmethod
            def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
                return dict(fsspec.utils.infer_storage_options(path))

        return Remote()


class InMemory(FsspecFileSystem):
    """A plugin over fsspec's memory."""

    def connect(self) -> Any:
        return fsspec.filesystem("memory")


def test_fsspec_asks_no_host_that_the_configuration_does_not_name() -> None:
    web = Web({"warehouse": "http://here:80/wh"})
    assert web.path("http://here:80/wh/x") == "http://here:80/wh/x"
    for location in ("http://evil/wh/x", "http://here/wh/x", "https://here:80/x", "http://u@here:80/x"):
        with pytest.raises(LocationRefused, match=r"location\.credentials-for"):
            web.open_input(location)
    for path in ("wh/../x", "wh/%2e%2E/x", "wh/x#y", "wh/x?y", "wh/a b", "wh/.%2e"):
        with pytest.raises(LocationRefused):
            web.stat(f"http://here:80/{path}")


def test_fsspec_is_asked_for_the_host_that_is_connected_and_no_other() -> None:
    assert Connected().path("remote://here:22/a/b") == "/a/b"
    for authority in ("evil:22", "here:23", "user@here:22", "x"):
        with pytest.raises(LocationRefused, match="not connected"):
            Connected().path(f"remote://{authority}/a")


def test_a_path_that_fsspec_takes_for_another_is_refused() -> None:
    assert InMemory().path("memory://a/b//c%2e") == "/a/b//c%2e"
    for location in ("memory://a/../b", "memory://a/./b", "memory://a#/b"):
        with pytest.raises(LocationRefused):
            InMemory().path(location)


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\ud800", "\udcff/b"], ids=ascii)
def test_a_zero_byte_and_half_a_character_are_refused_whatever_a_plugin_makes_of_a_location(name: str) -> None:
    class Own(InMemory):
        def path(self, location: str) -> str:
            return location.partition("://")[2]

    for system in (InMemory(), Own()):
        for call in (system.stat, system.open_input, system.open_output, lambda at, on=system: on.delete_many([at])):
            with pytest.raises(LocationRefused) as refused:
                call(f"memory://a/{name}")
            assert refused.value.data["location"] == f"memory://a/{name}"
    with pytest.raises(LocationRefused):
        split_location(f"s3://b/{name}")
