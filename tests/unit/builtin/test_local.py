"""Local disks: the strings that are locations there, and the strings that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from icefield.abc import PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.errors import LocationRefused

STRANGE = {
    "nowhere-known:/x": "its scheme is 'nowhere-known'",
    "nowhere-known://x/y": "its scheme is 'nowhere-known'",
    "s3://b/x": "its scheme is 's3'",
    "file://otherhost/x": "machine 'otherhost'",
    "file://otherhost": "machine 'otherhost'",
    "FILE://otherhost/x": "machine 'otherhost'",
    "x/y": "relative",
    "./x": "relative",
    "file:x/y": "relative",
    "file:": "relative",
    "": "relative",
}

SYSTEM = LocalFileSystem()
CALLS: dict[str, Callable[[str], object]] = {
    "open_input": SYSTEM.open_input,
    "put": lambda location: SYSTEM.put(location, b"x", PutMode.CREATE),
    "overwrite": lambda location: SYSTEM.put(location, b"x", PutMode.OVERWRITE),
    "open_output": SYSTEM.open_output,
    "stat": SYSTEM.stat,
    "list_files": lambda location: list(SYSTEM.list_files(location)),
    "delete_many": lambda location: SYSTEM.delete_many([location]),
    "rename from": lambda location: SYSTEM.rename(location, "/tmp/never"),
    "rename to": lambda location: SYSTEM.rename("/tmp/never", location),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("location", STRANGE)
def test_what_is_no_place_on_this_machine_is_refused_and_nothing_is_written(
    call: str, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocationRefused, match=STRANGE[location]) as caught:
        CALLS[call](location)
    assert caught.value.location == location
    assert list(tmp_path.iterdir()) == []


def test_every_way_to_write_an_absolute_path_leads_to_one_file(tmp_path: Path) -> None:
    SYSTEM.put(f"{tmp_path}/a:b c%20", b"x", PutMode.CREATE)
    for prefix in ("", "file:", "file://", "FILE://", "file://localhost"):
        assert SYSTEM.stat(f"{prefix}{tmp_path}/a:b c%20").size == 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["a\0b", "\udcff", "é\ud800"], ids=ascii)
def test_what_no_file_can_be_called_is_refused_and_nothing_is_written(call: str, name: str, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/{name}"
    with pytest.raises(LocationRefused, match="no file can have that name") as caught:
        CALLS[call](location)
    assert caught.value.data["location"] == location
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["open_input", "put", "overwrite", "stat", "list_files", "delete_many", "rename from"])
def test_a_name_that_is_too_long_is_refused_and_nothing_is_written(call: str, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/{'n' * 300}"
    with pytest.raises(LocationRefused, match="no file can have so long a name") as caught:
        CALLS[call](location)
    assert caught.value.data["location"] == location
    assert list(tmp_path.iterdir()) == []


def test_a_stream_to_a_name_that_is_too_long_publishes_nothing(tmp_path: Path) -> None:
    stream = SYSTEM.open_output(f"file://{tmp_path}/{'n' * 300}")
    with pytest.raises(LocationRefused, match="no file can have so long a name"):
        stream.close()
    assert list(tmp_path.iterdir()) == []
